/* todo_neon.c: kernels of this tier that have no assembly yet call the plain C. Delete each as it comes. */
#include "../kernels.h"

#ifdef MAHE_AARCH64_ASM

void MAHE_CALL mahe_reduce_add_neon(float *dst, const float *src, float weight, size_t n)
{
    mahe_reduce_add_scalar(dst, src, weight, n);
}

void MAHE_CALL mahe_sgd_update_neon(float *params, const float *grad, float lr, size_t n)
{
    mahe_sgd_update_scalar(params, grad, lr, n);
}

void MAHE_CALL mahe_fold_neon(int64_t *acc, const float *delta, double scale, size_t n)
{
    mahe_fold_scalar(acc, delta, scale, n);
}

void MAHE_CALL mahe_stats_neon(const float *x, size_t n, mahe_stats *out)
{
    mahe_stats_scalar(x, n, out);
}

void MAHE_CALL mahe_momentum_neon(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    mahe_momentum_scalar(update, m, g, lr, mu, n);
}

void MAHE_CALL mahe_nesterov_neon(float *update, float *m, const float *g, float lr, float mu, size_t n)
{
    mahe_nesterov_scalar(update, m, g, lr, mu, n);
}

void MAHE_CALL mahe_adamw_neon(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)
{
    mahe_adamw_scalar(params, m, v, g, step, n);
}

void MAHE_CALL mahe_bf16_from_f32_neon(uint16_t *dst, const float *src, size_t n)
{
    mahe_bf16_from_f32_scalar(dst, src, n);
}

void MAHE_CALL mahe_f32_from_bf16_neon(float *dst, const uint16_t *src, size_t n)
{
    mahe_f32_from_bf16_scalar(dst, src, n);
}

uint32_t MAHE_CALL mahe_add_absmax_neon(float *a, const float *x, const float *residual, size_t n)
{
    return mahe_add_absmax_scalar(a, x, residual, n);
}

void MAHE_CALL mahe_encode_q8_neon(int8_t *codes, float *a, float scale, float inverse, size_t n)
{
    mahe_encode_q8_scalar(codes, a, scale, inverse, n);
}

void MAHE_CALL mahe_encode_q4_neon(uint8_t *codes, float *a, float scale, float inverse, size_t n)
{
    mahe_encode_q4_scalar(codes, a, scale, inverse, n);
}

void MAHE_CALL mahe_decode_q8_neon(float *x, const int8_t *codes, float scale, size_t n)
{
    mahe_decode_q8_scalar(x, codes, scale, n);
}

void MAHE_CALL mahe_decode_q4_neon(float *x, const uint8_t *codes, float scale, size_t n)
{
    mahe_decode_q4_scalar(x, codes, scale, n);
}

void MAHE_CALL mahe_decode_add_q8_neon(float *dst, const int8_t *codes, float scale, float weight, size_t n)
{
    mahe_decode_add_q8_scalar(dst, codes, scale, weight, n);
}

void MAHE_CALL mahe_decode_add_q4_neon(float *dst, const uint8_t *codes, float scale, float weight, size_t n)
{
    mahe_decode_add_q4_scalar(dst, codes, scale, weight, n);
}

void MAHE_CALL mahe_fold_q8_neon(int64_t *acc, const int8_t *codes, float scale, double factor, size_t n)
{
    mahe_fold_q8_scalar(acc, codes, scale, factor, n);
}

void MAHE_CALL mahe_fold_q4_neon(int64_t *acc, const uint8_t *codes, float scale, double factor, size_t n)
{
    mahe_fold_q4_scalar(acc, codes, scale, factor, n);
}

void MAHE_CALL mahe_topk_count_neon(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)
{
    mahe_topk_count_scalar(counts, x, level, n);
}

void MAHE_CALL mahe_topk_take_neon(uint32_t *indices, float *values, const float *x, size_t n, uint32_t threshold, size_t ties)
{
    mahe_topk_take_scalar(indices, values, x, n, threshold, ties);
}

#else
typedef int mahe_no_assembly_here; /* C forbids an empty file */
#endif
