/* One block of quantised values in plain C: the specification of what the header says about q8 and q4. */
#include <math.h>

#include "../kernels.h"
#include "bits.h"

/* a = x + residual; the largest magnitude of a, as bits. residual may be NULL, or a itself. */
uint32_t MAHE_CALL mahe_add_absmax_scalar(float *a, const float *x, const float *residual, size_t n)
{
    uint32_t absmax = 0;
    for (size_t i = 0; i < n; i++) {
        a[i] = residual == NULL ? x[i] : x[i] + residual[i];
        const uint32_t magnitude = magnitude_of(a[i]);
        if (magnitude > absmax)
            absmax = magnitude;
    }
    return absmax;
}

/* The code of one value; a becomes what the code leaves over. |a * inverse| is at most Q and a little. The code is an
 * integer, so without the -0 that rintf may give: a = -0 leaves over -0 - (+0) = -0. */
static int32_t encode(float *a, float scale, float inverse)
{
    const int32_t code = (int32_t)rintf(*a * inverse);
    *a = *a - (float)code * scale;
    return code;
}

void MAHE_CALL mahe_encode_q8_scalar(int8_t *codes, float *a, float scale, float inverse, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = (int8_t)encode(&a[i], scale, inverse);
}

void MAHE_CALL mahe_encode_q4_scalar(uint8_t *codes, float *a, float scale, float inverse, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        const int32_t low = encode(&a[i], scale, inverse) + 8;
        const int32_t high = i + 1 < n ? encode(&a[i + 1], scale, inverse) + 8 : 8;
        codes[i / 2] = (uint8_t)(low | high << 4);
    }
}

static float code_q4(const uint8_t *codes, size_t i)
{
    return (float)((codes[i / 2] >> (i % 2 * 4) & 15) - 8);
}

void MAHE_CALL mahe_decode_q8_scalar(float *x, const int8_t *codes, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)codes[i] * scale;
}

void MAHE_CALL mahe_decode_q4_scalar(float *x, const uint8_t *codes, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = code_q4(codes, i) * scale;
}

void MAHE_CALL mahe_decode_add_q8_scalar(float *dst, const int8_t *codes, float scale, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = dst[i] + weight * ((float)codes[i] * scale);
}

void MAHE_CALL mahe_decode_add_q4_scalar(float *dst, const uint8_t *codes, float scale, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = dst[i] + weight * (code_q4(codes, i) * scale);
}

void MAHE_CALL mahe_fold_q8_scalar(int64_t *acc, const int8_t *codes, float scale, double factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float value = (float)codes[i] * scale;
        mahe_fold_scalar(&acc[i], &value, factor, 1);
    }
}

void MAHE_CALL mahe_fold_q4_scalar(int64_t *acc, const uint8_t *codes, float scale, double factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float value = code_q4(codes, i) * scale;
        mahe_fold_scalar(&acc[i], &value, factor, 1);
    }
}
