/* check_bf16.c: mahe_bf16_from_f32 and mahe_f32_from_bf16 on one tier: every upper half, every boundary below it.
 * The models compare real values, in float64, where every float and bfloat16 is exact; no bit is added to another. */
#include <string.h>

#include "check_model.h"

#define HALVES 65536

static struct arena float_arena;
static struct arena half_arena;
static float floats_before[N_MAX];
static uint16_t halves_before[N_MAX];

/* The value of a finite bfloat16 magnitude; what would be infinity is 2^128, the next number if there were one. */
static double value_of(uint32_t magnitude)
{
    const uint32_t exponent = magnitude >> 7;
    const double fraction = (double)(magnitude & 0x7f);
    return exponent == 0 ? ldexp(fraction, -133) : ldexp(128.0 + fraction, (int)exponent - 134);
}

static uint16_t model_from(float x)
{
    const uint32_t bits = float_bits(x);
    const uint32_t sign = bits >> 16 & 0x8000;
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    if (isinf(x))
        return (uint16_t)(sign | 0x7f80);
    const uint32_t below = bits >> 16 & 0x7fff;
    const double to_below = fabs((double)x) - value_of(below);
    const double to_above = value_of(below + 1) - fabs((double)x);
    const uint32_t even = below % 2 == 0 ? below : below + 1;
    const uint32_t nearest = to_below < to_above ? below : to_above < to_below ? below + 1 : even;
    return (uint16_t)(sign | nearest);
}

static void compare_float(size_t i, float got, uint16_t half, const char *tier)
{
    const uint32_t magnitude = half & 0x7fff;
    double expected = value_of(magnitude);
    if (magnitude == 0x7f80)
        expected = (double)INFINITY;
    if (half & 0x8000)
        expected = -expected;
    const uint32_t bits = magnitude > 0x7f80 ? half * 0x10000u : float_bits((float)expected);
    if (float_bits(got) != bits)
        fail("[%zu] is %#x from %#x, should be %#x (%s)", i, (unsigned)float_bits(got), half, (unsigned)bits, tier);
}

/* Bits to convert, by turns. */
static uint32_t next_bits;

static float sequence(void)
{
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    const uint32_t at = next_bits++;
    return bits_float(at / 6 << 16 | lower[at % 6]);
}

static float any_bits(void)
{
    return bits_float((uint32_t)(random_bits() >> 32));
}

static void from_f32(const struct mahe_table *tier, size_t n, enum edge edge, size_t to_shift, size_t from_shift,
                     float (*value)(void))
{
    uint16_t *dst = arena_place(&half_arena, n * sizeof *dst, edge, to_shift * sizeof *dst);
    float *src = arena_place(&float_arena, n * sizeof *src, edge, from_shift * sizeof *src);
    for (size_t i = 0; i < n; i++)
        src[i] = value();
    memcpy(floats_before, src, n * sizeof *src);
    const struct call call = {{word_of(dst), word_of(src), n}, {0}};
    call_kernel((kernel)tier->bf16_from_f32, &call, tier->name);
    for (size_t i = 0; i < n; i++) {
        const uint16_t expected = model_from(floats_before[i]);
        if (dst[i] != expected)
            fail("[%zu] is %#x from %#x, should be %#x (%s)", i, dst[i], (unsigned)float_bits(floats_before[i]),
                 expected, tier->name);
    }
    if (memcmp(src, floats_before, n * sizeof *src) != 0)
        fail("src was changed (%s)", tier->name);
    arena_verify(&half_arena, dst, n * sizeof *dst);
    arena_verify(&float_arena, src, n * sizeof *src);
}

static void from_bf16(const struct mahe_table *tier, size_t n, enum edge edge, size_t to_shift, size_t from_shift,
                      uint16_t first)
{
    float *dst = arena_place(&float_arena, n * sizeof *dst, edge, to_shift * sizeof *dst);
    uint16_t *src = arena_place(&half_arena, n * sizeof *src, edge, from_shift * sizeof *src);
    for (size_t i = 0; i < n; i++)
        src[i] = halves_before[i] = (uint16_t)(first + i);
    const struct call call = {{word_of(dst), word_of(src), n}, {0}};
    call_kernel((kernel)tier->f32_from_bf16, &call, tier->name);
    for (size_t i = 0; i < n; i++)
        compare_float(i, dst[i], halves_before[i], tier->name);
    if (memcmp(src, halves_before, n * sizeof *src) != 0)
        fail("src was changed (%s)", tier->name);
    arena_verify(&float_arena, dst, n * sizeof *dst);
    arena_verify(&half_arena, src, n * sizeof *src);
}

static void lengths(const struct mahe_table *tier)
{
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("bf16 n=%zu", *n);
        for (int edge = AT_START; edge <= AT_END; edge++) {
            from_f32(tier, *n, (enum edge)edge, 0, 0, any_bits);
            from_f32(tier, *n, (enum edge)edge, 0, 0, random_special);
            from_bf16(tier, *n, (enum edge)edge, 0, 0, (uint16_t)random_bits());
        }
    }
}

static void offsets(const struct mahe_table *tier)
{
    for (size_t to = 0; to < 16; to++)
        for (size_t from = 0; from < 16; from++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                label("bf16 n=%zu offsets %zu and %zu", n, to, from);
                from_f32(tier, n, n % 2 ? AT_START : AT_END, to, from, any_bits);
                from_bf16(tier, n, n % 2 ? AT_START : AT_END, to, from, (uint16_t)random_bits());
            }
}

void check_bf16(const struct mahe_table *tier)
{
    if (float_arena.start == NULL) {
        float_arena = arena_new(N_MAX * sizeof(float));
        half_arena = arena_new(N_MAX * sizeof(uint16_t));
    }
    const size_t piece = 8191; /* odd, so that each value comes by other lanes and some by the tail */
    label("bf16 every upper half");
    next_bits = 0;
    for (size_t at = 0; at < 6 * HALVES; at += piece)
        from_f32(tier, piece, AT_END, 0, 0, sequence);
    for (size_t at = 0; at < HALVES; at += piece)
        from_bf16(tier, piece, AT_END, 0, 0, (uint16_t)at);
    label("bf16 every upper half, seven at a time");
    next_bits = 0;
    for (size_t at = 0; at < 6 * HALVES; at += 7)
        from_f32(tier, 7, AT_END, 0, 0, sequence);
    lengths(tier);
    offsets(tier);
}
