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

/* Assembly exists once per CPU, for the System V convention; on Windows the compiler bridges it at the call. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#define MAHE_X86_64_ASM 1
#endif
#if defined(__x86_64__) && defined(_WIN32)
#define MAHE_CALL __attribute__((sysv_abi))
#else
#define MAHE_CALL
#endif

/* One tier. Arguments are already checked: n > 0, no NULL, no forbidden overlap. */
struct mahe_table {
    const char *name;
    void(MAHE_CALL *reduce_add)(float *dst, const float *src, float weight, size_t n);
    void(MAHE_CALL *sgd_update)(float *params, const float *grad, float lr, size_t n);
    void(MAHE_CALL *fold)(int64_t *acc, const float *delta, double scale, size_t n);
    void(MAHE_CALL *stats)(const float *x, size_t n, mahe_stats *out);
};

/* The tiers this build has, worst first; NULL ends the list. */
extern const struct mahe_table *const mahe_tables[];

/* 1 if CPU and operating system can run the tier of that table. */
int mahe_cpu_can_run(const struct mahe_table *table);

/* The running state of mahe_stats_f32. */
struct mahe_stats_state {
    double lane[16];
    uint32_t absmax[8];   /* bits of |x|; the result is the largest of the eight */
    uint32_t finite[8];   /* finite entries counted by assembly; at most 2^32 - 1 each */
    uint64_t nonfinite;
};

/* Adds x[0..n) to the state, x[0] going to lane 0. */
void mahe_stats_add(struct mahe_stats_state *state, const float *x, size_t n);
/* Sums the lanes in the fixed order and writes the result. */
void mahe_stats_finish(struct mahe_stats_state *state, mahe_stats *out);

void MAHE_CALL mahe_reduce_add_f32_scalar(float *dst, const float *src, float weight, size_t n);
void MAHE_CALL mahe_sgd_update_f32_scalar(float *params, const float *grad, float lr, size_t n);
void MAHE_CALL mahe_fold_f32_i64_scalar(int64_t *acc, const float *delta, double scale, size_t n);
void MAHE_CALL mahe_stats_f32_scalar(const float *x, size_t n, mahe_stats *out);

#ifdef MAHE_X86_64_ASM
void MAHE_CALL mahe_reduce_add_f32_avx2(float *dst, const float *src, float weight, size_t n);
void MAHE_CALL mahe_sgd_update_f32_avx2(float *params, const float *grad, float lr, size_t n);
void MAHE_CALL mahe_fold_f32_i64_avx2(int64_t *acc, const float *delta, double scale, size_t n);
void MAHE_CALL mahe_stats_f32_avx2(const float *x, size_t n, mahe_stats *out);
/* The assembly part of the line above: blocks of 16 elements, at most 2^30 of them. */
void MAHE_CALL mahe_stats_blocks_f32_avx2(const float *x, size_t blocks, struct mahe_stats_state *state);
#endif

#endif
