/* check_absmax.c: mahe_absmax_f32 on one tier, against a model written from the words of the header. */
#include <math.h>
#include <string.h>

#include "check.h"

static struct arena arena;

/* The order of the header, without looking at all values as bits: numbers by their size, then infinity, then the NaNs
 * by their payload. */
static uint32_t model(const float *x, size_t n)
{
    float largest = 0.0f;
    uint32_t nan = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t payload = float_bits(x[i]) % 0x80000000u;
        if (isnan(x[i]))
            nan = payload > nan ? payload : nan;
        else if (fabsf(x[i]) > largest)
            largest = fabsf(x[i]);
    }
    return nan != 0 ? nan : float_bits(largest);
}

static void expect(const struct mahe_table *tier, const float *x, size_t n, uint32_t expected)
{
    const struct call call = {{word_of(x), n}, {0}};
    const uint32_t got = (uint32_t)call_kernel((kernel)tier->absmax, &call, tier->name);
    if (got != expected)
        fail("the bits are %#x, should be %#x", (unsigned)got, (unsigned)expected);
    arena_verify(&arena, x, n * sizeof *x);
}

static void run(const struct mahe_table *tier, size_t n, enum edge edge, size_t shift, float (*value)(void))
{
    float *x = arena_place(&arena, n * sizeof *x, edge, shift);
    for (size_t i = 0; i < n; i++)
        x[i] = value();
    expect(tier, x, n, model(x, n));
}

/* One entry is larger than all others, at each place in turn: none may be overlooked. */
static void one_stands_out(const struct mahe_table *tier, size_t n, float usual, float large)
{
    label("absmax n=%zu, %a among %a", n, (double)large, (double)usual);
    float *x = arena_place(&arena, n * sizeof *x, AT_END, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = usual;
    for (size_t i = 0; i < n; i++) {
        x[i] = large;
        if (tier->absmax(x, n) != float_bits(large) % 0x80000000u)
            fail("entry %zu is overlooked", i);
        x[i] = usual;
    }
}

static float zero(void)
{
    return bits_float((uint32_t)(random_bits() >> 63) << 31);
}

/* Numbers below the normal range, of both signs: an instruction that takes them for zero is noticed. */
static float subnormal(void)
{
    return bits_float((uint32_t)(random_bits() >> 32) & 0x807fffffu);
}

/* Mostly ordinary, one in eight special. */
static float mixed(void)
{
    return random_bits() % 8 == 0 ? random_special() : random_uniform();
}

void check_absmax(const struct mahe_table *tier)
{
    if (arena.start == NULL)
        arena = arena_new(N_MAX * sizeof(float));
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("absmax n=%zu", *n);
        for (int edge = AT_START; edge <= AT_END; edge++) {
            run(tier, *n, edge, 0, random_uniform);
            run(tier, *n, edge, 0, random_finite);
            run(tier, *n, edge, 0, random_special);
            run(tier, *n, edge, 0, mixed);
            run(tier, *n, edge, 0, zero);
            run(tier, *n, edge, 0, subnormal);
        }
    }
    for (size_t shift = 0; shift < 16; shift++)
        for (size_t n = 1; n <= N_SMALL; n++) {
            label("absmax n=%zu offset %zu", n, shift);
            run(tier, n, AT_START, shift * sizeof(float), mixed);
        }
    for (size_t n = 1; n <= N_SMALL; n++) {
        one_stands_out(tier, n, -1.0f, 1.5f);
        one_stands_out(tier, n, 1.0f, -0x1p127f);
        one_stands_out(tier, n, 0x1.fffffep127f, -INFINITY);
        one_stands_out(tier, n, INFINITY, bits_float(0xff800001u));
    }
}
