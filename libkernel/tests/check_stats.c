/* check_stats.c: mahe_stats_f32 on one tier, against a model written from the words of the header. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

static struct arena x_arena;
static struct arena out_arena;
static struct arena state_arena;

static mahe_stats model(const float *x, size_t n)
{
    mahe_stats found = {0};
    double sums[16];
    for (size_t lane = 0; lane < 16; lane++) {
        sums[lane] = 0.0;
        for (size_t i = lane; i < n; i += 16)
            if (isfinite(x[i]))
                sums[lane] += (double)x[i] * (double)x[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            found.nonfinite++;
        else if (fabsf(x[i]) > found.absmax)
            found.absmax = fabsf(x[i]);
    }
    double quads[4];
    for (size_t j = 0; j < 4; j++)
        quads[j] = (sums[j] + sums[j + 8]) + (sums[j + 4] + sums[j + 12]);
    found.sum_squares = (quads[0] + quads[2]) + (quads[1] + quads[3]);
    return found;
}

static void compare(const mahe_stats *got, const mahe_stats *expected)
{
    if (got->nonfinite != expected->nonfinite)
        fail("nonfinite is %llu, should be %llu", (unsigned long long)got->nonfinite,
             (unsigned long long)expected->nonfinite);
    if (float_bits(got->absmax) != float_bits(expected->absmax))
        fail("absmax is %a, should be %a", (double)got->absmax, (double)expected->absmax);
    if (memcmp(&got->sum_squares, &expected->sum_squares, sizeof(double)) != 0)
        fail("sum_squares is %a, should be %a", got->sum_squares, expected->sum_squares);
}

static void run(const struct mahe_table *tier, size_t n, enum edge edge, size_t shift, float (*value)(void))
{
    float *x = arena_place(&x_arena, n * sizeof *x, edge, shift);
    mahe_stats *out = arena_place(&out_arena, sizeof *out, edge, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = value();
    const mahe_stats expected = model(x, n);
    /* Below one block no assembly runs, so what the trampoline leaves in the upper halves would still be there. */
    const struct call call = {{word_of(x), n, word_of(out)}, {0}};
    call_kernel((kernel)tier->stats, &call, n < 16 ? "scalar" : tier->name);
    compare(out, &expected);
    arena_verify(&x_arena, x, n * sizeof *x);
    arena_verify(&out_arena, out, sizeof *out);
}

static float zero(void)
{
    return bits_float((uint32_t)(random_bits() >> 63) << 31);
}

/* Mostly ordinary, one in eight special. */
static float mixed(void)
{
    return random_bits() % 8 == 0 ? random_special() : random_uniform();
}

#if defined(MAHE_X86_64_ASM)
#define STATS_BLOCKS mahe_stats_blocks_avx2
#elif defined(MAHE_AARCH64_ASM)
#define STATS_BLOCKS mahe_stats_blocks_neon
#endif

#ifdef STATS_BLOCKS
/* The assembly inside of the tier, without the C around it that could hide a changed register or do it all again. */
static void blocks_alone(const struct mahe_table *tier, size_t blocks, enum edge edge)
{
    label("stats of %zu blocks", blocks);
    const size_t n = 16 * blocks;
    float *x = arena_place(&x_arena, n * sizeof *x, edge, 0);
    struct mahe_stats_state *state = arena_place(&state_arena, sizeof *state, edge, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = random_finite();
    memset(state, 0, sizeof *state);
    for (size_t i = 0; i < 16; i++)
        state->lane[i] = (double)(random_uniform() * random_uniform());
    for (size_t i = 0; i < 8; i++)
        state->absmax[i] = float_bits(fabsf(random_finite()));
    struct mahe_stats_state expected = *state;
    for (size_t i = 0; i < n; i++) {
        expected.lane[i % 16] += (double)x[i] * (double)x[i];
        if (float_bits(fabsf(x[i])) > expected.absmax[i % 8])
            expected.absmax[i % 8] = float_bits(fabsf(x[i]));
    }
    const struct call call = {{word_of(x), blocks, word_of(state)}, {0}};
    call_kernel((kernel)STATS_BLOCKS, &call, tier->name);
    if (memcmp(state->lane, expected.lane, sizeof expected.lane) != 0)
        fail("a lane is wrong");
    if (memcmp(state->absmax, expected.absmax, sizeof expected.absmax) != 0)
        fail("an absmax is wrong");
    if (state->nonfinite != 0)
        fail("an entry was counted");
    arena_verify(&x_arena, x, n * sizeof *x);
    arena_verify(&state_arena, state, sizeof *state);
}
#endif

/* Long enough for assembly to be called more than once: thousands of times on AVX2, twice on NEON. Zeros but for a few
 * entries, so that the result is known. */
static void several_pieces(const struct mahe_table *tier)
{
    label("stats of a long array");
    const size_t n = ((size_t)1 << 24) + 10007;
    const size_t bytes = n * sizeof(float);
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (x == MAP_FAILED)
        fail("no memory for %zu bytes", bytes);
    mahe_stats expected = {0, 4.0f, 0.0};
    for (size_t i = 0; i < n; i += n / 13) {
        x[i] = i % 2 ? INFINITY : -4.0f;
        expected.nonfinite += i % 2;
        expected.sum_squares += i % 2 ? 0.0 : 16.0;
    }
    mahe_stats out;
    tier->stats(x, n, &out);
    compare(&out, &expected);
    munmap(x, bytes);
}

void check_stats(const struct mahe_table *tier)
{
    if (x_arena.start == NULL) {
        x_arena = arena_new(N_MAX * sizeof(float));
        out_arena = arena_new(sizeof(mahe_stats));
        state_arena = arena_new(sizeof(struct mahe_stats_state));
    }
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("stats n=%zu", *n);
        for (int edge = AT_START; edge <= AT_END; edge++) {
            run(tier, *n, edge, 0, random_uniform);
            run(tier, *n, edge, 0, random_finite);
            run(tier, *n, edge, 0, random_special);
            run(tier, *n, edge, 0, mixed);
            run(tier, *n, edge, 0, zero);
        }
    }
    for (size_t shift = 0; shift < 16; shift++)
        for (size_t n = 1; n <= N_SMALL; n++) {
            label("stats n=%zu offset %zu", n, shift);
            run(tier, n, AT_START, shift * sizeof(float), mixed);
        }
#ifdef STATS_BLOCKS
    for (size_t blocks = 0; blocks <= 20 && strcmp(tier->name, "scalar") != 0; blocks++)
        for (int edge = AT_START; edge <= AT_END; edge++)
            blocks_alone(tier, blocks, edge);
#endif
    several_pieces(tier);
}
