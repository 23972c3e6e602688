/* check_arguments.c: what the public functions say about their arguments before a tier runs, and that they write
 * nothing then. Each function is described once, from the words of the header; the tests follow from that. */
#include <string.h>

#include "check.h"

#define ARRAYS_MAX 5
#define N 71     /* not a multiple of a block, odd */
#define BLOCK 32
#define K 9
#define ROOM_BYTES 16384
#define SLOT_BYTES 2048 /* more than any array below */

/* What an array holds, which gives its length in bytes. */
enum holds { NOTHING, F32, I64, B16, BYTES, NIBBLES, SCALES, LARGEST, STATS, STEP, TAKEN };

/* How it may be used: arrays marked SAME may be exact aliases of each other. */
enum use { WRITTEN = 1, SAME = 2, OPTIONAL = 4 };

struct parameter {
    enum holds holds;
    int use;
};

/* `direct` is what `run` hands its arguments to, where that is one call of one kernel. */
struct function {
    const char *name;
    int32_t (*run)(void *const *p, size_t block, size_t n);
    void (*direct)(const struct mahe_table *tier, void *const *p, size_t n);
    struct parameter parameters[ARRAYS_MAX];
};

#define RUN(name, ...) \
    static int32_t run_##name(void *const *p, size_t block, size_t n) \
    { \
        (void)block; \
        return mahe_##name(__VA_ARGS__); \
    }

#define RUN_BOTH(name, kernel, ...) \
    RUN(name, __VA_ARGS__) \
    static void direct_##name(const struct mahe_table *tier, void *const *p, size_t n) \
    { \
        tier->kernel(__VA_ARGS__); \
    }

RUN_BOTH(reduce_add_f32, reduce_add, p[0], p[1], 0.5f, n)
RUN_BOTH(sgd_update_f32, sgd_update, p[0], p[1], 0.5f, n)
RUN_BOTH(fold_f32_i64, fold, p[0], p[1], 4.0, n)
RUN_BOTH(stats_f32, stats, p[1], n, p[0])
RUN_BOTH(momentum_f32, momentum, p[0], p[1], p[2], 0.5f, 0.75f, n)
RUN_BOTH(nesterov_f32, nesterov, p[0], p[1], p[2], 0.5f, 0.75f, n)
RUN_BOTH(adamw_f32, adamw, p[0], p[1], p[2], p[3], p[4], n)
RUN_BOTH(bf16_from_f32, bf16_from_f32, p[0], p[1], n)
RUN_BOTH(f32_from_bf16, f32_from_bf16, p[0], p[1], n)
RUN(absmax_f32, p[1], n, p[0])
RUN(quantise_q8_f32, p[0], p[1], p[2], p[3], p[4], block, n)
RUN(quantise_q4_f32, p[0], p[1], p[2], p[3], p[4], block, n)
RUN(dequantise_q8_f32, p[0], p[1], p[2], block, n)
RUN(dequantise_q4_f32, p[0], p[1], p[2], block, n)
RUN(dequantise_add_q8_f32, p[0], p[1], p[2], 0.5f, block, n)
RUN(dequantise_add_q4_f32, p[0], p[1], p[2], 0.5f, block, n)
RUN(fold_q8_i64, p[0], p[1], p[2], 4.0, block, n)
RUN(fold_q4_i64, p[0], p[1], p[2], 4.0, block, n)
RUN(topk_f32, p[0], p[1], p[2], n < K ? n : K, n)

/* Its tier returns what the public function writes. */
static void direct_absmax_f32(const struct mahe_table *tier, void *const *p, size_t n)
{
    const uint32_t bits = tier->absmax(p[1], n);
    memcpy(p[0], &bits, sizeof bits);
}

#define QUANTISE(codes) \
    {{codes, WRITTEN}, {SCALES, WRITTEN}, {F32, WRITTEN | SAME}, {F32, 0}, {F32, SAME | OPTIONAL}}
#define DECODE(to, codes) {{to, WRITTEN}, {codes, 0}, {SCALES, 0}}

