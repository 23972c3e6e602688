/* check_quantise.c: add_absmax and the encoders of one tier, then mahe_quantise_q8_f32 and mahe_quantise_q4_f32 on it,
 * against the words of the header; also what the header promises about the sum and the size of what is left over. */
#include <stdlib.h>
#include <string.h>

#include "check_model.h"

#define N_LARGE (2 * MAHE_BLOCK_MAX + 33)

static struct arena x_arena;
static struct arena residual_arena;
static struct arena left_arena;
static struct arena codes_arena;
static struct arena scales_arena;
static float x_before[N_LARGE];
static float residual_before[N_LARGE];
static float a[N_LARGE]; /* what is to be sent */

static float largest(const float *values, size_t n)
{
    float found = 0.0f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(values[i]) > found)
            found = fabsf(values[i]);
    return found;
}

static void expect_float(const char *what, size_t i, float got, float expected, float from)
{
    if (!same_float(got, expected))
        fail("%s[%zu] is %a, should be %a (for %a)", what, i, (double)got, (double)expected, (double)from);
}

/* One block with an ordinary scale. */
static void expect_codes(const struct format *format, const float *values, size_t n, const uint8_t *codes,
                         const float *left)
{
    const float amax = largest(values, n);
    const float scale = over(amax, format->q_max);
    const float inverse = over(format->q_max, amax);
    for (size_t i = 0; i < n; i++) {
        const int code = code_at(format, codes, i);
        const int expected = (int)nearest_even((double)times(values[i], inverse));
        if (code != expected || abs(code) > (int)format->q_max)
            fail("code[%zu] of %zu is %d, should be %d (for %a, amax %a)", i, n, code, expected, (double)values[i],
                 (double)amax);
        const float sent = times((float)code, scale);
        expect_float("new_residual", i, left[i], minus(values[i], sent), values[i]);
        if ((double)sent + (double)left[i] != (double)values[i])
            fail("[%zu]: %a sent and %a left over are not %a", i, (double)sent, (double)left[i], (double)values[i]);
        if (fabs((double)left[i]) > (double)scale * (0.5 + 0x1p-15))
            fail("[%zu]: %a left over, with a scale of %a", i, (double)left[i], (double)scale);
    }
}

/* One block as the public functions leave it. */
static void expect_block(const struct format *format, const float *values, size_t n, const uint8_t *codes, float scale,
                         const float *left)
{
    const float amax = largest(values, n);
    int finite = 1;
    for (size_t i = 0; i < n; i++)
        finite = finite && isfinite(values[i]);
    if (finite && amax >= 0x1p-100f && amax < 0x1p120f) {
        expect_float("scales", 0, scale, over(amax, format->q_max), amax);
        expect_codes(format, values, n, codes, left);
        return;
    }
    const int lost = !finite || amax >= 0x1p120f;
    if (float_bits(scale) != (lost ? 0x7fc00000u : 0u))
        fail("the scale of a block that cannot be sent is %#x (amax %a)", (unsigned)float_bits(scale), (double)amax);
    for (size_t i = 0; i < n; i++) {
        if (code_at(format, codes, i) != 0)
            fail("code[%zu] is %d, should be 0 (amax %a)", i, code_at(format, codes, i), (double)amax);
        expect_float("new_residual", i, left[i], lost ? 0.0f : values[i], values[i]);
    }
}

static float random_power(int from, int to)
{
    return ldexpf(random_bits() & 1 ? 1.0f : -1.0f, from + (int)(random_bits() % (uint64_t)(to - from)));
}

/* What a block may hold. Each of these fills values[0..n) for a format. */
static void uniform(float *values, size_t n, const struct format *format)
{
    (void)format;
    const float unit = random_power(-98, 119);
    for (size_t i = 0; i < n; i++)
        values[i] = random_uniform() * unit;
}

static void any_exponent(float *values, size_t n, const struct format *format)
{
    (void)format;
    const uint32_t exponents = 30 + (uint32_t)(random_bits() % 217); /* 246 ends below 2^120 */
    for (size_t i = 0; i < n; i++) {
        const uint32_t exponent = (uint32_t)(random_bits() % exponents);
        values[i] = bits_float(((uint32_t)random_bits() & 0x807fffff) | exponent << 23);
    }
}

/* Halves of a scale that is a power of two: all ties, exactly. */
static void ties(float *values, size_t n, const struct format *format)
{
    const float unit = random_power(-98, 112);
    const uint64_t steps = (uint64_t)format->q_max;
    for (size_t i = 0; i < n; i++)
        values[i] = ((float)(random_bits() % steps) + 0.5f) * (random_bits() & 1 ? unit : -unit);
    values[random_bits() % n] = format->q_max * unit;
}

