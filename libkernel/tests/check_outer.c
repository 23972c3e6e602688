/* check_outer.c: mahe_momentum_f32 and mahe_nesterov_f32 on one tier, against the formulas of the header. */
#include <string.h>

#include "check_model.h"

static struct arena update_arena;
static struct arena m_arena;
static struct arena g_arena;
static float m_before[N_MAX];
static float g_before[N_MAX];

/* Which of the two kernels is checked. */
struct subject {
    kernel fn;
    const char *tier;
    int nesterov;
};

/* Where the arrays lie: the edge, and how many elements from it. */
struct place {
    enum edge edge;
    size_t update;
    size_t m;
    size_t g;
};

static void compare(const struct subject *subject, const float *update, const float *m, float lr, float mu, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float new_m = plus(times(mu, m_before[i]), g_before[i]);
        const float ahead = subject->nesterov ? plus(g_before[i], times(mu, new_m)) : new_m;
        const float new_update = times(lr, ahead);
        if (!same_float(m[i], new_m))
            fail("m[%zu] is %a, should be %a (was %a, g %a, mu %a, %s)", i, (double)m[i], (double)new_m,
                 (double)m_before[i], (double)g_before[i], (double)mu, subject->tier);
        if (!same_float(update[i], new_update))
            fail("update[%zu] is %a, should be %a (m %a, g %a, lr %a, mu %a, %s)", i, (double)update[i],
                 (double)new_update, (double)new_m, (double)g_before[i], (double)lr, (double)mu, subject->tier);
    }
}

/* One call; `alias` puts update and g into one array. */
static void run(const struct subject *subject, size_t n, float lr, float mu, struct place at, int alias,
                float (*value)(void))
{
    const size_t bytes = n * sizeof(float);
    float *m = arena_place(&m_arena, bytes, at.edge, at.m * sizeof *m);
    float *g = arena_place(&g_arena, bytes, at.edge, at.g * sizeof *g);
    float *update = alias ? g : arena_place(&update_arena, bytes, at.edge, at.update * sizeof *update);
    for (size_t i = 0; i < n; i++) {
        m[i] = m_before[i] = value();
        g[i] = g_before[i] = value();
    }
    const struct call call = {{word_of(update), word_of(m), word_of(g), n}, {real_f(lr), real_f(mu)}};
    call_kernel(subject->fn, &call, subject->tier);
    compare(subject, update, m, lr, mu, n);
    arena_verify(&m_arena, m, bytes);
    arena_verify(&g_arena, g, bytes);
    if (alias)
        return;
    arena_verify(&update_arena, update, bytes);
    if (memcmp(g, g_before, bytes) != 0)
        fail("g was changed (%s)", subject->tier);
}

static void lengths(const struct subject *subject, const char *name)
{
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("%s n=%zu", name, *n);
        for (int edge = AT_START; edge <= AT_END; edge++)
            for (int alias = 0; alias < 2; alias++) {
                const struct place at = {(enum edge)edge, 0, 0, 0};
                run(subject, *n, random_uniform(), random_uniform(), at, alias, random_uniform);
                run(subject, *n, random_finite(), random_uniform(), at, alias, random_finite);
                run(subject, *n, random_uniform(), random_uniform(), at, alias, random_mixed);
                run(subject, *n, 0.7f, 0.9f, at, alias, random_special);
            }
    }
}

static void parameters(const struct subject *subject, const char *name)
{
    static const uint32_t numbers[] = {
        0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f666666, 1, 0x80000001, 0x00400000, 0x7f7fffff, 0x7f800000,
        0xff800000, 0x7fc00000,
    };
    const size_t count = sizeof numbers / sizeof *numbers;
    for (size_t pair = 0; pair < count * count; pair++) {
        const float lr = bits_float(numbers[pair / count]);
        const float mu = bits_float(numbers[pair % count]);
        label("%s lr %a mu %a", name, (double)lr, (double)mu);
        for (size_t n = 1; n <= 71; n += 7) {
            const struct place at = {AT_END, 0, 0, 0};
            run(subject, n, lr, mu, at, 0, random_special);
            run(subject, n, lr, mu, at, 0, random_finite);
            run(subject, n, lr, mu, at, 1, random_mixed);
        }
    }
}

static void offsets(const struct subject *subject, const char *name)
{
    for (size_t m = 0; m < 16; m++)
        for (size_t g = 0; g < 16; g++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                const struct place at = {AT_START, random_offset(), m, g};
                label("%s n=%zu offsets %zu, %zu and %zu", name, n, at.update, m, g);
                run(subject, n, 0.7f, 0.9f, at, 0, random_uniform);
            }
}

static void check(const struct subject *subject, const char *name)
{
    lengths(subject, name);
    parameters(subject, name);
    offsets(subject, name);
}

void check_outer(const struct mahe_table *tier)
{
    if (m_arena.start == NULL) {
        update_arena = arena_new(N_MAX * sizeof(float));
        m_arena = arena_new(N_MAX * sizeof(float));
        g_arena = arena_new(N_MAX * sizeof(float));
    }
    check(&(struct subject){(kernel)tier->momentum, tier->name, 0}, "momentum");
    check(&(struct subject){(kernel)tier->nesterov, tier->name, 1}, "nesterov");
}
