/* check_call.c: calls a kernel through the trampoline and verifies what the System V convention promises. */
#include "check_call.h"

#include <string.h>

#include "check.h"

#if defined(__x86_64__)
#include <cpuid.h>

struct call_report {
    uint64_t fill[4];
    uint64_t wide;
    uint64_t xinuse;
    uint32_t mxcsr_before;
    uint32_t mxcsr_after;
    uint64_t flags;
    uint64_t damage;
};

_Static_assert(offsetof(struct call_report, damage) == REPORT_DAMAGE, "check_call.h");
_Static_assert(sizeof(struct call_report) == REPORT_BYTES, "check_call.h");

/* In check_call_x86_64.S; the scalar stays in xmm0, so one routine serves float and double. */
void check_call_float(kernel fn, const void *a, const void *b, uint64_t c, struct call_report *report, float scalar);
void check_call_double(kernel fn, const void *a, const void *b, uint64_t c, struct call_report *report, double scalar);

static int xgetbv1_works(void)
{
    uint32_t a = 0;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    if (__get_cpuid_max(0, NULL) < 13)
        return 0;
    __cpuid_count(13, 1, a, b, c, d);
    return (a >> 2 & 1) != 0;
}

static struct call_report prepare(uint64_t fill, const char *tier)
{
    const int wide = strcmp(tier, "scalar") != 0;
    return (struct call_report){.fill = {fill, fill, fill, fill}, .wide = wide, .xinuse = wide && xgetbv1_works()};
}

static void verify(const struct call_report *report)
{
    static const char *const names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15", "the stack", "the stack"};
    const uint32_t mxcsr_control = 0xffc0; /* the low six bits are sticky exception flags: those may be set */
    for (int i = 0; i < 8; i++)
        if (report->damage >> i & 1)
            fail("changed %s", names[i]);
    if ((report->mxcsr_before ^ report->mxcsr_after) & mxcsr_control)
        fail("changed the control bits of MXCSR from %#x to %#x", report->mxcsr_before, report->mxcsr_after);
    if (report->flags >> 10 & 1)
        fail("left the direction flag set");
    if (report->xinuse & 4)
        fail("returned without vzeroupper");
}

/* What stale registers may hold: quiet NaNs, then all ones. */
static uint64_t next_fill(void)
{
    static unsigned turn;
    return turn++ % 2 ? 0xffffffffffffffffu : 0x7fc000007fc00000u;
}

void call_float(kernel fn, void *a, const void *b, float scalar, size_t n, const char *tier)
{
    struct call_report report = prepare(next_fill(), tier);
    check_call_float(fn, a, b, n, &report, scalar);
    verify(&report);
}

void call_double(kernel fn, void *a, const void *b, double scalar, size_t n, const char *tier)
{
    struct call_report report = prepare(next_fill(), tier);
    check_call_double(fn, a, b, n, &report, scalar);
    verify(&report);
}

void call_sized(kernel fn, const void *x, size_t n, void *out, const char *tier)
{
    struct call_report report = prepare(next_fill(), tier);
    check_call_float(fn, x, (const void *)(uintptr_t)n, (uint64_t)(uintptr_t)out, &report, 0.0f);
    verify(&report);
}

#else

void call_float(kernel fn, void *a, const void *b, float scalar, size_t n, const char *tier)
{
    (void)tier;
    ((void (*)(void *, const void *, float, size_t))fn)(a, b, scalar, n);
}

void call_double(kernel fn, void *a, const void *b, double scalar, size_t n, const char *tier)
{
    (void)tier;
    ((void (*)(void *, const void *, double, size_t))fn)(a, b, scalar, n);
}

void call_sized(kernel fn, const void *x, size_t n, void *out, const char *tier)
{
    (void)tier;
    ((void (*)(const void *, size_t, void *))fn)(x, n, out);
}
#endif
