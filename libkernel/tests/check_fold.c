/* check_fold.c: mahe_fold_f32_i64 on one tier, in the whole range of its precondition.
 * The model rounds with integers only, so it shares neither rint nor the magic number with the tiers. */
#include <string.h>

#include "check.h"

static struct arena acc_arena;
static struct arena delta_arena;
static int64_t expected[N_MAX];

/* rint for |x| <= 2^51, from the bits of x: nearest integer, ties to even. */
static int64_t nearest_even(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1075;
    const uint64_t significand = (bits & 0xfffffffffffffu) | 1ull << 52;
    uint64_t whole = 0;
    if (exponent >= 0)
        fail("the check itself went beyond 2^51: %a", x);
    if (exponent >= -53) { /* below, |x| < 1/2 */
        const int shift = -exponent;
        const uint64_t half = 1ull << (shift - 1);
        const uint64_t rest = significand & ((half << 1) - 1);
        whole = significand >> shift;
        whole += rest > half || (rest == half && (whole & 1));
    }
    return bits >> 63 ? -(int64_t)whole : (int64_t)whole;
}

static void run(const struct mahe_table *tier, size_t n, double scale, enum edge edge, size_t shift,
                float (*value)(void))
{
    int64_t *acc = arena_place(&acc_arena, n * sizeof *acc, edge, 2 * shift);
    float *delta = arena_place(&delta_arena, n * sizeof *delta, edge, shift);
    for (size_t i = 0; i < n; i++) {
        delta[i] = value();
        acc[i] = (int64_t)random_bits();
        expected[i] = (int64_t)((uint64_t)acc[i] + (uint64_t)nearest_even((double)delta[i] * scale));
    }
    call_kernel((kernel)tier->fold, &(struct call){{word_of(acc), word_of(delta), n}, {real_d(scale)}}, tier->name);
    for (size_t i = 0; i < n; i++)
        if (acc[i] != expected[i])
            fail("[%zu] is off by %lld (delta %a, scale %a, %s)", i,
                 (long long)((uint64_t)acc[i] - (uint64_t)expected[i]), (double)delta[i], scale, tier->name);
    arena_verify(&acc_arena, acc, n * sizeof *acc);
    arena_verify(&delta_arena, delta, n * sizeof *delta);
}

/* Odd multiples of 1/2: every one is a tie at scale 1. */
static float tie(void)
{
    return (float)(int32_t)(random_bits() >> 41) * (random_bits() & 1 ? 1.0f : -1.0f) + 0.5f;
}

/* Close to and at the ends of [-1, 1], where the product reaches 2^51; also zeros and subnormals. */
static float edge_of_range(void)
{
    static const uint32_t magnitudes[] = {0x3f800000, 0x3f7fffff, 0x3f7ffffe, 0x3f000000, 0, 1, 0x00800000, 0x33800000};
    const uint64_t r = random_bits();
    return bits_float(magnitudes[r % 8] | (uint32_t)(r >> 63) << 31);
}

/* Log-uniform in (-1, 1). */
static float small(void)
{
    const uint32_t exponent = (uint32_t)(random_bits() % 127);
    return bits_float(exponent << 23 | (uint32_t)(random_bits() >> 41) | (uint32_t)(random_bits() >> 63) << 31);
}

/* 71 elements: 64, 4 and 3, so all the loops of a tier. */
static void whole_range(const struct mahe_table *tier)
{
    const double largest = 0x1p51;
    for (int power = 0; power <= 51; power++) {
        label("fold scale 2^%d", power);
        const double scale = largest / (double)(1ull << power);
        for (int turn = 0; turn < 8; turn++) {
            const double odd = scale * (0.5 + 0x1p-54 * (double)(random_bits() >> 11));
            run(tier, 71, scale, AT_END, 0, edge_of_range);
            run(tier, 71, scale, AT_END, 0, random_uniform);
            run(tier, 71, scale, AT_END, 0, small);
            run(tier, 71, odd, AT_END, 0, random_uniform);
            run(tier, 71, -odd, AT_END, 0, edge_of_range);
        }
    }
    label("fold ties");
    for (int turn = 0; turn < 200; turn++) {
        run(tier, 71, 1.0, AT_END, 0, tie);
        run(tier, 71, 0.5, AT_END, 0, tie);
        run(tier, 71, 0x1p27 + 1.0, AT_END, 0, tie);
    }
}

void check_fold(const struct mahe_table *tier)
{
    if (acc_arena.start == NULL) {
        acc_arena = arena_new(N_MAX * sizeof(int64_t));
        delta_arena = arena_new(N_MAX * sizeof(float));
    }
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("fold n=%zu", *n);
        for (int edge = AT_START; edge <= AT_END; edge++) {
            run(tier, *n, 0x1p50 / 1000.0, edge, 0, random_uniform);
            run(tier, *n, 0x1p51, edge, 0, edge_of_range);
        }
    }
    for (size_t shift = 0; shift < 16; shift++)
        for (size_t n = 1; n <= N_SMALL; n++) {
            label("fold n=%zu offset %zu", n, shift);
            run(tier, n, 12345.678, AT_START, shift * sizeof(float), random_uniform);
        }
    whole_range(tier);
}
