/* Weighted sum and SGD step in plain C: the specification of mahe_reduce_add_f32 and mahe_sgd_update_f32. */
#include "../kernels.h"

void MAHE_CALL mahe_reduce_add_scalar(float *dst, const float *src, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = dst[i] + weight * src[i];
}

/* Rounding is symmetric about zero and p - x is p + (-x), so this equals reduce_add with -lr, signed zeros too. */
void MAHE_CALL mahe_sgd_update_scalar(float *params, const float *grad, float lr, size_t n)
{
    for (size_t i = 0; i < n; i++)
        params[i] = params[i] - lr * grad[i];
}
