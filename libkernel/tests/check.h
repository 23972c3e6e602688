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

/* Any kernel; the arguments say which. */
typedef void (*kernel)(void);

/* The arguments of a kernel as System V on x86-64 and AAPCS64 pass them: integers and pointers in order, and by
 * themselves the bits of the floating ones in order. What a kernel does not take stays 0. */
struct call {
    uint64_t word[6];
    uint64_t real[2];
};

uint64_t word_of(const void *pointer);
uint64_t word_32(uint32_t value); /* the upper half of the register is junk, as it may be */
uint64_t real_f(float value);     /* likewise */
uint64_t real_d(double value);

/* Runs fn and verifies what the calling convention promises. Returns the integer result register; the upper half of a
 * 32-bit result is unspecified, and all of it when fn returns nothing. */
uint64_t call_kernel(kernel fn, const struct call *call, const char *tier);

/* Whether call_kernel can notice on this CPU that a kernel left the upper halves of the vectors in use. */
int sees_upper_halves(void);

/* One check for each group of kernels; each takes a tier this CPU can run. */
void check_reduce_add(const struct mahe_table *tier);
void check_sgd_update(const struct mahe_table *tier);
void check_fold(const struct mahe_table *tier);
void check_absmax(const struct mahe_table *tier);
void check_stats(const struct mahe_table *tier);
void check_outer(const struct mahe_table *tier);
void check_adamw(const struct mahe_table *tier);
void check_bf16(const struct mahe_table *tier);
void check_quantise(const struct mahe_table *tier);
void check_decode(const struct mahe_table *tier);
void check_fold_blocks(const struct mahe_table *tier);
void check_topk(const struct mahe_table *tier);
void check_segments(const struct mahe_table *tier);
void check_long(const struct mahe_table *tier);
void check_huge(const struct mahe_table *tier);

/* What the public functions do before a tier runs; `none` is NULL. */
void check_tiers(const struct mahe_table *none);
void check_arguments(const struct mahe_table *none);

#endif