static float beside(float value, int steps)
{
    return bits_float(float_bits(value) + (uint32_t)steps);
}

/* As near as can be to where one code ends and the next begins, on either side, for any scale. */
static void boundaries(float *values, size_t n, const struct format *format)
{
    const float amax = fabsf(random_power(-98, 118)) * (1.0f + fabsf(random_uniform()));
    const uint64_t steps = (uint64_t)format->q_max;
    for (size_t i = 0; i < n; i++) {
        const float middle = ((float)(random_bits() % steps) + 0.5f) * amax / format->q_max;
        values[i] = beside(random_bits() & 1 ? middle : -middle, (int)(random_bits() % 7) - 3);
    }
    values[random_bits() % n] = amax;
}

static void powers(float *values, size_t n, const struct format *format)
{
    (void)format;
    const int top = -99 + (int)(random_bits() % 219);
    for (size_t i = 0; i < n; i++)
        values[i] = random_power(top - 12, top);
    values[random_bits() % n] = ldexpf(1.0f, top);
}

/* One huge, the rest tiny or zero of either sign. */
static void lonely(float *values, size_t n, const struct format *format)
{
    (void)format;
    for (size_t i = 0; i < n; i++)
        values[i] = bits_float((uint32_t)(random_bits() >> 32) & (random_bits() & 1 ? 0x80000000u : 0x81ffffffu));
    values[random_bits() % n] = random_power(-99, 120);
}

static void equal(float *values, size_t n, const struct format *format)
{
    (void)format;
    const float one = random_power(-99, 119) * (1.0f + fabsf(random_uniform()));
    for (size_t i = 0; i < n; i++)
        values[i] = random_bits() & 1 ? one : -one;
}

/* At both ends of the range of scales, inside of it and outside. */
static void ends(float *values, size_t n, const struct format *format)
{
    (void)format;
    static const uint32_t amaxes[] = {0x0d7fffff, 0x0d800000, 0x0d800001, 0x7b7ffffe, 0x7b7fffff, 0x7b800000};
    const float amax = bits_float(amaxes[random_bits() % 6]);
    for (size_t i = 0; i < n; i++)
        values[i] = random_uniform() * amax;
    values[random_bits() % n] = random_bits() & 1 ? amax : -amax;
}

/* All zeros of either sign, or with subnormals, or with what is just too small to be sent. */
static void nearly_nothing(float *values, size_t n, const struct format *format)
{
    (void)format;
    static const uint32_t masks[] = {0x80000000, 0x80000001, 0x807fffff, 0x8c7fffff};
    const uint32_t mask = masks[random_bits() % 4];
    for (size_t i = 0; i < n; i++)
        values[i] = bits_float((uint32_t)(random_bits() >> 32) & mask);
}

/* One that is not finite, or too large, anywhere. */
static void spoilt(float *values, size_t n, const struct format *format)
{
    static const uint32_t magnitudes[] = {0x7b800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000};
    uniform(values, n, format);
    const uint64_t r = random_bits();
    values[r % n] = bits_float(magnitudes[r >> 32 & 3] | (uint32_t)(r >> 63) << 31);
}

static void specials(float *values, size_t n, const struct format *format)
{
    (void)format;
    for (size_t i = 0; i < n; i++)
        values[i] = random_special();
}

typedef void (*filler)(float *values, size_t n, const struct format *format);

/* From `ends` on they may make blocks that no encoder is asked for. */
static const filler fillers[] = {
    uniform, any_exponent, ties, boundaries, powers, lonely, equal, ends, nearly_nothing, spoilt, specials,
};
enum { ENCODABLE = 7, FILLERS = sizeof fillers / sizeof *fillers };

enum residuals { NONE, APART, IN_PLACE };