static const struct function functions[] = {
    {"reduce_add", run_reduce_add_f32, direct_reduce_add_f32, {{F32, WRITTEN | SAME}, {F32, SAME}}},
    {"sgd_update", run_sgd_update_f32, direct_sgd_update_f32, {{F32, WRITTEN | SAME}, {F32, SAME}}},
    {"fold", run_fold_f32_i64, direct_fold_f32_i64, {{I64, WRITTEN}, {F32, 0}}},
    {"absmax", run_absmax_f32, direct_absmax_f32, {{LARGEST, WRITTEN}, {F32, 0}}},
    {"stats", run_stats_f32, direct_stats_f32, {{STATS, WRITTEN}, {F32, 0}}},
    {"momentum", run_momentum_f32, direct_momentum_f32, {{F32, WRITTEN | SAME}, {F32, WRITTEN}, {F32, SAME}}},
    {"nesterov", run_nesterov_f32, direct_nesterov_f32, {{F32, WRITTEN | SAME}, {F32, WRITTEN}, {F32, SAME}}},
    {"adamw", run_adamw_f32, direct_adamw_f32, {{F32, WRITTEN}, {F32, WRITTEN}, {F32, WRITTEN}, {F32, 0}, {STEP, 0}}},
    {"bf16_from_f32", run_bf16_from_f32, direct_bf16_from_f32, {{B16, WRITTEN}, {F32, 0}}},
    {"f32_from_bf16", run_f32_from_bf16, direct_f32_from_bf16, {{F32, WRITTEN}, {B16, 0}}},
    {"quantise_q8", run_quantise_q8_f32, NULL, QUANTISE(BYTES)},
    {"quantise_q4", run_quantise_q4_f32, NULL, QUANTISE(NIBBLES)},
    {"dequantise_q8", run_dequantise_q8_f32, NULL, DECODE(F32, BYTES)},
    {"dequantise_q4", run_dequantise_q4_f32, NULL, DECODE(F32, NIBBLES)},
    {"dequantise_add_q8", run_dequantise_add_q8_f32, NULL, DECODE(F32, BYTES)},
    {"dequantise_add_q4", run_dequantise_add_q4_f32, NULL, DECODE(F32, NIBBLES)},
    {"fold_q8", run_fold_q8_i64, NULL, DECODE(I64, BYTES)},
    {"fold_q4", run_fold_q4_i64, NULL, DECODE(I64, NIBBLES)},
    {"topk", run_topk_f32, NULL, {{TAKEN, WRITTEN}, {TAKEN, WRITTEN}, {F32, 0}}},
};

static union {
    unsigned char bytes[ROOM_BYTES];
    int64_t aligned;
} room;
static unsigned char laid[ROOM_BYTES];   /* the room as it was laid out */
static unsigned char before[ROOM_BYTES]; /* the same and what may have been written since */

static size_t bytes_of(enum holds holds, size_t n)
{
    switch (holds) {
    case F32: return n * 4;
    case I64: return n * 8;
    case B16: return n * 2;
    case BYTES: return n;
    case NIBBLES: return (n + 1) / 2;
    case SCALES: return (n + BLOCK - 1) / BLOCK * 4;
    case LARGEST: return sizeof(float);
    case STATS: return sizeof(mahe_stats);
    case STEP: return sizeof(mahe_adamw);
    case TAKEN: return (n < K ? n : K) * 4;
    case NOTHING: break;
    }
    return 0;
}

/* The distances between two arrays that their elements allow. */
static size_t alignment_of(enum holds holds)
{
    if (holds == BYTES || holds == NIBBLES)
        return 1;
    if (holds == B16)
        return 2;
    return holds == I64 || holds == STATS ? 8 : 4;
}

static size_t count_of(const struct function *f)
{
    size_t count = 0;
    while (count < ARRAYS_MAX && f->parameters[count].holds != NOTHING)
        count++;
    return count;
}

/* Every array in a slot of its own, with bytes that are ordinary numbers in every type. */
static void spread(void **p)
{
    for (size_t i = 0; i < ROOM_BYTES; i++)
        room.bytes[i] = (unsigned char)(i % 4 == 3 ? 0x3f : i % 4 == 2 ? 0x80 : random_bits());
    for (size_t i = 0; i < ARRAYS_MAX; i++)
        p[i] = room.bytes + SLOT_BYTES * (1 + i);
    memcpy(laid, room.bytes, ROOM_BYTES);
    memcpy(before, room.bytes, ROOM_BYTES);
}

/* One call: its status, and that it wrote only the arrays it may write, or nothing. */
static void expect(const struct function *f, const char *what, void *const *p, size_t block, size_t n, int32_t status)
{
    const int32_t got = f->run(p, block, n);
    if (got != status)
        fail("%s returned %d, should be %d", what, (int)got, (int)status);
    if (got == MAHE_OK)
        for (size_t i = 0; i < count_of(f); i++)
            if (f->parameters[i].use & WRITTEN && p[i] != NULL) {
                const size_t at = (size_t)((unsigned char *)p[i] - room.bytes);
                memcpy(before + at, room.bytes + at, bytes_of(f->parameters[i].holds, n));
            }
    for (size_t i = 0; i < ROOM_BYTES; i++)
        if (room.bytes[i] != before[i])
            fail("%s wrote to where nothing is to be written", what);
}

