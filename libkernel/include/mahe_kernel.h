/* mahe_kernel.h: the contract of libkernel, the numeric kernels of MAHE. Usable from any C or C++ program.
 *
 * This file is the only one a caller needs; src/reference/ holds the same kernels in plain C and is their
 * specification. It is not an array library: one-dimensional, contiguous, one pass each.
 *
 * Rules that hold for every function
 *   Units       n counts elements, never bytes. Values have no unit of their own.
 *   Layout      Arrays are contiguous, native-endian, aligned to their own element (4 or 8 bytes), no more. A kernel
 *               reads and writes exactly [p, p + n): never one byte beside it.
 *   Aliasing    "Exact alias" means that two pointers are equal. It is allowed only where a function says so. Partial
 *               overlap is always forbidden and answered with MAHE_ERR_OVERLAP, nothing written.
 *   n == 0      Returns MAHE_OK before any load; the pointers may then be NULL.
 *   Arithmetic  IEEE 754, round to nearest even, each operation rounded by itself (never fused). All tiers give the
 *               same bits, except that the sign and payload of a NaN result are unspecified. The caller leaves the
 *               rounding mode at nearest; the flush-to-zero bits are honoured and should be off.
 *   State       No allocation, no threads, no errno, no output. Functions may be called from any number of threads
 *               on arrays that do not overlap. The only global is the dispatch table.
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
#define MAHE_ABI_VERSION 1

#define MAHE_OK 0
#define MAHE_ERR_NULL 1        /* a pointer is NULL and n is not 0 */
#define MAHE_ERR_SIZE 2        /* n elements do not fit into the address space */
#define MAHE_ERR_OVERLAP 3     /* the arrays overlap in a way the function does not allow */
#define MAHE_ERR_UNKNOWN 4     /* no tier of that name */
#define MAHE_ERR_UNSUPPORTED 5 /* a known tier that this CPU, its operating system or this build lacks */

/* What mahe_stats_f32 found. */
typedef struct mahe_stats {
    uint64_t nonfinite; /* entries that are NaN or infinite */
    float absmax;       /* largest |x[i]| of the finite entries; +0 if there are none */
    double sum_squares; /* sum of x[i]^2 over the finite entries; +0 if there are none */
} mahe_stats;

/* MAHE_ABI_VERSION and sizeof(mahe_stats) as the library was built: compare both before calling anything else. */
MAHE_API int32_t mahe_abi_version(void);
MAHE_API uint64_t mahe_sizeof_stats(void);

/* The tier in use: "scalar" (plain C) or "avx2". A static string; never NULL. */
MAHE_API const char *mahe_kernel_impl(void);

/* Uses the named tier from now on, in the whole process: "scalar", "avx2", or "auto" (the best one, as at start).
 * MAHE_ERR_UNKNOWN, MAHE_ERR_UNSUPPORTED: the tier stays as it was. */
MAHE_API int32_t mahe_kernel_set_impl(const char *name);

/* dst[i] = dst[i] + weight * src[i], float32, product and sum rounded separately. Exact alias allowed.
 * Error of one element against the real value: |weight * src[i]| * 2^-24 + |result| * 2^-24 (no overflow or
 * underflow). */
MAHE_API int32_t mahe_reduce_add_f32(float *dst, const float *src, float weight, size_t n);

/* params[i] = params[i] - lr * grad[i]; bit for bit mahe_reduce_add_f32(params, grad, -lr, n). Exact alias allowed. */
MAHE_API int32_t mahe_sgd_update_f32(float *params, const float *grad, float lr, size_t n);

/* acc[i] = acc[i] + rint((double)delta[i] * scale): the fixed-point fold of a delta. The product is one float64
 * multiplication; rint goes to the nearest integer, ties to even; the sum is int64 and wraps. No alias.
 * Precondition, the caller's duty and not checked: every product is finite and |product| <= 2^51. Beyond that the
 * value added is unspecified and may differ between tiers; still nothing outside acc[0..n) is touched.
 * Error of one fold: at most 1/2 unit of acc plus |product| * 2^-53. Integer sums do not depend on the order. */
MAHE_API int32_t mahe_fold_f32_i64(int64_t *acc, const float *delta, double scale, size_t n);

/* One pass over x: see mahe_stats. absmax is exact (taken on the bits). sum_squares has a fixed order, so its bits are
 * equal on all tiers: 16 float64 lanes, lane j adds x[i]^2 (exact in float64) for i = j, j + 16, ... in that order;
 * then lane[j] += lane[j + s] for j < s, with s = 8, 4, 2, 1; lane[0] is the result. Relative error at most
 * (n / 16 + 4) * 2^-53. *out must not overlap x. n == 0 writes zeros to *out, which must not be NULL. */
MAHE_API int32_t mahe_stats_f32(const float *x, size_t n, mahe_stats *out);
/* <<< cffi */

#ifdef __cplusplus
}
#endif

#endif
