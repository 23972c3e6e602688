/* check_topk.c: topk_count and topk_take of one tier, then mahe_topk_f32 on it. The model of the last one sorts. */
#include <stdlib.h>
#include <string.h>

#include "check_model.h"

static struct arena x_arena;
static struct arena indices_arena;
static struct arena values_arena;
static struct arena counts_arena;
static struct arena level_arena;
static float before[N_MAX];
static uint32_t order[N_MAX];
static uint32_t expected_indices[N_MAX];

static uint32_t magnitude(float value)
{
    return float_bits(value) & 0x7fffffff;
}

/* What x may hold. */
static float any_bits(void)
{
    return bits_float((uint32_t)(random_bits() >> 32));
}

/* Few different magnitudes, so that most are equal. */
static float few(void)
{
    const uint32_t which = (uint32_t)(random_bits() % 3);
    return bits_float((0x3f800000u + which * 0x00100201u) | ((uint32_t)random_bits() & 0x80000000u));
}

/* All of one magnitude. */
static float same(void)
{
    return bits_float(0x3e999999u | ((uint32_t)random_bits() & 0x80000000u));
}

static float zero(void)
{
    return bits_float((uint32_t)random_bits() & 0x80000000u);
}

/* Mostly equal, one in eight beside it in one of the fields that the select goes by. */
static float close(void)
{
    static const uint32_t steps[] = {1, 0x1ff, 0x200, 0x000ffe00, 0x00100000, 0x3fe00000};
    const uint64_t r = random_bits();
    return bits_float(0x3f123456u + (r % 8 == 0 ? steps[(r >> 8) % 6] : 0) + (uint32_t)(r >> 63) * 0x80000000u);
}

static float (*const fillers[])(void) = {
    random_uniform, any_bits, random_mixed, random_special, few, close, same, zero,
};
enum { FILLERS = sizeof fillers / sizeof *fillers };

static float *place_x(size_t n, enum edge edge, size_t shift, float (*value)(void))
{
    float *x = arena_place(&x_arena, n * sizeof *x, edge, shift * sizeof *x);
    for (size_t i = 0; i < n; i++)
        before[i] = value();
    memcpy(x, before, n * sizeof *x);
    return x;
}

static void verify_x(const float *x, size_t n)
{
    if (memcmp(x, before, n * sizeof *x) != 0)
        fail("x was changed");
    arena_verify(&x_arena, x, n * sizeof *x);
}

/* The three levels of the public function and one whose buckets end at the sign. By division instead of shifts. */
static void run_count(const struct mahe_table *tier, size_t n, enum edge edge, size_t shift, float (*value)(void))
{
    static const struct mahe_topk_level levels[] = {
        {31, 0, 20, 2047}, {20, 0, 9, 2047}, {9, 0, 0, 511}, {25, 0, 22, 1023},
    };
    const float *x = place_x(n, edge, shift, value);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct mahe_topk_level level = levels[i];
        const uint32_t whole = 1u << level.prefix_shift;
        const uint32_t part = 1u << level.shift;
        level.prefix = magnitude(before[random_bits() % n]) / whole;
        if (i > 0 && random_bits() % 16 == 0)
            level.prefix = (uint32_t)(random_bits() >> (32 + level.prefix_shift + 1));
        const size_t bytes = (level.mask + 1) * sizeof(uint32_t);
        uint32_t *counts = arena_place(&counts_arena, bytes, edge, shift * sizeof *counts);
        struct mahe_topk_level *placed = arena_place(&level_arena, sizeof level, edge, shift * sizeof(uint32_t));
        uint32_t expected[MAHE_TOPK_BUCKETS];
        for (size_t bucket = 0; bucket <= level.mask; bucket++)
            counts[bucket] = expected[bucket] = (uint32_t)random_bits();
        for (size_t at = 0; at < n; at++)
            if (magnitude(before[at]) / whole == level.prefix)
                expected[magnitude(before[at]) / part % (level.mask + 1)]++;
        *placed = level;
        const struct call call = {{word_of(counts), word_of(x), word_of(placed), n}, {0}};
        /* Level 0 may be C on every tier: then what the trampoline leaves in the upper halves would still be there. */
        call_kernel((kernel)tier->topk_count, &call, i == 0 ? "scalar" : tier->name);
        for (size_t bucket = 0; bucket <= level.mask; bucket++)
            if (counts[bucket] != expected[bucket])
                fail("level %zu, prefix %#x: counts[%#zx] is off by %d", i, (unsigned)level.prefix, bucket,
                     (int)(counts[bucket] - expected[bucket]));
        if (memcmp(placed, &level, sizeof level) != 0)
            fail("the level was changed");
        arena_verify(&counts_arena, counts, bytes);
        arena_verify(&level_arena, placed, sizeof level);
    }
    verify_x(x, n);
}