static void absent(const struct function *f)
{
    void *p[ARRAYS_MAX];
    for (size_t i = 0; i < count_of(f); i++) {
        spread(p);
        p[i] = NULL;
        expect(f, "NULL", p, BLOCK, N, f->parameters[i].use & OPTIONAL ? MAHE_OK : MAHE_ERR_NULL);
    }
    const int written_for_nothing = f->parameters[0].holds == LARGEST || f->parameters[0].holds == STATS;
    void *const none[ARRAYS_MAX] = {0};
    expect(f, "n = 0", none, BLOCK, 0, written_for_nothing ? MAHE_ERR_NULL : MAHE_OK);
    spread(p);
    expect(f, "n = 0", p, BLOCK, 0, MAHE_OK);
}

static void too_large(const struct function *f)
{
    size_t widest = 4;
    for (size_t i = 0; i < count_of(f); i++)
        if (f->parameters[i].holds == I64)
            widest = 8;
    const size_t lengths[] = {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX / 2 + 1, SIZE_MAX / widest, SIZE_MAX / widest + 1,
                              SIZE_MAX / widest + 9, PTRDIFF_MAX / widest + 1};
    void *p[ARRAYS_MAX];
    spread(p);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        expect(f, "a length beyond the address space", p, BLOCK, lengths[i], MAHE_ERR_SIZE);
}

/* One of two arrays stays, the other lies at every distance from it that its elements allow. */
static void overlap_pair(const struct function *f, size_t i, size_t j)
{
    const size_t stays = alignment_of(f->parameters[i].holds) < alignment_of(f->parameters[j].holds) ? j : i;
    const size_t moves = stays == i ? j : i;
    const struct parameter *a = &f->parameters[stays];
    const struct parameter *b = &f->parameters[moves];
    const size_t bytes_a = bytes_of(a->holds, N);
    const size_t bytes_b = bytes_of(b->holds, N);
    const size_t step = alignment_of(b->holds);
    const size_t below = (bytes_b + step - 1) / step * step;
    const int one_is_written = (a->use | b->use) & WRITTEN;
    const int same = a->use & b->use & SAME;
    for (size_t at = 0; at <= below + bytes_a + step; at += step) {
        void *p[ARRAYS_MAX];
        spread(p);
        p[moves] = (unsigned char *)p[stays] + at - below;
        const int apart = at + bytes_b <= below || at >= below + bytes_a;
        const int allowed = apart || !one_is_written || (same && at == below);
        expect(f, "overlap", p, BLOCK, N, allowed ? MAHE_OK : MAHE_ERR_OVERLAP);
    }
}

static void overlaps(const struct function *f)
{
    for (size_t i = 0; i < count_of(f); i++)
        for (size_t j = i + 1; j < count_of(f); j++)
            overlap_pair(f, i, j);
}

static void blocks(const struct function *f)
{
    static const size_t good[] = {32, 64, 96, 65504, 65536};
    static const size_t bad[] = {0, 1, 8, 16, 31, 33, 48, 65535, 65537, 65568, 131072, SIZE_MAX, SIZE_MAX - 31};
    int on_blocks = 0;
    for (size_t i = 0; i < count_of(f); i++)
        on_blocks |= f->parameters[i].holds == SCALES;
    if (!on_blocks)
        return;
    void *p[ARRAYS_MAX];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        spread(p);
        expect(f, "a good block", p, good[i], N, MAHE_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spread(p);
        expect(f, "a bad block", p, bad[i], N, MAHE_ERR_BLOCK);
    }
}

/* The tier in use does the work, by the kernel of that name. */
static void handed_on(const struct function *f, const struct mahe_table *tier)
{
    static unsigned char done[ROOM_BYTES];
    void *p[ARRAYS_MAX];
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    spread(p);
    expect(f, "good arguments", p, BLOCK, N, MAHE_OK);
    memcpy(done, room.bytes, ROOM_BYTES);
    memcpy(room.bytes, laid, ROOM_BYTES);
    f->direct(tier, p, N);
    if (memcmp(done, room.bytes, ROOM_BYTES) != 0)
        fail("is not what the kernel does (%s)", tier->name);
    mahe_kernel_set_impl("auto");
}

