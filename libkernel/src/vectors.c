/* vectors.c: the public functions on whole vectors. They check the arguments once and call the tier in use. */
#include <string.h>

#include "arguments.h"

int32_t mahe_reduce_add_f32(float *dst, const float *src, float weight, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{dst, n * sizeof *dst, 1}, {src, n * sizeof *src, 1}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->reduce_add(dst, src, weight, n);
    return status;
}

int32_t mahe_sgd_update_f32(float *params, const float *grad, float lr, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{params, n * sizeof *params, 1}, {grad, n * sizeof *grad, 1}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->sgd_update(params, grad, lr, n);
    return status;
}

int32_t mahe_axpy_segments_f32(const mahe_segment *segments, float weight, size_t count)
{
    if (count == 0)
        return MAHE_OK;
    if (segments == NULL)
        return MAHE_ERR_NULL;
    if (count > PTRDIFF_MAX / sizeof *segments)
        return MAHE_ERR_SIZE;
    const struct array list = {segments, count * sizeof *segments, 0};
    for (size_t i = 0; i < count; i++) {
        const mahe_segment *one = &segments[i];
        if (one->n == 0)
            continue;
        if (one->n > PTRDIFF_MAX / sizeof(int64_t))
            return MAHE_ERR_SIZE;
        const size_t bytes = (size_t)one->n * sizeof *one->dst;
        const struct array arrays[] = {{one->dst, bytes, 1}, {one->src, bytes, 1}, list};
        const int32_t status = CHECK_ARRAYS(arrays, 1);
        if (status != MAHE_OK)
            return status;
    }
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t i = 0; i < count; i++)
        if (segments[i].n != 0)
            table->reduce_add(segments[i].dst, segments[i].src, weight, (size_t)segments[i].n);
    return MAHE_OK;
}

int32_t mahe_fold_f32_i64(int64_t *acc, const float *delta, double scale, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{acc, n * sizeof *acc, 0}, {delta, n * sizeof *delta, 0}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->fold(acc, delta, scale, n);
    return status;
}

int32_t mahe_absmax_f32(const float *x, size_t n, float *out)
{
    if (out == NULL)
        return MAHE_ERR_NULL;
    if (n == 0) {
        *out = 0.0f;
        return MAHE_OK;
    }
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{out, sizeof *out, 0}, {x, n * sizeof *x, 0}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK) {
        const uint32_t bits = mahe_table_in_use()->absmax(x, n);
        memcpy(out, &bits, sizeof bits); /* bits, not a value: some CPUs change a NaN that passes through a register */
    }
    return status;
}

int32_t mahe_stats_f32(const float *x, size_t n, mahe_stats *out)
{
    if (out == NULL)
        return MAHE_ERR_NULL;
    if (n == 0) {
        *out = (mahe_stats){0};
        return MAHE_OK;
    }
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{out, sizeof *out, 0}, {x, n * sizeof *x, 0}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->stats(x, n, out);
    return status;
}

int32_t mahe_momentum_f32(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const size_t bytes = n * sizeof *m;
    const struct array arrays[] = {{update, bytes, 1}, {m, bytes, 0}, {g, bytes, 1}};
    const int32_t status = CHECK_ARRAYS(arrays, 2);
    if (status == MAHE_OK)
        mahe_table_in_use()->momentum(update, m, g, lr, mu, n);
    return status;
}

int32_t mahe_nesterov_f32(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const size_t bytes = n * sizeof *m;
    const struct array arrays[] = {{update, bytes, 1}, {m, bytes, 0}, {g, bytes, 1}};
    const int32_t status = CHECK_ARRAYS(arrays, 2);
    if (status == MAHE_OK)
        mahe_table_in_use()->nesterov(update, m, g, lr, mu, n);
    return status;
}

int32_t mahe_adamw_f32(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const size_t bytes = n * sizeof *m;
    const struct array arrays[] = {
        {params, bytes, 0}, {m, bytes, 0}, {v, bytes, 0}, {g, bytes, 0}, {step, sizeof *step, 0},
    };
    const int32_t status = CHECK_ARRAYS(arrays, 3);
    if (status == MAHE_OK)
        mahe_table_in_use()->adamw(params, m, v, g, step, n);
    return status;
}

int32_t mahe_bf16_from_f32(uint16_t *dst, const float *src, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{dst, n * sizeof *dst, 0}, {src, n * sizeof *src, 0}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->bf16_from_f32(dst, src, n);
    return status;
}

int32_t mahe_f32_from_bf16(float *dst, const uint16_t *src, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const struct array arrays[] = {{dst, n * sizeof *dst, 0}, {src, n * sizeof *src, 0}};
    const int32_t status = CHECK_ARRAYS(arrays, 1);
    if (status == MAHE_OK)
        mahe_table_in_use()->f32_from_bf16(dst, src, n);
    return status;
}
