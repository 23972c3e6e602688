/* check_adamw.c: mahe_adamw_f32 on one tier, against the four lines of the header. */
#include <errno.h>
#include <string.h>

#include "check_model.h"

static struct arena arenas[4];
static struct arena step_arena;
static float before[4][N_MAX];

enum { PARAMS, M, V, G, ARRAYS };

/* What the arrays hold. */
struct values {
    float (*params)(void);
    float (*m)(void);
    float (*v)(void);
    float (*g)(void);
};

static float positive(void)
{
    return fabsf(random_uniform());
}

static float zero(void)
{
    return 0.0f;
}

static float positive_finite(void)
{
    return fabsf(random_finite());
}

static const struct values ordinary = {random_uniform, random_uniform, positive, random_uniform};
static const struct values first_step = {random_uniform, zero, zero, random_mixed};
static const struct values any_finite = {random_finite, random_finite, positive_finite, random_finite};
static const struct values mixed = {random_mixed, random_mixed, random_mixed, random_mixed};
static const struct values special = {random_special, random_special, random_special, random_special};

static mahe_adamw usual(int t)
{
    const double beta1 = 0.9;
    const double beta2 = 0.999;
    return (mahe_adamw){
        .lr = 1e-3f,
        .beta1 = (float)beta1,
        .rest1 = (float)(1.0 - beta1),
        .beta2 = (float)beta2,
        .rest2 = (float)(1.0 - beta2),
        .unbias1 = (float)(1.0 / (1.0 - pow(beta1, t))),
        .unbias2 = (float)(1.0 / (1.0 - pow(beta2, t))),
        .eps = 1e-8f,
        .weight_decay = 1e-2f,
    };
}

static void expect(const char *name, size_t i, float got, float expected, const char *tier)
{
    if (!same_float(got, expected))
        fail("%s[%zu] is %a, should be %a (params %a, m %a, v %a, g %a, %s)", name, i, (double)got, (double)expected,
             (double)before[PARAMS][i], (double)before[M][i], (double)before[V][i], (double)before[G][i], tier);
}

static void compare(float *const *arrays, const mahe_adamw *step, size_t n, const char *tier)
{
    for (size_t i = 0; i < n; i++) {
        const float params = before[PARAMS][i];
        const float g = before[G][i];
        const float m = plus(times(step->beta1, before[M][i]), times(step->rest1, g));
        const float v = plus(times(step->beta2, before[V][i]), times(step->rest2, times(g, g)));
        const float below = plus(root(times(v, step->unbias2)), step->eps);
        const float d = plus(over(times(m, step->unbias1), below), times(params, step->weight_decay));
        expect("m", i, arrays[M][i], m, tier);
        expect("v", i, arrays[V][i], v, tier);
        expect("params", i, arrays[PARAMS][i], minus(params, times(step->lr, d)), tier);
    }
    if (memcmp(arrays[G], before[G], n * sizeof(float)) != 0)
        fail("g was changed (%s)", tier);
}

static void run(const struct mahe_table *tier, size_t n, const mahe_adamw *step, enum edge edge, const size_t *shifts,
                const struct values *values)
{
    float (*const fill[])(void) = {values->params, values->m, values->v, values->g};
    float *arrays[ARRAYS];
    const size_t bytes = n * sizeof(float);
    for (size_t a = 0; a < ARRAYS; a++) {
        arrays[a] = arena_place(&arenas[a], bytes, edge, shifts[a] * sizeof(float));
        for (size_t i = 0; i < n; i++)
            arrays[a][i] = before[a][i] = fill[a]();
    }
    mahe_adamw *placed = arena_place(&step_arena, sizeof *placed, edge, shifts[G] * sizeof(float));
    memcpy(placed, step, sizeof *placed);
    const struct call call = {
        {word_of(arrays[PARAMS]), word_of(arrays[M]), word_of(arrays[V]), word_of(arrays[G]), word_of(placed), n}, {0},
    };
    errno = 0;
    call_kernel((kernel)tier->adamw, &call, tier->name);
    if (errno != 0)
        fail("errno was set to %d (%s)", errno, tier->name);
    compare(arrays, step, n, tier->name);
    if (memcmp(placed, step, sizeof *placed) != 0)
        fail("step was changed (%s)", tier->name);
    for (size_t a = 0; a < ARRAYS; a++)
        arena_verify(&arenas[a], arrays[a], bytes);
    arena_verify(&step_arena, placed, sizeof *placed);
}

static void lengths(const struct mahe_table *tier)
{
    static const size_t none[ARRAYS];
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("adamw n=%zu", *n);
        const mahe_adamw step = usual(1 + (int)(*n % 100));
        for (int edge = AT_START; edge <= AT_END; edge++) {
            run(tier, *n, &step, (enum edge)edge, none, &ordinary);
            run(tier, *n, &step, (enum edge)edge, none, &first_step);
            run(tier, *n, &step, (enum edge)edge, none, &any_finite);
            run(tier, *n, &step, (enum edge)edge, none, &mixed);
            run(tier, *n, &step, (enum edge)edge, none, &special);
        }
    }
}

static void offsets(const struct mahe_table *tier)
{
    const mahe_adamw step = usual(3);
    for (size_t a = 0; a < 16; a++)
        for (size_t b = 0; b < 16; b++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                size_t shifts[ARRAYS] = {random_offset(), random_offset(), random_offset(), random_offset()};
                shifts[n % ARRAYS] = a;
                shifts[(n + 1 + n / ARRAYS % (ARRAYS - 1)) % ARRAYS] = b;
                label("adamw n=%zu offsets %zu, %zu, %zu and %zu", n, shifts[0], shifts[1], shifts[2], shifts[3]);
                run(tier, n, &step, n % 2 ? AT_START : AT_END, shifts, &ordinary);
            }
}

/* One field after the other gets each of these numbers; then all of them get any. */
static void steps(const struct mahe_table *tier)
{
    static const uint32_t numbers[] = {
        0, 0x80000000, 0x3f800000, 0xbf800000, 1, 0x00400000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
    };
    static const size_t none[ARRAYS];
    const size_t fields = sizeof(mahe_adamw) / sizeof(float);
    for (size_t field = 0; field < fields; field++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            mahe_adamw step = usual(7);
            memcpy((unsigned char *)&step + field * sizeof(float), &numbers[i], sizeof(float));
            label("adamw field %zu is %#x", field, (unsigned)numbers[i]);
            for (size_t n = 1; n <= 71; n += 5) {
                run(tier, n, &step, AT_END, none, &first_step);
                run(tier, n, &step, AT_END, none, &any_finite);
                run(tier, n, &step, AT_END, none, &special);
            }
        }
    for (size_t turn = 0; turn < 1000; turn++) {
        float numbers_of[sizeof(mahe_adamw) / sizeof(float)];
        for (size_t field = 0; field < fields; field++)
            numbers_of[field] = turn % 2 ? random_mixed() : random_finite();
        mahe_adamw step;
        memcpy(&step, numbers_of, sizeof step);
        label("adamw any step, turn %zu", turn);
        run(tier, 1 + turn % 40, &step, AT_END, none, turn % 4 < 2 ? &ordinary : &mixed);
    }
}

void check_adamw(const struct mahe_table *tier)
{
    if (step_arena.start == NULL) {
        for (size_t a = 0; a < ARRAYS; a++)
            arenas[a] = arena_new(N_MAX * sizeof(float));
        step_arena = arena_new(sizeof(mahe_adamw));
    }
    lengths(tier);
    offsets(tier);
    steps(tier);
}