static void run_absmax(const struct mahe_table *tier, size_t n, enum edge edge, int shifted, enum residuals residuals,
                       float (*value)(void))
{
    const size_t bytes = n * sizeof(float);
    float *x = arena_place(&x_arena, bytes, edge, shifted ? random_offset() * sizeof *x : 0);
    float *to = arena_place(&left_arena, bytes, edge, shifted ? random_offset() * sizeof *to : 0);
    float *residual = arena_place(&residual_arena, bytes, edge, shifted ? random_offset() * sizeof *residual : 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = x_before[i] = value();
        residual[i] = residual_before[i] = value();
        a[i] = residuals == NONE ? x[i] : plus(x[i], residual[i]);
    }
    const float *given = residuals == NONE ? NULL : residuals == APART ? residual : to;
    if (residuals == IN_PLACE)
        memcpy(to, residual, bytes);
    const struct call call = {{word_of(to), word_of(x), word_of(given), n}, {0}};
    const uint32_t got = (uint32_t)call_kernel((kernel)tier->add_absmax, &call, tier->name);
    uint32_t absmax = 0;
    for (size_t i = 0; i < n; i++) {
        expect_float("a", i, to[i], a[i], x_before[i]);
        const uint32_t magnitude = float_bits(to[i]) & 0x7fffffff;
        absmax = magnitude > absmax ? magnitude : absmax;
    }
    if (got != absmax)
        fail("returned %#x, should be %#x (%s)", (unsigned)got, (unsigned)absmax, tier->name);
    if (memcmp(x, x_before, bytes) != 0 || memcmp(residual, residual_before, bytes) != 0)
        fail("changed what it reads (%s)", tier->name);
    arena_verify(&x_arena, x, bytes);
    arena_verify(&left_arena, to, bytes);
    arena_verify(&residual_arena, residual, bytes);
}

static void run_encode(const struct mahe_table *tier, const struct format *format, size_t n, enum edge edge,
                       size_t codes_shift, size_t a_shift, filler fill)
{
    const size_t bytes = codes_bytes(format, n);
    uint8_t *codes = arena_place(&codes_arena, bytes, edge, codes_shift);
    float *left = arena_place(&left_arena, n * sizeof *left, edge, a_shift * sizeof *left);
    fill(left, n, format);
    if (largest(left, n) < 0x1p-100f)
        left[n - 1] = 1.0f;
    memcpy(a, left, n * sizeof *left);
    const float amax = largest(a, n);
    const struct call call = {
        {word_of(codes), word_of(left), n}, {real_f(over(amax, format->q_max)), real_f(over(format->q_max, amax))},
    };
    call_kernel(format->q4 ? (kernel)tier->encode_q4 : (kernel)tier->encode_q8, &call, tier->name);
    expect_codes(format, a, n, codes, left);
    if (format->q4 && n % 2 != 0 && code_at(format, codes, n) != 0)
        fail("the last high half is not 8 (%s)", tier->name);
    arena_verify(&codes_arena, codes, bytes);
    arena_verify(&left_arena, left, n * sizeof *left);
}

/* A residual for x, block by block: nothing, little, one that cancels x, one that makes sums overflow, anything. */
static void fill_residual(float *residual, const float *x, size_t block, size_t n)
{
    for (size_t at = 0; at < n; at += block) {
        const uint64_t kind = random_bits() % 16;
        for (size_t i = at; i < n && i < at + block; i++) {
            residual[i] = bits_float((uint32_t)(random_bits() >> 63) << 31);
            if (kind < 8)
                residual[i] = x[i] * random_uniform() * 0x1p-7f;
            else if (kind == 8)
                residual[i] = -x[i];
            else if (kind == 9)
                residual[i] = 0x1.8p127f;
            else if (kind == 10)
                residual[i] = random_special();
        }
    }
}

static void run_public(const struct format *format, size_t block, size_t n, enum edge edge, int shifted,
                       enum residuals residuals, filler fill)
{
    const size_t bytes = n * sizeof(float);
    const size_t scales_bytes = (n + block - 1) / block * sizeof(float);
    uint8_t *codes = arena_place(&codes_arena, codes_bytes(format, n), edge, shifted ? random_offset() : 0);
    float *scales = arena_place(&scales_arena, scales_bytes, edge, shifted ? random_offset() * sizeof *scales : 0);
    float *left = arena_place(&left_arena, bytes, edge, shifted ? random_offset() * sizeof *left : 0);
    float *x = arena_place(&x_arena, bytes, edge, shifted ? random_offset() * sizeof *x : 0);
    float *residual = arena_place(&residual_arena, bytes, edge, shifted ? random_offset() * sizeof *residual : 0);
    for (size_t at = 0; at < n; at += block)
        (random_bits() % 4 == 0 ? uniform : fill)(x + at, at + block < n ? block : n - at, format);
    fill_residual(residual, x, block, n);
    memcpy(x_before, x, bytes);
    memcpy(residual_before, residual, bytes);
    if (residuals == IN_PLACE)
        memcpy(left, residual, bytes);
    for (size_t i = 0; i < n; i++)
        a[i] = residuals == NONE ? x[i] : plus(x[i], residual[i]);
    const float *given = residuals == NONE ? NULL : residuals == APART ? residual : left;
    const int32_t status = format->q4 ? mahe_quantise_q4_f32(codes, scales, left, x, given, block, n)
                                      : mahe_quantise_q8_f32((int8_t *)codes, scales, left, x, given, block, n);
    if (status != MAHE_OK)
        fail("returned %d", (int)status);
    for (size_t at = 0; at < n; at += block)
        expect_block(format, a + at, at + block < n ? block : n - at, codes + codes_bytes(format, at),
                     scales[at / block], left + at);
    if (format->q4 && n % 2 != 0 && code_at(format, codes, n) != 0)
        fail("the last high half is not 8");
    if (memcmp(x, x_before, bytes) != 0 || memcmp(residual, residual_before, bytes) != 0)
        fail("changed what it reads");
    arena_verify(&codes_arena, codes, codes_bytes(format, n));
    arena_verify(&scales_arena, scales, scales_bytes);
    arena_verify(&left_arena, left, bytes);
    arena_verify(&x_arena, x, bytes);
    arena_verify(&residual_arena, residual, bytes);
}

