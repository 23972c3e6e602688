/* The two passes of the radix select in plain C: the specification of what mahe_topk_f32 asks of a tier. */
#include "../kernels.h"
#include "bits.h"

/* counts[bucket] += how many entries have the level's prefix and fall into that bucket. */
void MAHE_CALL mahe_topk_count_scalar(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = magnitude_of(x[i]);
        if (magnitude >> level->prefix_shift == level->prefix)
            counts[magnitude >> level->shift & level->mask]++;
    }
}

/* Writes place and value of every entry above the threshold, and of the first `ties` equal to it, in order. The caller
 * knows how many that are. */
void MAHE_CALL mahe_topk_take_scalar(uint32_t *indices, float *values, const float *x, size_t n, uint32_t threshold,
                                     size_t ties)
{
    size_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = magnitude_of(x[i]);
        if (magnitude < threshold || (magnitude == threshold && ties == 0))
            continue;
        if (magnitude == threshold)
            ties--;
        indices[taken] = (uint32_t)i;
        values[taken] = x[i];
        taken++;
    }
}
