/* topk.c: mahe_topk_f32. A radix select finds the smallest magnitude that is taken, 11, 11 and 9 bits at a time; then
 * one pass takes what is above it, and of what is equal the first few. The tier in use counts and takes. */
#include <string.h>

#include "arguments.h"

static const struct {
    uint32_t prefix_shift;
    uint32_t shift;
    uint32_t mask;
} levels[] = {{31, 20, 2047}, {20, 9, 2047}, {9, 0, 511}};

/* The k-th largest magnitude, and in *ties how many of those equal to it are taken. */
static uint32_t threshold_of(const struct mahe_table *table, const float *x, size_t k, size_t n, size_t *ties)
{
    uint32_t counts[MAHE_TOPK_BUCKETS];
    uint32_t prefix = 0;
    size_t left = k;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const struct mahe_topk_level level = {levels[i].prefix_shift, prefix, levels[i].shift, levels[i].mask};
        memset(counts, 0, sizeof counts);
        table->topk_count(counts, x, &level, n);
        uint32_t bucket = level.mask;
        while (bucket > 0 && counts[bucket] < left) /* `left` entries have this prefix, unless x changes meanwhile */
            left -= counts[bucket--];
        prefix = prefix << (level.prefix_shift - level.shift) | bucket;
    }
    *ties = left;
    return prefix;
}

int32_t mahe_topk_f32(uint32_t *indices, float *values, const float *x, size_t k, size_t n)
{
    if (k == 0)
        return MAHE_OK;
    if (k > n || too_large(n) || n > UINT32_MAX)
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {
        {indices, k * sizeof *indices, 0},
        {values, k * sizeof *values, 0},
        {x, n * sizeof *x, 0},
    };
    const int32_t status = CHECK_ARRAYS(arrays, 2);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    size_t ties;
    const uint32_t threshold = threshold_of(table, x, k, n, &ties);
    table->topk_take(indices, values, x, n, threshold, ties);
    return MAHE_OK;
}
