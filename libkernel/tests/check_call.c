/* check_call.c: calls a kernel with junk in every register that carries no argument, and verifies what the calling
 * convention promises. */
#include "check_call.h"

#include <string.h>

#include "check.h"

#define JUNK 0x5ca1ab1e00000000u
#define WORDS 6
#define REALS 2

uint64_t word_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

uint64_t word_32(uint32_t value)
{
    return JUNK | value;
}

uint64_t real_f(float value)
{
    return JUNK | float_bits(value);
}

uint64_t real_d(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The parameters of a kernel as kernels.h declares them; NULL for a function that is in no table. */
static const char *parameters_of(kernel fn)
{
    for (size_t i = 0; mahe_tables[i] != NULL; i++) {
#define FIND(member, result, parameters) \
        if ((kernel)mahe_tables[i]->member == fn) \
            return #parameters;
        MAHE_KERNELS(FIND)
#undef FIND
    }
    return NULL;
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Fills what the parameters leave open: registers without an argument, upper halves of 32-bit ones. */
static struct call with_junk(const struct call *call, const char *parameters, uint64_t fill)
{
    struct call full = *call;
    size_t words = 0;
    size_t reals = 0;
    for (const char *at = parameters; at != NULL; at = strchr(at, ',')) {
        at += at[1] == ' ' ? 2 : 1; /* past "(" or ", " */
        const int pointer = memchr(at, '*', strcspn(at, ",)")) != NULL;
        const int real = !pointer && (begins(at, "float ") || begins(at, "double "));
        uint64_t *place = real ? &full.real[reals++] : &full.word[words++];
        if (!pointer && (begins(at, "float ") || begins(at, "uint32_t ")))
            *place = JUNK | (uint32_t)*place;
    }
    if (parameters == NULL) /* assembly inside of a kernel: no reals, and its last argument is not 0 */
        for (words = WORDS; words > 0 && full.word[words - 1] == 0; words--)
            ;
    for (; words < WORDS; words++) {
        if (full.word[words] != 0)
            fail("the check passes more integers than %s takes", parameters);
        full.word[words] = JUNK * 2 - words;
    }
    for (; reals < REALS; reals++) {
        if (full.real[reals] != 0)
            fail("the check passes more reals than %s takes", parameters);
        full.real[reals] = fill;
    }
    return full;
}

/* What stale registers may hold: quiet NaNs, then all ones. */
static uint64_t next_fill(void)
{
    static unsigned turn;
    return turn++ % 2 ? 0xffffffffffffffffu : 0x7fc000007fc00000u;
}

#ifdef REPORT_BYTES

struct call_report {
    uint64_t fill[REPORT_FILLS];
    uint64_t before[REPORT_KEPT];
    uint64_t after[REPORT_KEPT];
    uint64_t control[2];
    uint64_t result;
#if defined(__x86_64__)
    uint64_t flags;
    uint64_t wide;
    uint64_t xinuse;
#endif
};

_Static_assert(offsetof(struct call, real) == CALL_REAL, "check_call.h");
_Static_assert(offsetof(struct call_report, before) == REPORT_BEFORE, "check_call.h");
_Static_assert(offsetof(struct call_report, after) == REPORT_AFTER, "check_call.h");
_Static_assert(offsetof(struct call_report, control) == REPORT_CONTROL, "check_call.h");
_Static_assert(offsetof(struct call_report, result) == REPORT_RESULT, "check_call.h");
_Static_assert(sizeof(struct call_report) == REPORT_BYTES, "check_call.h");

/* In check_call_*.S. */
void check_call(kernel fn, const struct call *call, struct call_report *report);

#if defined(__x86_64__)
#include <cpuid.h>

static const char *const kept[REPORT_KEPT] = {"rbx", "rbp", "r12", "r13", "r14", "r15", "the stack", "the stack"};
static const uint64_t control_mask = 0xffc0; /* MXCSR; the low six bits are sticky exception flags: those may be set */

static int xgetbv1_works(void)
{
    static int known = -1;
    uint32_t a = 0;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    if (known < 0 && __get_cpuid_max(0, NULL) >= 13)
        __cpuid_count(13, 1, a, b, c, d);
    if (known < 0)
        known = (a >> 2 & 1) != 0;
    return known;
}

static void prepare(struct call_report *report, const char *tier)
{
    report->wide = strcmp(tier, "scalar") != 0;
    report->xinuse = report->wide && xgetbv1_works();
}

static void verify_cpu(const struct call_report *report)
{
    if (report->flags >> 10 & 1)
        fail("left the direction flag set");
    if (report->xinuse & 4)
        fail("returned without vzeroupper");
}

#else

static const char *const kept[REPORT_KEPT] = {
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29",
    "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "the stack", "the stack",
};
static const uint64_t control_mask = ~(uint64_t)0; /* FPCR */

static void prepare(struct call_report *report, const char *tier)
{
    (void)report;
    (void)tier;
}

static void verify_cpu(const struct call_report *report)
{
    (void)report;
}
#endif

static void leaves_everything(void)
{
}

int sees_upper_halves(void)
{
    struct call_report report = {0};
    const struct mahe_table *best = mahe_tables[0];
    for (size_t i = 0; mahe_tables[i] != NULL; i++)
        if (mahe_cpu_can_run(mahe_tables[i]))
            best = mahe_tables[i];
    prepare(&report, best->name);
    check_call(leaves_everything, &(struct call){0}, &report);
#if defined(__x86_64__)
    return (report.xinuse & 4) != 0;
#else
    return 0;
#endif
}

uint64_t call_kernel(kernel fn, const struct call *call, const char *tier)
{
    const uint64_t fill = next_fill();
    struct call_report report = {0};
    for (size_t i = 0; i < REPORT_FILLS; i++)
        report.fill[i] = fill;
    for (size_t i = 0; i < REPORT_KEPT; i++)
        report.before[i] = 0x6d6168656b65726eu + i * 0x0101010101010101u;
    prepare(&report, tier);
    const struct call full = with_junk(call, parameters_of(fn), fill);
    check_call(fn, &full, &report);
    for (size_t i = 0; i < REPORT_KEPT; i++)
        if (report.before[i] != report.after[i])
            fail("changed %s", kept[i]);
    const uint32_t before = (uint32_t)(report.control[0] & control_mask);
    const uint32_t after = (uint32_t)(report.control[1] & control_mask);
    if (before != after)
        fail("changed the control bits of floating point from %#x to %#x", before, after);
    verify_cpu(&report);
    return report.result;
}

#else

int sees_upper_halves(void)
{
    return 0;
}

/* No trampoline for this CPU. Every kernel takes its integers and its reals in the same registers as `any`. */
uint64_t call_kernel(kernel fn, const struct call *call, const char *tier)
{
    typedef uint64_t (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double);
    (void)tier;
    const struct call full = with_junk(call, parameters_of(fn), next_fill());
    double reals[REALS];
    memcpy(reals, full.real, sizeof reals);
    const uint64_t *w = full.word;
    return ((any)fn)(w[0], w[1], w[2], w[3], w[4], w[5], reals[0], reals[1]);
}
#endif