/* indices and values have exactly as many entries as are taken. */
static void compare(const uint32_t *indices, const float *values, size_t taken)
{
    for (size_t i = 0; i < taken; i++) {
        if (indices[i] != expected_indices[i])
            fail("indices[%zu] of %zu is %u, should be %u", i, taken, (unsigned)indices[i],
                 (unsigned)expected_indices[i]);
        if (float_bits(values[i]) != float_bits(before[indices[i]]))
            fail("values[%zu] is %#x, should be %#x", i, (unsigned)float_bits(values[i]),
                 (unsigned)float_bits(before[indices[i]]));
    }
    arena_verify(&indices_arena, indices, taken * sizeof *indices);
    arena_verify(&values_arena, values, taken * sizeof *values);
}

/* What is taken goes to expected_indices; how many. */
static size_t model_take(size_t n, uint32_t threshold, size_t ties)
{
    size_t taken = 0;
    size_t equal = 0;
    for (size_t i = 0; i < n; i++) {
        const int first = magnitude(before[i]) == threshold && equal++ < ties;
        if (first || magnitude(before[i]) > threshold)
            expected_indices[taken++] = (uint32_t)i;
    }
    return taken;
}

static void run_take(const struct mahe_table *tier, size_t n, uint32_t threshold, size_t ties, enum edge edge,
                     const size_t *shifts, const float *x)
{
    const size_t taken = model_take(n, threshold, ties);
    const size_t bytes = taken * sizeof(uint32_t);
    uint32_t *indices = arena_place(&indices_arena, bytes, edge, shifts[1] * sizeof *indices);
    float *values = arena_place(&values_arena, bytes, edge, shifts[2] * sizeof *values);
    const struct call call = {
        {word_of(indices), word_of(values), word_of(x), n, word_32(threshold), ties}, {0},
    };
    call_kernel((kernel)tier->topk_take, &call, tier->name);
    compare(indices, values, taken);
}

/* A threshold that is there, with none, some and all of its ties; one that is beside it; both ends. */
static void run_takes(const struct mahe_table *tier, size_t n, enum edge edge, const size_t *shifts,
                      float (*value)(void))
{
    const float *x = place_x(n, edge, shifts[0], value);
    const uint32_t threshold = magnitude(before[random_bits() % n]);
    size_t equal = 0;
    for (size_t i = 0; i < n; i++)
        equal += magnitude(before[i]) == threshold;
    run_take(tier, n, threshold, 1, edge, shifts, x);
    run_take(tier, n, threshold, equal, edge, shifts, x);
    run_take(tier, n, threshold, random_bits() % (equal + 1), edge, shifts, x);
    run_take(tier, n, threshold, 0, edge, shifts, x);
    run_take(tier, n, threshold ^ 1, 1, edge, shifts, x);
    if (n <= N_SMALL) {
        run_take(tier, n, 0, n, edge, shifts, x);
        run_take(tier, n, 0x7fffffff, 2, edge, shifts, x);
    }
    verify_x(x, n);
}

/* Larger magnitudes first, of equal ones the lower place. */
static int before_in_order(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a;
    const uint32_t j = *(const uint32_t *)b;
    const uint32_t left = magnitude(before[i]);
    const uint32_t right = magnitude(before[j]);
    if (left != right)
        return left > right ? -1 : 1;
    return i < j ? -1 : i > j;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a;
    const uint32_t j = *(const uint32_t *)b;
    return i < j ? -1 : i > j;
}

