/* blocks.c: the public functions on block-quantised data. They check the arguments, walk over the blocks and decide
 * about each scale; the tier in use does the elements. So a scale has the same bits on every tier. */
#include <string.h>

#include "arguments.h"

#define Q8_MAX 127.0f
#define Q4_MAX 7.0f
#define ABSMAX_MIN 0x0d800000u  /* 2^-100: below, Q / amax or amax / Q would leave the range of normal numbers */
#define ABSMAX_END 0x7b800000u  /* 2^120: from here on, and for what is not finite */
#define QUIET_NAN 0x7fc00000u
#define Q4_ZEROS 0x88

static size_t q4_bytes(size_t n)
{
    return n / 2 + n % 2;
}

static size_t scales_bytes(size_t block, size_t n)
{
    return (n / block + (n % block != 0)) * sizeof(float);
}

static int bad_block(size_t block)
{
    return block < MAHE_BLOCK_MIN || block > MAHE_BLOCK_MAX || block % 32 != 0;
}

static int32_t check_sizes(size_t block, size_t n)
{
    if (bad_block(block))
        return MAHE_ERR_BLOCK;
    return too_large(n) ? MAHE_ERR_SIZE : MAHE_OK;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The scale of a block, and what to multiply by to get its codes. 0 where all codes are 0. */
static float scale_of(uint32_t absmax, float q_max, float *inverse)
{
    float scale = 0.0f;
    *inverse = 0.0f;
    if (absmax >= ABSMAX_END) {
        const uint32_t nan = QUIET_NAN;
        memcpy(&scale, &nan, sizeof scale);
    } else if (absmax >= ABSMAX_MIN) {
        float amax;
        memcpy(&amax, &absmax, sizeof amax);
        scale = amax / q_max;
        *inverse = q_max / amax;
    }
    return scale;
}

static int32_t check_quantise(const void *codes, size_t codes_bytes, const float *scales, const float *new_residual,
                              const float *x, const float *residual, size_t block, size_t n)
{
    const int32_t status = check_sizes(block, n);
    if (status != MAHE_OK)
        return status;
    const size_t bytes = n * sizeof *x;
    const struct array arrays[] = {
        {codes, codes_bytes, 0},
        {scales, scales_bytes(block, n), 0},
        {new_residual, bytes, 1},
        {x, bytes, 0},
        {residual, bytes, 1},
    };
    return check_arrays(arrays, residual == NULL ? 4 : 5, 3);
}

int32_t mahe_quantise_q8_f32(int8_t *codes, float *scales, float *new_residual, const float *x, const float *residual,
                             size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_quantise(codes, n, scales, new_residual, x, residual, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block) {
        const size_t count = smaller(block, n - at);
        float inverse;
        float *a = new_residual + at;
        const uint32_t absmax = table->add_absmax(a, x + at, residual == NULL ? NULL : residual + at, count);
        const float scale = scale_of(absmax, Q8_MAX, &inverse);
        scales[at / block] = scale;
        if (inverse != 0.0f) {
            table->encode_q8(codes + at, a, scale, inverse, count);
        } else {
            memset(codes + at, 0, count);
            if (scale != 0.0f)
                memset(a, 0, count * sizeof *a);
        }
    }
    return MAHE_OK;
}

int32_t mahe_quantise_q4_f32(uint8_t *codes, float *scales, float *new_residual, const float *x, const float *residual,
                             size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_quantise(codes, q4_bytes(n), scales, new_residual, x, residual, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block) {
        const size_t count = smaller(block, n - at);
        float inverse;
        float *a = new_residual + at;
        const uint32_t absmax = table->add_absmax(a, x + at, residual == NULL ? NULL : residual + at, count);
        const float scale = scale_of(absmax, Q4_MAX, &inverse);
        scales[at / block] = scale;
        if (inverse != 0.0f) {
            table->encode_q4(codes + at / 2, a, scale, inverse, count);
        } else {
            memset(codes + at / 2, Q4_ZEROS, q4_bytes(count));
            if (scale != 0.0f)
                memset(a, 0, count * sizeof *a);
        }
    }
    return MAHE_OK;
}

/* One written array of n elements of `width` bytes, made from codes and scales. */
static int32_t check_decode(const void *to, size_t width, const void *codes, size_t codes_bytes, const float *scales,
                            size_t block, size_t n)
{
    const int32_t status = check_sizes(block, n);
    if (status != MAHE_OK)
        return status;
    const struct array arrays[] = {{to, n * width, 0}, {codes, codes_bytes, 0}, {scales, scales_bytes(block, n), 0}};
    return CHECK_ARRAYS(arrays, 1);
}

int32_t mahe_dequantise_q8_f32(float *x, const int8_t *codes, const float *scales, size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(x, sizeof *x, codes, n, scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->decode_q8(x + at, codes + at, scales[at / block], smaller(block, n - at));
    return MAHE_OK;
}

int32_t mahe_dequantise_q4_f32(float *x, const uint8_t *codes, const float *scales, size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(x, sizeof *x, codes, q4_bytes(n), scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->decode_q4(x + at, codes + at / 2, scales[at / block], smaller(block, n - at));
    return MAHE_OK;
}

int32_t mahe_dequantise_add_q8_f32(float *dst, const int8_t *codes, const float *scales, float weight, size_t block,
                                   size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(dst, sizeof *dst, codes, n, scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->decode_add_q8(dst + at, codes + at, scales[at / block], weight, smaller(block, n - at));
    return MAHE_OK;
}

int32_t mahe_dequantise_add_q4_f32(float *dst, const uint8_t *codes, const float *scales, float weight, size_t block,
                                   size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(dst, sizeof *dst, codes, q4_bytes(n), scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->decode_add_q4(dst + at, codes + at / 2, scales[at / block], weight, smaller(block, n - at));
    return MAHE_OK;
}

int32_t mahe_fold_q8_i64(int64_t *acc, const int8_t *codes, const float *scales, double factor, size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(acc, sizeof *acc, codes, n, scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->fold_q8(acc + at, codes + at, scales[at / block], factor, smaller(block, n - at));
    return MAHE_OK;
}

int32_t mahe_fold_q4_i64(int64_t *acc, const uint8_t *codes, const float *scales, double factor, size_t block, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    const int32_t status = check_decode(acc, sizeof *acc, codes, q4_bytes(n), scales, block, n);
    if (status != MAHE_OK)
        return status;
    const struct mahe_table *table = mahe_table_in_use();
    for (size_t at = 0; at < n; at += block)
        table->fold_q4(acc + at, codes + at / 2, scales[at / block], factor, smaller(block, n - at));
    return MAHE_OK;
}
