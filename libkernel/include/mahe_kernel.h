/* mahe_kernel.h: the contract of libkernel, the numeric kernels of MAHE. Usable from any C or C++ program.
 *
 * This file is the only one a caller needs; src/reference/ holds the same kernels in plain C and is their
 * specification. It is not an array library: one-dimensional, contiguous, one pass each.
 *
 * Rules that hold for every function
 *   Units       n counts elements, never bytes. Values have no unit of their own.
 *   Layout      Arrays are contiguous, native-endian, aligned to their own element (1, 2, 4 or 8 bytes), no more. A
 *               kernel reads and writes exactly [p, p + n): never one byte beside it.
 *   Aliasing    "Exact alias" means that two pointers are equal. It is allowed only where a function says so. Partial
 *               overlap of what is written is always forbidden and answered with MAHE_ERR_OVERLAP, nothing written.
 *               Arrays that are only read may overlap as they like.
 *   n == 0      Returns MAHE_OK before any load; the pointers may then be NULL. (mahe_topk_f32: k == 0.)
 *   Arithmetic  IEEE 754, round to nearest even, each operation rounded by itself (never fused). All tiers give the
 *               same bits, except that the sign and payload of a NaN result are unspecified. The caller leaves the
 *               rounding mode at nearest; the flush-to-zero bits are honoured and should be off.
 *   Range       float32 unless a cast says otherwise, so that is also the width of what is added to. Each operation is
 *               within 2^-24 of its own result (float64: 2^-53), 2^-150 in absolute terms below the normal range;
 *               overflow gives infinity. Every value is taken, NaN and infinities too, where no range is given; the
 *               bounds below leave overflow and what lies below the normal range aside.
 *   State       No allocation, no threads, no errno, no output; at most 40 KiB of stack (mahe_topk_f32 takes 32 KiB on
 *               x86-64). Functions may be called from any number of threads on arrays that do not overlap. What a call
 *               reads must not change during the call: results are then unspecified, and mahe_topk_f32, which passes
 *               over x four times, could write beyond its k entries. The only global is the dispatch table.
 *   Result      int32_t status, MAHE_OK or one of MAHE_ERR_*. On an error nothing has been written.
 */
#ifndef MAHE_KERNEL_H
#define MAHE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(MAHE_BUILD)
#define MAHE_API __declspec(dllexport)
#elif defined(_WIN32)
#define MAHE_API
#else
#define MAHE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Python reads what stands between the two markers (cffi's cdef) after removing MAHE_API: no other preprocessor lines
 * than #define of an integer, no attributes. A change here that old callers cannot bear raises MAHE_ABI_VERSION. */
/* >>> cffi */
#define MAHE_ABI_VERSION 2

#define MAHE_OK 0
#define MAHE_ERR_NULL 1        /* a pointer is NULL and n is not 0 */
#define MAHE_ERR_SIZE 2        /* n elements do not fit into the address space */
#define MAHE_ERR_OVERLAP 3     /* the arrays overlap in a way the function does not allow */
#define MAHE_ERR_UNKNOWN 4     /* no tier of that name */
#define MAHE_ERR_UNSUPPORTED 5 /* a known tier that this CPU, its operating system or this build lacks */
#define MAHE_ERR_BLOCK 6       /* the block length is not one of those the function allows */

#define MAHE_BLOCK_MIN 32      /* block lengths: multiples of 32 in this range */
#define MAHE_BLOCK_MAX 65536

/* What mahe_stats_f32 found. */
typedef struct mahe_stats {
    uint64_t nonfinite; /* entries that are NaN or infinite */
    float absmax;       /* largest |x[i]| of the finite entries; +0 if there are none */
    double sum_squares; /* sum of x[i]^2 over the finite entries; +0 if there are none */
} mahe_stats;

/* One piece of mahe_axpy_segments_f32. */
typedef struct mahe_segment {
    float *dst;
    const float *src;
    uint64_t n;
} mahe_segment;

/* The numbers of one AdamW step, each already rounded to float32 by the caller. */
typedef struct mahe_adamw {
    float lr;
    float beta1;
    float rest1; /* 1 - beta1 */
    float beta2;
    float rest2; /* 1 - beta2 */
    float unbias1; /* 1 / (1 - beta1^t), t = 1, 2, ... */
    float unbias2; /* 1 / (1 - beta2^t) */
    float eps;
    float weight_decay;
} mahe_adamw;

/* MAHE_ABI_VERSION and the sizes of the structs as the library was built: compare them before calling anything else. */
MAHE_API int32_t mahe_abi_version(void);
MAHE_API uint64_t mahe_sizeof_stats(void);
MAHE_API uint64_t mahe_sizeof_segment(void);
MAHE_API uint64_t mahe_sizeof_adamw(void);

/* The tier in use: "scalar" (plain C), "avx2" or "neon". A static string; never NULL. */
MAHE_API const char *mahe_kernel_impl(void);

