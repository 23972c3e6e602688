/* Outer momentum and Nesterov momentum in plain C: the specification of mahe_momentum_f32 and mahe_nesterov_f32. */
#include "../kernels.h"

void MAHE_CALL mahe_momentum_scalar(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + g[i];
        update[i] = lr * m[i];
    }
}

void MAHE_CALL mahe_nesterov_scalar(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + g[i];
        update[i] = lr * (g[i] + mu * m[i]);
    }
}