static void results_of_nothing(void)
{
    label("arguments of absmax");
    float largest = 7.0f;
    if (mahe_absmax_f32(NULL, 0, &largest) != MAHE_OK)
        fail("refused n = 0");
    if (float_bits(largest) != 0)
        fail("n = 0 is not +0");
    label("arguments of stats");
    mahe_stats out = {7, 7.0f, 7.0};
    if (mahe_stats_f32(NULL, 0, &out) != MAHE_OK)
        fail("refused n = 0");
    if (out.nonfinite != 0 || float_bits(out.absmax) != 0 || real_d(out.sum_squares) != 0)
        fail("n = 0 is not all zeros");
}

static void topk_counts(void)
{
    label("arguments of topk");
    float x[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    uint32_t indices[4] = {7, 7, 7, 7};
    float values[4] = {7.0f, 7.0f, 7.0f, 7.0f};
    if (mahe_topk_f32(NULL, NULL, NULL, 0, 4) != MAHE_OK || mahe_topk_f32(NULL, NULL, NULL, 0, SIZE_MAX) != MAHE_OK)
        fail("refused k = 0");
    if (mahe_topk_f32(indices, values, x, 5, 4) != MAHE_ERR_SIZE)
        fail("took k > n");
    if (mahe_topk_f32(indices, values, x, 1, 0) != MAHE_ERR_SIZE)
        fail("took k = 1, n = 0");
#if SIZE_MAX > UINT32_MAX
    if (mahe_topk_f32(indices, values, x, 1, (size_t)UINT32_MAX + 1) != MAHE_ERR_SIZE)
        fail("took n = 2^32");
#endif
    if (indices[0] != 7 || float_bits(values[0]) != float_bits(7.0f))
        fail("wrote something");
    if (mahe_topk_f32(indices, values, x, 4, 4) != MAHE_OK || indices[3] != 3)
        fail("refused k = n");
}

static void refuse_segments(const char *what, const mahe_segment *segments, size_t count, int32_t status)
{
    memcpy(before, room.bytes, ROOM_BYTES);
    const int32_t got = mahe_axpy_segments_f32(segments, 0.5f, count);
    if (got != status)
        fail("%s returned %d, should be %d", what, (int)got, (int)status);
    if (memcmp(before, room.bytes, ROOM_BYTES) != 0)
        fail("%s: something was written", what);
}

/* The first segment is always good: it must not be written when a later one is bad. */
static void segment_arguments(void)
{
    label("arguments of segments");
    void *p[ARRAYS_MAX];
    spread(p);
    float *a = p[0];
    float *b = p[1];
    mahe_segment *list = p[2];
    const mahe_segment good = {a + 64, b + 64, 8};
    const struct {
        const char *what;
        mahe_segment second;
        int32_t status;
    } cases[] = {
        {"no dst", {NULL, b, 8}, MAHE_ERR_NULL},
        {"no src", {a, NULL, 8}, MAHE_ERR_NULL},
        {"overlap up", {a, a + 7, 8}, MAHE_ERR_OVERLAP},
        {"overlap down", {a + 1, a, 8}, MAHE_ERR_OVERLAP},
        {"dst in the list", {p[2], b, 8}, MAHE_ERR_OVERLAP},
        {"dst in the end of the list", {(float *)p[2] + 11, b, 8}, MAHE_ERR_OVERLAP},
        {"a huge segment", {a, b, UINT64_MAX}, MAHE_ERR_SIZE},
        {"a large segment", {a, b, PTRDIFF_MAX / 4 + 1}, MAHE_ERR_SIZE},
        {"a segment that wraps", {a, b, UINT64_MAX / 4 + 2}, MAHE_ERR_SIZE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        list[0] = good;
        list[1] = cases[i].second;
        refuse_segments(cases[i].what, list, 2, cases[i].status);
    }
    refuse_segments("no list", NULL, 1, MAHE_ERR_NULL);
    refuse_segments("a huge list", list, SIZE_MAX, MAHE_ERR_SIZE);
    refuse_segments("a list that wraps", list, SIZE_MAX / sizeof *list + 2, MAHE_ERR_SIZE);
    refuse_segments("nothing", NULL, 0, MAHE_OK);
    list[0] = (mahe_segment){NULL, NULL, 0};
    list[1] = (mahe_segment){a, NULL, 0};
    refuse_segments("empty segments", list, 2, MAHE_OK);
}

void check_arguments(const struct mahe_table *none)
{
    (void)none;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        label("arguments of %s", functions[i].name);
        absent(&functions[i]);
        too_large(&functions[i]);
        overlaps(&functions[i]);
        blocks(&functions[i]);
        for (size_t t = 0; mahe_tables[t] != NULL && functions[i].direct != NULL; t++)
            if (mahe_cpu_can_run(mahe_tables[t]))
                handed_on(&functions[i], mahe_tables[t]);
    }
    results_of_nothing();
    topk_counts();
    segment_arguments();
}
