/* check.c: runs all checks of libkernel on every tier this CPU has. Prints one line for each; exit code 0 = all passed.
 * Usage: check [SEED]. A failure prints the seed. */
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

static unsigned char canary(size_t position)
{
    return (unsigned char)(0xa5 ^ position * 29);
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
    for (size_t i = low_canary(arena, place); i < high_canary(arena, place, bytes); i++)
        arena->start[i] = canary(i);
    return place;
}

void arena_verify(const struct arena *arena, const void *place, size_t bytes)
{
    const size_t first = (size_t)((const unsigned char *)place - arena->start);
    for (size_t i = low_canary(arena, place); i < high_canary(arena, place, bytes); i++)
        if ((i < first || i >= first + bytes) && arena->start[i] != canary(i))
            fail("byte %lld of a buffer of %zu was written", (long long)i - (long long)first, bytes);
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

int main(int count, char **words)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_signal);
    if (count > 1)
        seed = strtoull(words[1], NULL, 10);
    check_dispatch();
    printf("ok dispatch\n");
    static const struct {
        const char *name;
        void (*run)(const struct mahe_table *);
    } checks[] = {
        {"reduce_add", check_reduce_add},
        {"sgd_update", check_sgd_update},
        {"fold", check_fold},
        {"stats", check_stats},
    };
    for (size_t t = 0; mahe_tables[t] != NULL; t++) {
        if (!mahe_cpu_can_run(mahe_tables[t])) {
            printf("-- %s: this CPU cannot run it\n", mahe_tables[t]->name);
            continue;
        }
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
            rng_state = seed;
            checks[i].run(mahe_tables[t]);
            printf("ok %s %s\n", mahe_tables[t]->name, checks[i].name);
        }
    }
    return 0;
}
