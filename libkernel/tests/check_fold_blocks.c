/* check_fold_blocks.c: fold_q8 and fold_q4 of one tier, then mahe_fold_q8_i64 and mahe_fold_q4_i64 on it, in the whole
 * range of their precondition. The model rounds by cutting off, so it shares neither rint nor the magic number. */
#include <string.h>

#include "check_model.h"

static struct arena acc_arena;
static struct arena codes_arena;
static struct arena scales_arena;
static int64_t before[N_MAX];
static uint8_t codes_before[N_MAX];
static float scales_before[N_MAX];

/* Where the arrays lie: the edge, and how many elements from it. */
struct place {
    enum edge edge;
    size_t acc;
    size_t codes;
};

static int64_t *place_acc(size_t n, struct place at)
{
    int64_t *acc = arena_place(&acc_arena, n * sizeof *acc, at.edge, at.acc * sizeof *acc);
    for (size_t i = 0; i < n; i++)
        acc[i] = before[i] = (int64_t)random_bits();
    return acc;
}

/* The codes that lie there: each in turn, from a random one. */
static uint8_t *place_codes(const struct format *format, size_t n, struct place at)
{
    const size_t bytes = codes_bytes(format, n);
    uint8_t *codes = arena_place(&codes_arena, bytes, at.edge, at.codes);
    const size_t first = random_bits() % 256;
    for (size_t i = 0; i < bytes; i++)
        codes[i] = codes_before[i] = (uint8_t)(first + i);
    return codes;
}

/* Elements [first, first + n) of acc, which have one scale. */
static void compare(const struct format *format, const int64_t *acc, size_t first, size_t n, float scale, double factor)
{
    for (size_t i = first; i < first + n; i++) {
        const int code = code_at(format, codes_before, i);
        const double product = (double)times((float)code, scale) * factor;
        if (!(fabs(product) <= 0x1p51))
            fail("the check itself went beyond 2^51: code %d, scale %a, factor %a", code, (double)scale, factor);
        const int64_t expected = (int64_t)((uint64_t)before[i] + (uint64_t)nearest_even(product));
        if (acc[i] != expected)
            fail("[%zu] is off by %lld (code %d, scale %a, factor %a)", i,
                 (long long)((uint64_t)acc[i] - (uint64_t)expected), code, (double)scale, factor);
    }
}

static void verify(const struct format *format, const int64_t *acc, const uint8_t *codes, size_t n)
{
    if (memcmp(codes, codes_before, codes_bytes(format, n)) != 0)
        fail("codes were changed");
    arena_verify(&acc_arena, acc, n * sizeof *acc);
    arena_verify(&codes_arena, codes, codes_bytes(format, n));
}

static kernel kernel_of(const struct mahe_table *tier, const struct format *format)
{
    return format->q4 ? (kernel)tier->fold_q4 : (kernel)tier->fold_q8;
}

static void run(const struct mahe_table *tier, const struct format *format, size_t n, float scale, double factor,
                struct place at)
{
    int64_t *acc = place_acc(n, at);
    const uint8_t *codes = place_codes(format, n, at);
    const struct call call = {{word_of(acc), word_of(codes), n}, {real_f(scale), real_d(factor)}};
    call_kernel(kernel_of(tier, format), &call, tier->name);
    compare(format, acc, 0, n, scale, factor);
    verify(format, acc, codes, n);
}

/* Beyond the precondition the values are free, but nothing else may be touched. */
static void run_beyond(const struct mahe_table *tier, const struct format *format, size_t n, float scale, double factor)
{
    int64_t *acc = place_acc(n, (struct place){AT_END, 0, 0});
    const uint8_t *codes = place_codes(format, n, (struct place){AT_END, 0, 0});
    const struct call call = {{word_of(acc), word_of(codes), n}, {real_f(scale), real_d(factor)}};
    call_kernel(kernel_of(tier, format), &call, tier->name);
    verify(format, acc, codes, n);
}

static void run_public(const struct format *format, size_t block, size_t n, double factor, struct place at)
{
    const size_t blocks = (n + block - 1) / block;
    int64_t *acc = place_acc(n, at);
    const uint8_t *codes = place_codes(format, n, at);
    float *scales = arena_place(&scales_arena, blocks * sizeof *scales, at.edge, at.acc * sizeof *scales);
    for (size_t b = 0; b < blocks; b++)
        scales[b] = scales_before[b] = random_uniform();
    const int32_t status = format->q4 ? mahe_fold_q4_i64(acc, codes, scales, factor, block, n)
                                      : mahe_fold_q8_i64(acc, (const int8_t *)codes, scales, factor, block, n);
    if (status != MAHE_OK)
        fail("returned %d", (int)status);
    for (size_t b = 0; b < blocks; b++)
        compare(format, acc, b * block, b + 1 < blocks ? block : n - b * block, scales_before[b], factor);
    if (memcmp(scales, scales_before, blocks * sizeof *scales) != 0)
        fail("scales were changed");
    arena_verify(&scales_arena, scales, blocks * sizeof *scales);
    verify(format, acc, codes, n);
}

