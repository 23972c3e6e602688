/* bfloat16 in plain C: the specification of mahe_bf16_from_f32 and mahe_f32_from_bf16. */
#include "../kernels.h"
#include "bits.h"

void MAHE_CALL mahe_bf16_from_f32_scalar(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of(src[i]);
        if ((bits & 0x7fffffffu) > 0x7f800000u)
            dst[i] = (uint16_t)(bits >> 16 | 0x40u);
        else /* half of the last place kept, less one unless that place is odd: carries up exactly when it must */
            dst[i] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
}

void MAHE_CALL mahe_f32_from_bf16_scalar(float *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)src[i] << 16;
        memcpy(&dst[i], &bits, sizeof bits);
    }
}
