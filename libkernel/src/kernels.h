/* kernels.h: what the files of libkernel share among themselves. Not installed, not part of the contract. */
#ifndef MAHE_KERNELS_INTERNAL_H
#define MAHE_KERNELS_INTERNAL_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "../include/mahe_kernel.h"

/* x87 arithmetic keeps extra bits: the results would not be those of the contract. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "libkernel needs float arithmetic without extra precision (on x86 build with -msse2 -mfpmath=sse)"
#endif

/* Assembly exists once per CPU: on x86-64 for the System V convention, which the compiler bridges on Windows. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#define MAHE_X86_64_ASM 1
#endif
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#define MAHE_AARCH64_ASM 1
#endif
#if defined(__x86_64__) && defined(_WIN32)
#define MAHE_CALL __attribute__((sysv_abi))
#else
#define MAHE_CALL
#endif

#define MAHE_TOPK_BUCKETS 2048

/* Where the radix select stands: counts the entries whose upper bits are `prefix` by the next bits. */
struct mahe_topk_level {
    uint32_t prefix_shift; /* upper bits = (bits & 0x7fffffff) >> prefix_shift */
    uint32_t prefix;
    uint32_t shift;        /* bucket = (bits & 0x7fffffff) >> shift & mask */
    uint32_t mask;
};

/* Every kernel of a tier: X(member, result, parameters). Arguments are already checked: n > 0, no NULL unless said, no
 * forbidden overlap. Kernels on quantised data get one block at a time, with its scale. */
#define MAHE_KERNELS(X) \
    X(reduce_add, void, (float *dst, const float *src, float weight, size_t n)) \
    X(sgd_update, void, (float *params, const float *grad, float lr, size_t n)) \
    X(fold, void, (int64_t *acc, const float *delta, double scale, size_t n)) \
    X(absmax, uint32_t, (const float *x, size_t n)) \
    X(stats, void, (const float *x, size_t n, mahe_stats *out)) \
    X(momentum, void, (float *update, float *m, const float *g, float lr, float mu, size_t n)) \
    X(nesterov, void, (float *update, float *m, const float *g, float lr, float mu, size_t n)) \
    X(adamw, void, (float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)) \
    X(bf16_from_f32, void, (uint16_t *dst, const float *src, size_t n)) \
    X(f32_from_bf16, void, (float *dst, const uint16_t *src, size_t n)) \
    X(add_absmax, uint32_t, (float *a, const float *x, const float *residual, size_t n)) \
    X(encode_q8, void, (int8_t *codes, float *a, float scale, float inverse, size_t n)) \
    X(encode_q4, void, (uint8_t *codes, float *a, float scale, float inverse, size_t n)) \
    X(decode_q8, void, (float *x, const int8_t *codes, float scale, size_t n)) \
    X(decode_q4, void, (float *x, const uint8_t *codes, float scale, size_t n)) \
    X(decode_add_q8, void, (float *dst, const int8_t *codes, float scale, float weight, size_t n)) \
    X(decode_add_q4, void, (float *dst, const uint8_t *codes, float scale, float weight, size_t n)) \
    X(fold_q8, void, (int64_t *acc, const int8_t *codes, float scale, double factor, size_t n)) \
    X(fold_q4, void, (int64_t *acc, const uint8_t *codes, float scale, double factor, size_t n)) \
    X(topk_count, void, (uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)) \
    X(topk_take, void, (uint32_t *indices, float *values, const float *x, size_t n, uint32_t threshold, size_t ties))

/* One tier. */
struct mahe_table {
    const char *name;
#define MAHE_MEMBER(member, result, parameters) result(MAHE_CALL *member) parameters;
    MAHE_KERNELS(MAHE_MEMBER)
#undef MAHE_MEMBER
};

/* The same functions by name, once for each tier this build has. */
#define MAHE_DECLARE_SCALAR(member, result, parameters) result MAHE_CALL mahe_##member##_scalar parameters;
#define MAHE_DECLARE_AVX2(member, result, parameters) result MAHE_CALL mahe_##member##_avx2 parameters;
#define MAHE_DECLARE_NEON(member, result, parameters) result MAHE_CALL mahe_##member##_neon parameters;
MAHE_KERNELS(MAHE_DECLARE_SCALAR)
#ifdef MAHE_X86_64_ASM
MAHE_KERNELS(MAHE_DECLARE_AVX2)
#endif
#ifdef MAHE_AARCH64_ASM
MAHE_KERNELS(MAHE_DECLARE_NEON)
#endif

/* The tiers this build has, worst first; NULL ends the list. */
extern const struct mahe_table *const mahe_tables[];

/* The tier in use. */
const struct mahe_table *mahe_table_in_use(void);

/* 1 if CPU and operating system can run the tier of that table. */
int mahe_cpu_can_run(const struct mahe_table *table);

/* The running state of mahe_stats_f32. */
struct mahe_stats_state {
    double lane[16];
    uint32_t absmax[8];   /* bits of |x|; the result is the largest of the eight */
    uint32_t finite[8];   /* finite entries counted by NEON; at most 2^32 - 1 each */
    uint64_t nonfinite;
};

/* Adds x[0..n) to the state, x[0] going to lane 0. */
void mahe_stats_add(struct mahe_stats_state *state, const float *x, size_t n);
/* Sums the lanes in the fixed order and writes the result. */
void mahe_stats_finish(struct mahe_stats_state *state, mahe_stats *out);

#ifdef MAHE_X86_64_ASM
/* The assembly part of mahe_stats_avx2: blocks of 16 elements. Right only if all are finite, which absmax tells. */
void MAHE_CALL mahe_stats_blocks_avx2(const float *x, size_t blocks, struct mahe_stats_state *state);
#endif
#ifdef MAHE_AARCH64_ASM
/* The assembly part of mahe_stats_neon: blocks of 16 elements, at most 2^30 of them. */
void MAHE_CALL mahe_stats_blocks_neon(const float *x, size_t blocks, struct mahe_stats_state *state);
#endif

#endif