/* What CPU and operating system offer of what the tiers ask for, by name with a space between: "sse2 avx avx2 ymm".
 * Each by itself: sse2, avx and avx2 are the CPU's, ymm says that the operating system keeps these registers.
 * A static string, "" if this build has only plain C; never NULL. */
MAHE_API const char *mahe_cpu_features(void);

/* Uses the named tier from now on, in the whole process: "scalar", "avx2", "neon", or "auto" (the best one, as at
 * start). MAHE_ERR_UNKNOWN, MAHE_ERR_UNSUPPORTED: the tier stays as it was. */
MAHE_API int32_t mahe_kernel_set_impl(const char *name);

/* dst[i] = dst[i] + weight * src[i], float32, product and sum rounded separately. Exact alias allowed.
 * Error of one element against the real value: |weight * src[i]| * 2^-24 + |result| * 2^-24. */
MAHE_API int32_t mahe_reduce_add_f32(float *dst, const float *src, float weight, size_t n);

/* params[i] = params[i] - lr * grad[i]; bit for bit mahe_reduce_add_f32(params, grad, -lr, n), with its error. Exact
 * alias allowed. */
MAHE_API int32_t mahe_sgd_update_f32(float *params, const float *grad, float lr, size_t n);

/* acc[i] = acc[i] + rint((double)delta[i] * scale): the fixed-point fold of a delta. The product is one float64
 * multiplication; rint goes to the nearest integer, ties to even; the sum is int64 and wraps. No alias.
 * Precondition, the caller's duty and not checked: every product is finite and |product| <= 2^51. Beyond that the
 * value added is unspecified and may differ between tiers; still nothing outside acc[0..n) is touched.
 * Error of one fold: at most 1/2 unit of acc plus |product| * 2^-53. Integer sums do not depend on the order. */
MAHE_API int32_t mahe_fold_f32_i64(int64_t *acc, const float *delta, double scale, size_t n);

/* *out = the largest |x[i]|, taken as the largest of the unsigned numbers bits & 0x7fffffff, whose bits it has: exact,
 * and equal on all tiers even for a NaN. Infinity is the largest but for NaN, and a NaN the largest of all: the result
 * is finite if, and only if, every entry is. *out must not overlap x. n == 0 writes +0 to *out, which must not be
 * NULL. */
MAHE_API int32_t mahe_absmax_f32(const float *x, size_t n, float *out);

/* One pass over x: see mahe_stats. absmax is exact (taken on the bits). sum_squares has a fixed order, so its bits are
 * equal on all tiers: 16 float64 lanes, lane j adds x[i]^2 (exact in float64) for i = j, j + 16, ... in that order;
 * then lane[j] += lane[j + s] for j < s, with s = 8, 4, 2, 1; lane[0] is the result. Relative error at most
 * (n / 16 + 4) * 2^-53; it cannot overflow. *out must not overlap x. n == 0 writes zeros to *out, which must not be
 * NULL. */
MAHE_API int32_t mahe_stats_f32(const float *x, size_t n, mahe_stats *out);

/* The pieces in order, each as mahe_reduce_add_f32(dst, src, weight, n): one call for a model of many small tensors.
 * count segments; one of 0 elements is skipped. All are checked before the first is written, each by itself. Segments
 * may touch each other; the later one then sees what the earlier wrote. No dst may overlap the list itself. */
MAHE_API int32_t mahe_axpy_segments_f32(const mahe_segment *segments, float weight, size_t count);

/* Outer momentum (FedAvgM): m[i] = mu * m[i] + g[i]; update[i] = lr * m[i]. update may be an exact alias of g.
 * Error of an entry: two roundings of m and one more of update, each relative 2^-24 of its own result. */
MAHE_API int32_t mahe_momentum_f32(float *update, float *m, const float *g, float lr, float mu, size_t n);

/* Outer Nesterov momentum (DiLoCo): m[i] = mu * m[i] + g[i]; update[i] = lr * (g[i] + mu * m[i]), the new m[i].
 * update may be an exact alias of g.
 * Error of an entry: two roundings of m and three more of update (mu * m, the sum, times lr), each relative 2^-24 of
 * its own result. */
MAHE_API int32_t mahe_nesterov_f32(float *update, float *m, const float *g, float lr, float mu, size_t n);

/* One AdamW step (Loshchilov and Hutter 2019, algorithm 2), each operation rounded by itself, in this order:
 *     m = beta1 * m + rest1 * g
 *     v = beta2 * v + rest2 * (g * g)
 *     d = (m * unbias1) / (sqrt(v * unbias2) + eps) + params * weight_decay
 *     params = params - lr * d
 * Range: v >= 0, and beta2, rest2, unbias2 >= 0, else the root is NaN. eps > 0, else v = 0 gives NaN or infinity.
 * |g| >= 2^64 makes v infinite for good; that entry then moves by its decay alone.
 * Error: 16 roundings, each relative 2^-24 of its own result. To first order the new v is within 3 * 2^-24 of itself
 * and the divisor, sqrt(v * unbias2) + eps, within 4 * 2^-24; the sums in m, d and params may cancel.
 * No aliases. `step` must not overlap the arrays. */
