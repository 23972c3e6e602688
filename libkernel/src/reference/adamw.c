/* One AdamW step in plain C: the specification of mahe_adamw_f32. */
#include <math.h>

#include "../kernels.h"

void MAHE_CALL mahe_adamw_scalar(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = step->beta1 * m[i] + step->rest1 * g[i];
        v[i] = step->beta2 * v[i] + step->rest2 * (g[i] * g[i]);
        const float below = sqrtf(v[i] * step->unbias2) + step->eps;
        const float direction = m[i] * step->unbias1 / below + params[i] * step->weight_decay;
        params[i] = params[i] - step->lr * direction;
    }
}
