/* check_stats.c: mahe_stats_f32 on one tier, against a model written from the words of the header. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

static struct arena x_arena;
static struct arena out_arena;

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
    call_sized((kernel)tier->stats, x, n, out, n < 16 ? "scalar" : tier->name);
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

/* More than 2^31 bytes, all of them the kernel's page of zeros, so that nothing is spent but address space. */
static void beyond_31_bits(const struct mahe_table *tier)
{
    const size_t n = ((size_t)1 << 29) + 1000003;
    const size_t bytes = n * sizeof(float);
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED) {
        printf("-- stats beyond 2^31 bytes: no address space\n");
        return;
    }
    x[0] = 3.0f;
    x[n - 2] = INFINITY;
    x[n - 1] = -4.0f;
    mahe_stats out;
    tier->stats(x, n, &out);
    compare(&out, &(mahe_stats){1, 4.0f, 25.0});
    munmap(x, bytes);
}

#ifdef MAHE_X86_64_ASM
/* The assembly inside of the tier, without the C around it that could hide a changed register. */
static void blocks_alone(const struct mahe_table *tier)
{
    label("stats blocks");
    struct mahe_stats_state state = {0};
    const float *x = arena_place(&x_arena, 160 * sizeof *x, AT_END, 0);
    for (size_t blocks = 0; blocks <= 10; blocks++)
        call_sized((kernel)mahe_stats_blocks_f32_avx2, x, blocks, &state, tier->name);
}
#endif

void check_stats(const struct mahe_table *tier)
{
    if (x_arena.start == NULL) {
        x_arena = arena_new(N_MAX * sizeof(float));
        out_arena = arena_new(sizeof(mahe_stats));
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
#ifdef MAHE_X86_64_ASM
    if (strcmp(tier->name, "avx2") == 0)
        blocks_alone(tier);
#endif
    label("stats beyond 2^31 bytes");
    beyond_31_bits(tier);
}
