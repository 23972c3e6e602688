/* The count of the radix select on x86-64. Levels that have a prefix go to topk_avx2.S, which skips what does not match
 * it. At the first level every entry counts: one load and one store of a count for each, which AVX2 cannot do better
 * than C. */
#include <string.h>

#include "../kernels.h"

#ifdef MAHE_X86_64_ASM

#define NO_PREFIX_SHIFT 31 /* nothing is left of a magnitude: all have the same prefix */
/* Four counts of which each takes every fourth entry: equal entries in a row would wait for one another. They cost
 * about as much as counting 2000 entries. */
#define WAYS 4
#define WAYS_FROM ((size_t)1 << 14)

void MAHE_CALL mahe_topk_match_avx2(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n);

/* The entries of two neighbours as one number, in either order. */
static uint64_t two_of(const float *x)
{
    uint64_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

static void count_four_ways(uint32_t *counts, const float *x, uint32_t shift, uint32_t mask, size_t fours)
{
    uint32_t more[WAYS - 1][MAHE_TOPK_BUCKETS];
    memset(more, 0, sizeof more);
    for (size_t i = 0; i < fours; i++) {
        const uint64_t a = two_of(x + WAYS * i);
        const uint64_t b = two_of(x + WAYS * i + 2);
        counts[a >> shift & mask]++;
        more[0][a >> (shift + 32) & mask]++;
        more[1][b >> shift & mask]++;
        more[2][b >> (shift + 32) & mask]++;
    }
    for (size_t bucket = 0; bucket <= mask; bucket++)
        counts[bucket] += more[0][bucket] + more[1][bucket] + more[2][bucket];
}

void MAHE_CALL mahe_topk_count_avx2(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)
{
    if (level->prefix_shift != NO_PREFIX_SHIFT) {
        mahe_topk_match_avx2(counts, x, level, n);
        return;
    }
    size_t counted = 0;
    if (n >= WAYS_FROM) {
        counted = n / WAYS * WAYS; /* the mask leaves out the sign, as the plain C does */
        count_four_ways(counts, x, level->shift, level->mask & 0x7fffffffu >> level->shift, counted / WAYS);
    }
    mahe_topk_count_scalar(counts, x + counted, level, n - counted);
}

#else
typedef int mahe_no_assembly_here; /* C forbids an empty file */
#endif