static void run_public(size_t n, size_t k, enum edge edge, const size_t *shifts, const float *x)
{
    memcpy(expected_indices, order, k * sizeof *order);
    qsort(expected_indices, k, sizeof *expected_indices, ascending);
    uint32_t *indices = arena_place(&indices_arena, k * sizeof *indices, edge, shifts[1] * sizeof *indices);
    float *values = arena_place(&values_arena, k * sizeof *values, edge, shifts[2] * sizeof *values);
    const int32_t status = mahe_topk_f32(indices, values, x, k, n);
    if (status != MAHE_OK)
        fail("returned %d", (int)status);
    compare(indices, values, k);
}

/* k at both ends, and where a group of equal ones begins, is cut, and ends. */
static void run_publics(size_t n, enum edge edge, const size_t *shifts, float (*value)(void))
{
    const float *x = place_x(n, edge, shifts[0], value);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort(order, n, sizeof *order, before_in_order);
    const size_t middle = random_bits() % n;
    size_t first = middle;
    size_t end = middle + 1;
    while (first > 0 && magnitude(before[order[first - 1]]) == magnitude(before[order[middle]]))
        first--;
    while (end < n && magnitude(before[order[end]]) == magnitude(before[order[middle]]))
        end++;
    const size_t ks[] = {1, n, first, first + 1, middle + 1, end, 1 + n / 100};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
        run_public(n, ks[i], edge, shifts, x);
    verify_x(x, n);
}

static void check(const struct mahe_table *tier, size_t n, enum edge edge, const size_t *shifts, float (*value)(void))
{
    label("topk_count n=%zu offset %zu", n, shifts[0]);
    run_count(tier, n, edge, shifts[0], value);
    label("topk_take n=%zu offsets %zu, %zu and %zu", n, shifts[0], shifts[1], shifts[2]);
    run_takes(tier, n, edge, shifts, value);
    label("topk n=%zu offsets %zu, %zu and %zu", n, shifts[0], shifts[1], shifts[2]);
    run_publics(n, edge, shifts, value);
}

static void sizes(void)
{
    label("topk sizes");
    uint32_t index = 7;
    float value = 7.0f;
    const float x = 1.0f;
    if (mahe_topk_f32(NULL, NULL, NULL, 0, 0) != MAHE_OK || mahe_topk_f32(NULL, NULL, &x, 0, 1) != MAHE_OK)
        fail("k=0 is refused");
    if (mahe_topk_f32(&index, &value, &x, 2, 1) != MAHE_ERR_SIZE)
        fail("k > n is taken");
    if (mahe_topk_f32(&index, &value, &x, 1, SIZE_MAX) != MAHE_ERR_SIZE)
        fail("any n is taken");
    if (sizeof(size_t) > 4 && mahe_topk_f32(&index, &value, &x, 1, (size_t)UINT32_MAX + (size_t)1) != MAHE_ERR_SIZE)
        fail("n = 2^32 is taken");
    if (index != 7 || value != 7.0f)
        fail("a refused call wrote");
}

void check_topk(const struct mahe_table *tier)
{
    static const size_t none[3];
    if (x_arena.start == NULL) {
        x_arena = arena_new(N_MAX * sizeof(float));
        indices_arena = arena_new(N_MAX * sizeof(uint32_t));
        values_arena = arena_new(N_MAX * sizeof(float));
        counts_arena = arena_new(MAHE_TOPK_BUCKETS * sizeof(uint32_t));
        level_arena = arena_new(sizeof(struct mahe_topk_level));
    }
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    sizes();
    for (const size_t *n = check_lengths(); *n != 0; n++)
        for (size_t f = 0; f < FILLERS; f++)
            if (*n <= N_SMALL || (*n + f) % 4 == 0) {
                check(tier, *n, AT_END, none, fillers[f]);
                if (*n <= N_SMALL && (*n + f) % 2 == 0)
                    check(tier, *n, AT_START, none, fillers[f]);
            }
    for (size_t a = 0; a < 16; a++)
        for (size_t b = 0; b < 16; b++)
            for (size_t n = 1; n <= N_SMALL; n += 7 + n / 4) {
                const size_t shifts[3] = {a, b, random_offset()};
                check(tier, n, n % 2 ? AT_START : AT_END, shifts, n % 3 ? close : any_bits);
            }
    mahe_kernel_set_impl("auto");
}
