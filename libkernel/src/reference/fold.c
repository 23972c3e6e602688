/* The fixed-point fold in plain C: the specification of mahe_fold_f32_i64. */
#include <math.h>

#include "../kernels.h"

void MAHE_CALL mahe_fold_scalar(int64_t *acc, const float *delta, double scale, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double product = (double)delta[i] * scale;
        /* A broken precondition must stay harmless: converting such a value to an integer is undefined in C. */
        const int64_t rounded = fabs(product) <= 0x1p51 ? (int64_t)rint(product) : 0;
        acc[i] = (int64_t)((uint64_t)acc[i] + (uint64_t)rounded);
    }
}