MAHE_API int32_t mahe_adamw_f32(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n);

/* bfloat16 is the upper half of a float32. To it: nearest, ties to even, on the bits; overflow gives infinity; a NaN
 * gives (bits >> 16) | 0x40, a quiet NaN. Subnormals are kept.
 * Relative error of a normal result 2^-8 at most, of a subnormal one 2^-134 in absolute terms. No alias. */
MAHE_API int32_t mahe_bf16_from_f32(uint16_t *dst, const float *src, size_t n);
/* From it: exact. */
MAHE_API int32_t mahe_f32_from_bf16(float *dst, const uint16_t *src, size_t n);

/* Block quantisation with error feedback, in one pass. Blocks of `block` elements, the last one may be shorter; one
 * scale for each. With Q = 127 (q8) or 7 (q4), for each block:
 *     a[i] = x[i] + residual[i]              (x[i] alone when residual is NULL)
 *     amax = max |a[i]|, taken on the bits
 *     amax >= 2^120, or any a[i] is not finite:  scale = the quiet NaN 0x7fc00000, all codes 0, new_residual = +0
 *     amax < 2^-100 (also all zeros):            scale = +0, all codes 0, new_residual[i] = a[i]
 *     else:  scale = amax / Q,  inverse = Q / amax,  code[i] = rint(a[i] * inverse), ties to even, so |code| <= Q,
 *            new_residual[i] = a[i] - (float)code[i] * scale, and |new_residual[i]| <= scale * (1/2 + 2^-15)
 * So what was sent plus what is left over is a[i] to the last bit (but nothing is left of a block whose scale is NaN:
 * its data is lost, and said to be). The bound is that of the last case alone: below 2^-100 all of a[i] is left over.
 * a[i] itself is one float32 sum, within 2^-24 of its own result. new_residual is also the working memory, so never
 * NULL; it may be an exact alias of residual, never of x.
 * codes: q8 one int8_t for each element. q4 two to a byte: element 2 i in the low half, 2 i + 1 in the high half, each
 * as code + 8; (n + 1) / 2 bytes in all; when n is odd the last high half is 8 (code 0).
 * scales: (n + block - 1) / block floats. MAHE_ERR_BLOCK. */
MAHE_API int32_t mahe_quantise_q8_f32(int8_t *codes, float *scales, float *new_residual, const float *x,
                                      const float *residual, size_t block, size_t n);
MAHE_API int32_t mahe_quantise_q4_f32(uint8_t *codes, float *scales, float *new_residual, const float *x,
                                      const float *residual, size_t block, size_t n);

/* x[i] = (float)code[i] * scale of its block. Any codes are taken: -128 (q8) and -8 (q4), too, and any scales.
 * Error of an entry against the real product: |x[i]| * 2^-24, the one rounding. No alias. */
MAHE_API int32_t mahe_dequantise_q8_f32(float *x, const int8_t *codes, const float *scales, size_t block, size_t n);
MAHE_API int32_t mahe_dequantise_q4_f32(float *x, const uint8_t *codes, const float *scales, size_t block, size_t n);

/* dst[i] = dst[i] + weight * ((float)code[i] * scale): the bits of dequantise, then reduce_add.
 * Error of an entry, to first order: |weight * code[i] * scale| * 2^-23 for the two products and |result| * 2^-24 for
 * the sum. No alias. */
MAHE_API int32_t mahe_dequantise_add_q8_f32(float *dst, const int8_t *codes, const float *scales, float weight,
                                            size_t block, size_t n);
MAHE_API int32_t mahe_dequantise_add_q4_f32(float *dst, const uint8_t *codes, const float *scales, float weight,
                                            size_t block, size_t n);

/* acc[i] = acc[i] + rint((double)((float)code[i] * scale of its block) * factor): the bits of dequantise, then
 * mahe_fold_f32_i64, with its precondition; so whoever folds has refused scales that are not finite before.
 * Error of one fold: that of mahe_fold_f32_i64, and |code[i] * scale| * 2^-24 * |factor| more for the inner product,
 * which is float32. No alias. */
MAHE_API int32_t mahe_fold_q8_i64(int64_t *acc, const int8_t *codes, const float *scales, double factor, size_t block,
                                  size_t n);
MAHE_API int32_t mahe_fold_q4_i64(int64_t *acc, const uint8_t *codes, const float *scales, double factor, size_t block,
                                  size_t n);

/* The k entries of the largest magnitude: their places in ascending order and their values. Magnitudes compare as the
 * unsigned numbers bits & 0x7fffffff (so infinities, then NaNs, are the largest); of equal ones the lower places come
 * first. Exact: values are copied. indices and values have k entries. k <= n and n < 2^32, else MAHE_ERR_SIZE; k == 0
 * returns MAHE_OK at once. Nothing may overlap. */
MAHE_API int32_t mahe_topk_f32(uint32_t *indices, float *values, const float *x, size_t k, size_t n);
/* <<< cffi */

#ifdef __cplusplus
}
#endif

#endif