static void lengths(const struct mahe_table *tier, const struct format *format)
{
    for (const size_t *n = check_lengths(); *n != 0; n++)
        for (int edge = AT_START; edge <= AT_END; edge++) {
            const struct place at = {(enum edge)edge, 0, 0};
            label("fold_%s n=%zu", format->name, *n);
            run(tier, format, *n, random_uniform(), 0x1p40 / 1000.0, at);
            run(tier, format, *n, 1.0f, 0x1p44, at);
        }
    for (size_t acc = 0; acc < 16; acc++)
        for (size_t codes = 0; codes < 16; codes++)
            for (size_t n = 1; n <= N_SMALL; n += 1 + n / 20) {
                label("fold_%s n=%zu offsets %zu and %zu", format->name, n, acc, codes);
                run(tier, format, n, 0.7f, 12345.678, (struct place){n % 3 ? AT_START : AT_END, acc, codes});
            }
}

/* 256 bytes in a row are all codes of q8, and all pairs of codes of q4. The largest product is 2^51 or close to it. */
static void whole_range(const struct mahe_table *tier, const struct format *format)
{
    static const uint32_t scales[] = {0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f2aaaab, 0x3f000000, 0, 0x80000000};
    const struct place at = {AT_END, 0, 0};
    const size_t all = format->q4 ? 512 : 256;
    const double largest = format->q4 ? 0x1p48 : 0x1p44;
    for (int power = 0; power <= 51; power++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            const float scale = bits_float(scales[s]);
            const double factor = ldexp(largest, -power);
            label("fold_%s scale %a factor %a", format->name, (double)scale, factor);
            run(tier, format, all, scale, factor, at);
            run(tier, format, all - 1, scale, -factor, at);
            run(tier, format, all - 3, scale, factor * (0.5 + 0x1p-54 * (double)(random_bits() >> 11)), at);
            run(tier, format, 1 + random_bits() % 40, random_uniform(), factor, at);
        }
    for (int exponent = -149; exponent < 120; exponent++) {
        const float scale = ldexpf(1.0f, exponent);
        label("fold_%s scale %a", format->name, (double)scale);
        run(tier, format, all, scale, ldexp(largest, -exponent), at);
        run(tier, format, all, scale, ldexp(0.5, -exponent), at);
        run(tier, format, all, scale, ldexp(1.0 / 3.0, -exponent), at);
        run(tier, format, all - 1, scale, 1.0 / ldexp(3.0, exponent), at);
    }
}

static void beyond(const struct mahe_table *tier, const struct format *format)
{
    static const uint32_t scales[] = {0x3f800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 1};
    static const double factors[] = {0x1p53, -0x1p1000, (double)INFINITY, (double)NAN};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
            for (size_t n = 1; n < 70; n += 3) {
                label("fold_%s n=%zu scale %#x factor %a", format->name, n, (unsigned)scales[s], factors[f]);
                run_beyond(tier, format, n, bits_float(scales[s]), factors[f]);
            }
}

static void blocks(const struct format *format)
{
    static const size_t lengths_of[] = {32, 64, 96, 256, 4096};
    for (size_t n = 1; n <= 600; n++) {
        const size_t block = lengths_of[n % 5];
        label("fold_%s n=%zu block %zu", format->name, n, block);
        run_public(format, block, n, 0x1p30 / 7.0, (struct place){AT_START, 0, 0});
        run_public(format, 32, n, 0x1p44, (struct place){AT_END, 0, 0});
        run_public(format, block, n, 10.0, (struct place){AT_END, random_offset(), random_offset()});
    }
    label("fold_%s block %d", format->name, MAHE_BLOCK_MAX);
    run_public(format, MAHE_BLOCK_MAX, N_MAX, 1e6, (struct place){AT_END, 0, 0});
    run_public(format, 8192, N_MAX, 1e6, (struct place){AT_END, 0, 0});
}

void check_fold_blocks(const struct mahe_table *tier)
{
    if (acc_arena.start == NULL) {
        acc_arena = arena_new(N_MAX * sizeof(int64_t));
        codes_arena = arena_new(N_MAX);
        scales_arena = arena_new(N_MAX * sizeof(float) / MAHE_BLOCK_MIN);
    }
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        lengths(tier, &formats[i]);
        whole_range(tier, &formats[i]);
        beyond(tier, &formats[i]);
        blocks(&formats[i]);
    }
    mahe_kernel_set_impl("auto");
}
