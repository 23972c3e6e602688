/* check_decode.c: the decoders of one tier, plain and adding, then mahe_dequantise_* and mahe_dequantise_add_* on it.
 * Every code with every kind of scale and weight. */
#include <string.h>

#include "check_model.h"

static struct arena to_arena;
static struct arena codes_arena;
static struct arena scales_arena;
static float before[N_MAX];
static uint8_t codes_before[N_MAX];
static float scales_before[N_MAX];

static const uint32_t numbers[] = {
    0, 0x80000000, 0x3f800000, 0xbf800000, 0x3dcccccd, 1, 0x80000001, 0x00400000, 0x00800000, 0x7b7fffff, 0x7f7fffff,
    0x7f800000, 0xff800000, 0x7fc00000,
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* One kind of kernel: the format, and whether it adds to what is there. */
struct subject {
    const struct format *format;
    int adds;
};

/* Where the arrays lie: the edge, and how many elements from it. */
struct place {
    enum edge edge;
    size_t to;
    size_t codes;
};

static kernel kernel_of(const struct mahe_table *tier, const struct subject *subject)
{
    if (subject->adds)
        return subject->format->q4 ? (kernel)tier->decode_add_q4 : (kernel)tier->decode_add_q8;
    return subject->format->q4 ? (kernel)tier->decode_q4 : (kernel)tier->decode_q8;
}

/* The codes that lie there: each in turn, from a random one. */
static uint8_t *place_codes(const struct subject *subject, size_t n, struct place at)
{
    const size_t bytes = codes_bytes(subject->format, n);
    uint8_t *codes = arena_place(&codes_arena, bytes, at.edge, at.codes);
    const size_t first = random_bits() % 256;
    for (size_t i = 0; i < bytes; i++)
        codes[i] = codes_before[i] = (uint8_t)(first + i);
    return codes;
}

static float *place_to(size_t n, struct place at, float (*value)(void))
{
    float *to = arena_place(&to_arena, n * sizeof *to, at.edge, at.to * sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = before[i] = value();
    return to;
}

/* Elements [first, first + n) of `to`, which have one scale. */
static void compare(const struct subject *subject, const float *to, size_t first, size_t n, float scale, float weight)
{
    for (size_t i = first; i < first + n; i++) {
        const int code = code_at(subject->format, codes_before, i);
        const float value = times((float)code, scale);
        const float expected = subject->adds ? plus(before[i], times(weight, value)) : value;
        if (!same_float(to[i], expected))
            fail("[%zu] is %a, should be %a (was %a, code %d, scale %a, weight %a)", i, (double)to[i],
                 (double)expected, (double)before[i], code, (double)scale, (double)weight);
    }
}

static void verify(const struct subject *subject, const float *to, const uint8_t *codes, size_t n)
{
    if (memcmp(codes, codes_before, codes_bytes(subject->format, n)) != 0)
        fail("codes were changed");
    arena_verify(&to_arena, to, n * sizeof *to);
    arena_verify(&codes_arena, codes, codes_bytes(subject->format, n));
}

static void run(const struct mahe_table *tier, const struct subject *subject, size_t n, float scale, float weight,
                struct place at, float (*value)(void))
{
    const uint8_t *codes = place_codes(subject, n, at);
    float *to = place_to(n, at, value);
    struct call call = {{word_of(to), word_of(codes), n}, {real_f(scale)}};
    if (subject->adds)
        call.real[1] = real_f(weight);
    call_kernel(kernel_of(tier, subject), &call, tier->name);
    compare(subject, to, 0, n, scale, weight);
    verify(subject, to, codes, n);
}

static void run_public(const struct subject *subject, size_t block, size_t n, float weight, struct place at)
{
    const size_t blocks = (n + block - 1) / block;
    const uint8_t *codes = place_codes(subject, n, at);
    float *to = place_to(n, at, random_uniform);
    float *scales = arena_place(&scales_arena, blocks * sizeof *scales, at.edge, at.to * sizeof *scales);
    for (size_t b = 0; b < blocks; b++)
        scales[b] = scales_before[b] = random_mixed();
    int32_t status;
    if (subject->format->q4)
        status = subject->adds ? mahe_dequantise_add_q4_f32(to, codes, scales, weight, block, n)
                               : mahe_dequantise_q4_f32(to, codes, scales, block, n);
    else
        status = subject->adds ? mahe_dequantise_add_q8_f32(to, (const int8_t *)codes, scales, weight, block, n)
                               : mahe_dequantise_q8_f32(to, (const int8_t *)codes, scales, block, n);
    if (status != MAHE_OK)
        fail("returned %d", (int)status);
    for (size_t b = 0; b < blocks; b++)
        compare(subject, to, b * block, b + 1 < blocks ? block : n - b * block, scales_before[b], weight);
    if (memcmp(scales, scales_before, blocks * sizeof *scales) != 0)
        fail("scales were changed");
    arena_verify(&scales_arena, scales, blocks * sizeof *scales);
    verify(subject, to, codes, n);
}

static void lengths(const struct mahe_table *tier, const struct subject *subject, const char *name)
{
    for (const size_t *n = check_lengths(); *n != 0; n++)
        for (int edge = AT_START; edge <= AT_END; edge++) {
            const struct place at = {(enum edge)edge, 0, 0};
            label("%s n=%zu", name, *n);
            run(tier, subject, *n, random_uniform(), random_uniform(), at, random_uniform);
            run(tier, subject, *n, random_finite(), random_finite(), at, random_finite);
            run(tier, subject, *n, random_uniform(), random_uniform(), at, random_special);
        }
    for (size_t to = 0; to < 16; to++)
        for (size_t codes = 0; codes < 16; codes++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                const struct place at = {n % 3 ? AT_START : AT_END, to, codes};
                label("%s n=%zu offsets %zu and %zu", name, n, to, codes);
                run(tier, subject, n, 0.7f, 0.3f, at, random_uniform);
            }
}

/* 256 bytes in a row are all codes of q8, and all pairs of codes of q4. */
static void scales_and_weights(const struct mahe_table *tier, const struct subject *subject, const char *name)
{
    const struct place at = {AT_END, 0, 0};
    const size_t all = subject->format->q4 ? 512 : 256;
    for (size_t s = 0; s < NUMBERS; s++)
        for (size_t w = 0; w < (subject->adds ? NUMBERS : 1); w++) {
            const float scale = bits_float(numbers[s]);
            const float weight = bits_float(numbers[w]);
            label("%s scale %a weight %a", name, (double)scale, (double)weight);
            run(tier, subject, all, scale, weight, at, random_special);
            for (size_t n = 1; n < 40; n += 2)
                run(tier, subject, n, scale, weight, at, random_mixed);
        }
    for (size_t turn = 0; turn < 200; turn++) {
        label("%s any scale, turn %zu", name, turn);
        run(tier, subject, all - turn % 2, random_finite(), random_finite(), at, random_finite);
    }
}

static void blocks(const struct subject *subject, const char *name)
{
    static const size_t lengths_of[] = {32, 64, 96, 256, 4096};
    for (size_t n = 1; n <= 600; n++) {
        const size_t block = lengths_of[n % 5];
        label("%s n=%zu block %zu", name, n, block);
        run_public(subject, block, n, random_uniform(), (struct place){AT_START, 0, 0});
        run_public(subject, 32, n, random_mixed(), (struct place){AT_END, 0, 0});
        run_public(subject, block, n, 1.0f, (struct place){AT_END, random_offset(), random_offset()});
    }
    label("%s block %d", name, MAHE_BLOCK_MAX);
    run_public(subject, MAHE_BLOCK_MAX, N_MAX, 0.3f, (struct place){AT_END, 0, 0});
    run_public(subject, 8192, N_MAX, 0.3f, (struct place){AT_END, 0, 0});
}

void check_decode(const struct mahe_table *tier)
{
    static const char *const names[2][2] = {{"decode_q8", "decode_add_q8"}, {"decode_q4", "decode_add_q4"}};
    if (to_arena.start == NULL) {
        to_arena = arena_new(N_MAX * sizeof(float));
        codes_arena = arena_new(N_MAX);
        scales_arena = arena_new(N_MAX * sizeof(float) / MAHE_BLOCK_MIN);
    }
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    for (size_t f = 0; f < 2; f++)
        for (int adds = 0; adds < 2; adds++) {
            const struct subject subject = {&formats[f], adds};
            lengths(tier, &subject, names[f][adds]);
            scales_and_weights(tier, &subject, names[f][adds]);
            blocks(&subject, names[f][adds]);
        }
    mahe_kernel_set_impl("auto");
}
