/* check.h: what the checks of libkernel share. In the manner of checkasm: every tier against a plain model, on buffers
 * between guard pages, through a trampoline that watches the registers. POSIX only.
 */
#ifndef MAHE_CHECK_H
#define MAHE_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../src/kernels.h"

#define N_SMALL 300      /* every length up to here */
#define N_MAX 16385      /* the longest of the lengths 2^k - 1, 2^k, 2^k + 1 */
#define CANARY_BYTES 256 /* checked on both sides of a buffer, as far as there is room */

/* Writable memory between two unreadable pages. */
struct arena {
    unsigned char *start;
    size_t bytes;
};

enum edge { AT_START, AT_END };

struct arena arena_new(size_t bytes);
/* A place of `bytes` that starts `shift` bytes after the lower guard page, or ends as many before the upper one.
 * The canaries around it are laid anew. */
void *arena_place(const struct arena *arena, size_t bytes, enum edge edge, size_t shift);
/* Fails if a canary around the place has changed. */
void arena_verify(const struct arena *arena, const void *place, size_t bytes);

/* Names what is being checked; a failure or a crash prints it. */
void label(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The lengths to try, ascending; 0 ends the list (0 itself is never passed to a tier: the dispatcher returns). */
const size_t *check_lengths(void);

uint64_t random_bits(void);
float random_uniform(void);  /* [-1, 1) */
float random_finite(void);   /* any exponent, any sign */
float random_special(void);  /* zeros, subnormals, infinities, NaNs, extremes */

uint32_t float_bits(float value);
float bits_float(uint32_t bits);
/* Same bits, or both NaN. */
int same_float(float a, float b);

/* Any kernel; call_* know the real type from the arguments. */
typedef void (*kernel)(void);

/* Run fn(a, b, scalar, n) or fn(x, n, out) and verify what the calling convention promises. */
void call_float(kernel fn, void *a, const void *b, float scalar, size_t n, const char *tier);
void call_double(kernel fn, void *a, const void *b, double scalar, size_t n, const char *tier);
void call_sized(kernel fn, const void *x, size_t n, void *out, const char *tier);

/* One check per file; each takes a tier this CPU can run. */
void check_reduce_add(const struct mahe_table *tier);
void check_sgd_update(const struct mahe_table *tier);
void check_fold(const struct mahe_table *tier);
void check_stats(const struct mahe_table *tier);
void check_dispatch(void);

#endif
