/* The largest magnitude in plain C: the specification of mahe_absmax_f32. */
#include "../kernels.h"
#include "bits.h"

uint32_t MAHE_CALL mahe_absmax_scalar(const float *x, size_t n)
{
    uint32_t absmax = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = magnitude_of(x[i]);
        if (magnitude > absmax)
            absmax = magnitude;
    }
    return absmax;
}
