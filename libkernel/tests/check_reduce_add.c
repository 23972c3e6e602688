/* check_reduce_add.c: mahe_reduce_add_f32 and mahe_sgd_update_f32 on one tier, against the formula of the header. */
#include <string.h>

#include "check.h"

static struct arena to_arena;
static struct arena from_arena;
static float before[N_MAX];
static float expected[N_MAX];

/* Which of the two kernels is checked: the sign of the product. */
struct subject {
    kernel fn;
    const char *tier;
    int subtract;
};

static float model(const struct subject *subject, float a, float b, float weight)
{
    const float product = weight * b;
    return subject->subtract ? a - product : a + product;
}

static void call(const struct subject *subject, float *a, const float *b, float weight, size_t n)
{
    call_kernel(subject->fn, &(struct call){{word_of(a), word_of(b), n}, {real_f(weight)}}, subject->tier);
}

static void compare(const struct subject *subject, const float *got, size_t n, float weight)
{
    for (size_t i = 0; i < n; i++)
        if (!same_float(got[i], expected[i]))
            fail("[%zu] is %a, should be %a (was %a, weight %a, %s)", i, (double)got[i], (double)expected[i],
                 (double)before[i], (double)weight, subject->tier);
}

/* One call on two separate buffers, each `shift` bytes from its guard page. */
static void apart(const struct subject *subject, size_t n, float weight, enum edge edge, size_t to_shift,
                  size_t from_shift, float (*value)(void))
{
    const size_t bytes = n * sizeof(float);
    float *to = arena_place(&to_arena, bytes, edge, to_shift);
    float *from = arena_place(&from_arena, bytes, edge, from_shift);
    for (size_t i = 0; i < n; i++) {
        from[i] = value();
        to[i] = before[i] = value();
        expected[i] = model(subject, to[i], from[i], weight);
    }
    call(subject, to, from, weight, n);
    compare(subject, to, n, weight);
    arena_verify(&to_arena, to, bytes);
    arena_verify(&from_arena, from, bytes);
}

/* dst == src. */
static void alias(const struct subject *subject, size_t n, float weight, enum edge edge)
{
    const size_t bytes = n * sizeof(float);
    float *both = arena_place(&to_arena, bytes, edge, 0);
    for (size_t i = 0; i < n; i++) {
        both[i] = before[i] = random_finite();
        expected[i] = model(subject, both[i], both[i], weight);
    }
    call(subject, both, both, weight, n);
    compare(subject, both, n, weight);
    arena_verify(&to_arena, both, bytes);
}

static void check(const struct subject *subject, const char *name)
{
    static const uint32_t weights[] = {
        0, 0x80000000, 0x3f800000, 0xbf800000, 0x3dcccccd, 1, 0x80000001, 0x00400000, 0x7f7fffff, 0x7f800000,
        0xff800000, 0x7fc00000,
    };
    for (const size_t *n = check_lengths(); *n != 0; n++) {
        label("%s n=%zu", name, *n);
        for (int edge = AT_START; edge <= AT_END; edge++) {
            apart(subject, *n, random_uniform(), edge, 0, 0, random_uniform);
            apart(subject, *n, random_finite(), edge, 0, 0, random_finite);
            apart(subject, *n, random_uniform(), edge, 0, 0, random_special);
            alias(subject, *n, random_uniform(), edge);
        }
    }
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++) {
        label("%s weight %#x", name, (unsigned)weights[w]);
        for (size_t n = 1; n <= 71; n++) {
            apart(subject, n, bits_float(weights[w]), AT_END, 0, 0, random_special);
            apart(subject, n, bits_float(weights[w]), AT_END, 0, 0, random_finite);
        }
    }
    for (size_t to = 0; to < 16; to++)
        for (size_t from = 0; from < 16; from++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 40) {
                label("%s n=%zu offsets %zu and %zu", name, n, to, from);
                apart(subject, n, 0.3f, AT_START, to * sizeof(float), from * sizeof(float), random_uniform);
            }
}

static void make_arenas(void)
{
    if (to_arena.start != NULL)
        return;
    to_arena = arena_new(N_MAX * sizeof(float));
    from_arena = arena_new(N_MAX * sizeof(float));
}

void check_reduce_add(const struct mahe_table *tier)
{
    make_arenas();
    check(&(struct subject){(kernel)tier->reduce_add, tier->name, 0}, "reduce_add");
}

void check_sgd_update(const struct mahe_table *tier)
{
    make_arenas();
    check(&(struct subject){(kernel)tier->sgd_update, tier->name, 1}, "sgd_update");
}
