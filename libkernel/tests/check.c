/* check.c: runs all checks of libkernel on every tier this CPU has. Prints one line for each; exit code 0 = all passed.
 * Usage: check [SEED [TIER [NAME...]]]. TIER (or "all") and the names leave out all other checks; "tiers" and
 * "arguments" are no tier's own. A failure prints the seed. */
#define _GNU_SOURCE
#include "check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char current[256];
static uint64_t seed = 1;
static uint64_t rng_state;

void label(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(current, sizeof current, format, arguments);
    va_end(arguments);
}

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED %s, seed %llu: ", current, (unsigned long long)seed);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void on_signal(int number)
{
    static const char what[] = "CRASHED (read or write outside of the arrays, or an unknown instruction) in ";
    (void)!write(2, what, sizeof what - 1);
    (void)!write(2, current, strlen(current));
    (void)!write(2, "\n", 1);
    _exit(128 + number);
}

struct arena arena_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inside = (bytes + 2 * CANARY_BYTES + page - 1) / page * page;
    unsigned char *all = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, inside, PROT_READ | PROT_WRITE) != 0)
        fail("no memory for %zu bytes", bytes);
    return (struct arena){all + page, inside};
}

/* What an arena holds where nothing has been written: byte i is canaries[i % 256]. Twice as long as its period, so that
 * 256 bytes can be taken from anywhere. */
static const unsigned char *canaries(void)
{
    static unsigned char bytes[2 * CANARY_BYTES];
    if (bytes[0] == 0)
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(0xa5 ^ i * 29);
    return bytes;
}

static size_t low_canary(const struct arena *arena, const unsigned char *place)
{
    const size_t before = (size_t)(place - arena->start);
    return before < CANARY_BYTES ? 0 : before - CANARY_BYTES;
}

static size_t high_canary(const struct arena *arena, const unsigned char *place, size_t bytes)
{
    const size_t after = (size_t)(place - arena->start) + bytes + CANARY_BYTES;
    return after < arena->bytes ? after : arena->bytes;
}

void *arena_place(const struct arena *arena, size_t bytes, enum edge edge, size_t shift)
{
    unsigned char *place = edge == AT_START ? arena->start + shift : arena->start + arena->bytes - bytes - shift;
    const size_t end = high_canary(arena, place, bytes);
    for (size_t i = low_canary(arena, place); i < end; i += CANARY_BYTES)
        memcpy(arena->start + i, canaries() + i % CANARY_BYTES, end - i < CANARY_BYTES ? end - i : CANARY_BYTES);
    return place;
}

/* At most CANARY_BYTES from `from` to `to`; `place` is where the buffer begins. */
static void verify_canaries(const struct arena *arena, size_t from, size_t to, size_t place, size_t bytes)
{
    const unsigned char *expected = canaries() + from % CANARY_BYTES;
    if (memcmp(arena->start + from, expected, to - from) == 0)
        return;
    size_t i = from;
    while (arena->start[i] == expected[i - from])
        i++;
    fail("byte %lld of a buffer of %zu was written", (long long)i - (long long)place, bytes);
}

void arena_verify(const struct arena *arena, const void *place, size_t bytes)
{
    const size_t first = (size_t)((const unsigned char *)place - arena->start);
    verify_canaries(arena, low_canary(arena, place), first, first, bytes);
    verify_canaries(arena, first + bytes, high_canary(arena, place, bytes), first, bytes);
}

const size_t *check_lengths(void)
{
    static size_t lengths[N_SMALL + 3 * 6 + 1];
    size_t count = 0;
    for (size_t n = 1; n <= N_SMALL; n++)
        lengths[count++] = n;
    for (size_t k = 9; k <= 14; k++)
        for (size_t n = ((size_t)1 << k) - 1; n <= ((size_t)1 << k) + 1; n++)
            lengths[count++] = n;
    lengths[count] = 0;
    return lengths;
}

uint64_t random_bits(void)
{
    /* SplitMix64 (Steele, Lea and Flood, 2014). */
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float random_uniform(void)
{
    return (float)(random_bits() >> 40) * 0x1p-23f - 1.0f;
}

float random_finite(void)
{
    for (;;) {
        const uint32_t bits = (uint32_t)(random_bits() >> 32);
        if ((bits & 0x7f800000u) != 0x7f800000u)
            return bits_float(bits);
    }
}

float random_special(void)
{
    static const uint32_t magnitudes[] = {
        0, 1, 0x007fffff, 0x00800000, 0x3f800000, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
        0x7fffffff,
    };
    const uint64_t r = random_bits();
    return bits_float(magnitudes[r % (sizeof magnitudes / sizeof *magnitudes)] | (uint32_t)(r >> 63) << 31);
}

int same_float(float a, float b)
{
    return (a != a && b != b) || float_bits(a) == float_bits(b);
}

struct check {
    const char *name;
    void (*run)(const struct mahe_table *tier);
};

static const struct check for_all[] = {
    {"tiers", check_tiers},
    {"arguments", check_arguments},
    {NULL, NULL},
};

static const struct check for_each[] = {
    {"reduce_add", check_reduce_add},
    {"sgd_update", check_sgd_update},
    {"fold", check_fold},
    {"absmax", check_absmax},
    {"stats", check_stats},
    {"outer", check_outer},
    {"adamw", check_adamw},
    {"bf16", check_bf16},
    {"quantise", check_quantise},
    {"decode", check_decode},
    {"fold_blocks", check_fold_blocks},
    {"topk", check_topk},
    {"segments", check_segments},
    {"long", check_long},
    {"huge", check_huge},
    {NULL, NULL},
};

/* Whether a check is among the names, or there are none. */
static int wanted(const char *name, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return count == 0;
}

/* Those of the checks in a list that are wanted; how many there were. tier is NULL for what is no tier's own. */
static int run_checks(const struct check *list, const struct mahe_table *tier, char **names, int count)
{
    int done = 0;
    for (size_t i = 0; list[i].name != NULL; i++) {
        if (!wanted(list[i].name, names, count))
            continue;
        rng_state = seed;
        list[i].run(tier);
        printf("ok %s %s\n", tier == NULL ? "all" : tier->name, list[i].name);
        fflush(stdout);
        done++;
    }
    return done;
}

int main(int count, char **words)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_signal);
    if (count > 1)
        seed = strtoull(words[1], NULL, 10);
    char *tier = count > 2 ? words[2] : "all";
    char **names = words + (count > 3 ? 3 : 0);
    const int name_count = count > 3 ? count - 3 : 0;
    printf("-- in use: %s; this CPU offers: %s\n", mahe_kernel_impl(), mahe_cpu_features());
    printf("-- a forgotten vzeroupper is %s\n", sees_upper_halves() ? "seen" : "not seen here");
    int done = run_checks(for_all, NULL, names, name_count);
    for (size_t t = 0; mahe_tables[t] != NULL; t++) {
        if (!wanted(mahe_tables[t]->name, &tier, strcmp(tier, "all") != 0))
            continue;
        if (mahe_cpu_can_run(mahe_tables[t]))
            done += run_checks(for_each, mahe_tables[t], names, name_count);
        else
            printf("-- %s: this CPU cannot run it\n", mahe_tables[t]->name);
    }
    label("check");
    if (done < name_count || done == 0)
        fail("not every check that was asked for could run");
    return 0;
}