static void check_add_absmax(const struct mahe_table *tier)
{
    for (const size_t *n = check_lengths(); *n != 0; n++)
        for (int turn = 0; turn < 6; turn++) {
            const enum edge edge = turn % 2 ? AT_END : AT_START;
            const enum residuals residuals = (enum residuals)(turn / 2);
            label("add_absmax n=%zu turn %d", *n, turn);
            run_absmax(tier, *n, edge, 0, residuals, random_uniform);
            run_absmax(tier, *n, edge, 0, residuals, random_finite);
            run_absmax(tier, *n, edge, 0, residuals, random_special);
            for (int again = 0; again < 8 && *n <= N_SMALL; again++)
                run_absmax(tier, *n, edge, 1, residuals, random_mixed);
        }
}

static void check_encode(const struct mahe_table *tier, const struct format *format)
{
    for (const size_t *n = check_lengths(); *n != 0; n++)
        for (size_t f = 0; f < ENCODABLE; f++) {
            label("encode_%s n=%zu values %zu", format->name, *n, f);
            run_encode(tier, format, *n, AT_START, 0, 0, fillers[f]);
            run_encode(tier, format, *n, AT_END, 0, 0, fillers[f]);
        }
    for (size_t codes = 0; codes < 16; codes++)
        for (size_t left = 0; left < 16; left++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                label("encode_%s n=%zu offsets %zu and %zu", format->name, n, codes, left);
                run_encode(tier, format, n, n % 3 ? AT_START : AT_END, codes, left, uniform);
            }
}

static void check_public(const struct format *format)
{
    static const size_t blocks[] = {32, 64, 96, 256, 4096};
    for (size_t n = 1; n <= N_SMALL; n++)
        for (size_t f = 0; f < FILLERS; f++) {
            const enum residuals residuals = (enum residuals)((n + f) % 3);
            label("quantise_%s n=%zu values %zu residual %d", format->name, n, f, (int)residuals);
            run_public(format, blocks[n % 3], n, AT_START, 0, residuals, fillers[f]);
            run_public(format, 32, n, AT_END, 0, residuals, fillers[f]);
            run_public(format, blocks[n % 5], n, AT_END, 1, residuals, fillers[f]);
        }
    for (size_t f = 0; f < FILLERS; f++)
        for (size_t b = 0; b < 5; b++) {
            label("quantise_%s block %zu values %zu", format->name, blocks[b], f);
            run_public(format, blocks[b], 9001, AT_END, 0, (enum residuals)((f + b) % 3), fillers[f]);
        }
    label("quantise_%s block %d", format->name, MAHE_BLOCK_MAX);
    run_public(format, MAHE_BLOCK_MAX, N_LARGE, AT_END, 0, APART, uniform);
    run_public(format, MAHE_BLOCK_MAX - 32, N_LARGE, AT_END, 0, IN_PLACE, lonely);
}

void check_quantise(const struct mahe_table *tier)
{
    if (x_arena.start == NULL) {
        x_arena = arena_new(N_LARGE * sizeof(float));
        residual_arena = arena_new(N_LARGE * sizeof(float));
        left_arena = arena_new(N_LARGE * sizeof(float));
        codes_arena = arena_new(N_LARGE);
        scales_arena = arena_new(N_LARGE * sizeof(float) / MAHE_BLOCK_MIN);
    }
    check_add_absmax(tier);
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        check_encode(tier, &formats[i]);
        check_public(&formats[i]);
    }
    mahe_kernel_set_impl("auto");
}
