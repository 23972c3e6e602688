/* check_segments.c: mahe_axpy_segments_f32 with one tier in use. The model does the pieces one element at a time in a
 * copy of the whole memory, so pieces that touch each other are seen in their order. */
#include <string.h>

#include "check_model.h"

#define ROOM 4096 /* floats in the memory that the segments lie in */
#define MOST 64   /* segments in one call */

static struct arena room_arena;
static struct arena list_arena;
static float *room;
static float expected[ROOM];

static void refresh(float (*value)(void))
{
    room = arena_place(&room_arena, ROOM * sizeof *room, AT_END, 0);
    for (size_t i = 0; i < ROOM; i++)
        room[i] = expected[i] = value();
}

static void compare(const char *tier)
{
    for (size_t i = 0; i < ROOM; i++)
        if (!same_float(room[i], expected[i]))
            fail("[%zu] of the memory is %a, should be %a (%s)", i, (double)room[i], (double)expected[i], tier);
    arena_verify(&room_arena, room, ROOM * sizeof *room);
}

static void model(const mahe_segment *segments, float weight, size_t count)
{
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < segments[s].n; i++) {
            float *dst = &expected[segments[s].dst - room + (ptrdiff_t)i];
            *dst = plus(*dst, times(weight, expected[segments[s].src - room + (ptrdiff_t)i]));
        }
}

/* The list lies at the end of readable memory and must come back as it was. */
static int32_t call(const mahe_segment *segments, float weight, size_t count)
{
    const size_t bytes = count * sizeof *segments;
    mahe_segment *list = arena_place(&list_arena, bytes, AT_END, 0);
    memcpy(list, segments, bytes);
    const int32_t status = mahe_axpy_segments_f32(list, weight, count);
    if (memcmp(list, segments, bytes) != 0)
        fail("the list was changed");
    arena_verify(&list_arena, list, bytes);
    return status;
}

static void run(const mahe_segment *segments, float weight, size_t count, const char *tier)
{
    model(segments, weight, count);
    const int32_t status = call(segments, weight, count);
    if (status != MAHE_OK)
        fail("returned %d", (int)status);
    compare(tier);
}

static void refuse(const char *what, const mahe_segment *segments, size_t count, int32_t status, const char *tier)
{
    const int32_t got = call(segments, 1.0f, count);
    if (got != status)
        fail("%s: returned %d, should be %d", what, (int)got, (int)status);
    compare(tier);
}

/* Any segment in the room: 1 in 4 an exact alias, else no overlap; any offset and length, some of 0. */
static mahe_segment any_segment(void)
{
    const size_t n = random_bits() % 5 == 0 ? 0 : random_bits() % N_SMALL;
    const size_t dst = random_bits() % (ROOM / 2 - N_SMALL);
    const size_t src = random_bits() % 4 == 0 ? dst : ROOM / 2 + random_bits() % (ROOM / 2 - N_SMALL);
    if (n == 0 && random_bits() % 2 == 0)
        return (mahe_segment){NULL, NULL, 0};
    if (random_bits() % 2 == 0)
        return (mahe_segment){room + src, room + dst, n};
    return (mahe_segment){room + dst, room + src, n};
}

static void any(const char *tier)
{
    static const uint32_t weights[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 1, 0x7f800000, 0x7fc00000, 0x3e99999a};
    for (size_t turn = 0; turn < 400; turn++) {
        mahe_segment segments[MOST];
        const size_t count = turn % MOST + 1;
        label("segments turn %zu", turn);
        refresh(turn % 3 == 0 ? random_mixed : random_uniform);
        for (size_t s = 0; s < count; s++)
            segments[s] = any_segment();
        run(segments, turn % 2 ? random_uniform() : bits_float(weights[turn / 2 % 8]), count, tier);
    }
}

/* A piece that reads what the one before wrote; the same piece twice; a model cut into pieces of every length. */
static void in_order(const char *tier)
{
    mahe_segment segments[MOST];
    for (size_t n = 1; n <= N_SMALL; n++) {
        label("segments chain of n=%zu", n);
        refresh(random_uniform);
        const size_t count = ROOM / n - 1 < 8 ? ROOM / n - 1 : 8;
        for (size_t s = 0; s < count; s++)
            segments[s] = (mahe_segment){room + (s + 1) * n, room + s * n, n};
        run(segments, 0.5f, count, tier);
        for (size_t s = 0; s < count; s++)
            segments[s] = (mahe_segment){room + 1 + s, room + ROOM - n, n};
        run(segments, -0.25f, count, tier);
    }
    label("segments side by side");
    refresh(random_finite);
    size_t at = 0;
    for (size_t n = 0; n < 63; n++) {
        segments[n] = (mahe_segment){room + at, room + ROOM / 2 + at, n};
        at += n;
    }
    run(segments, 0.3f, 63, tier);
}

/* Whatever is wrong with the last one, the first one is not written; an empty one between them hides nothing. */
static void refused(const char *tier)
{
    label("segments refused");
    refresh(random_uniform);
    mahe_segment list[] = {{room, room + 100, 50}, {NULL, NULL, 0}, {room + 200, NULL, 50}};
    mahe_segment *last = &list[2];
    refuse("NULL src", list, 3, MAHE_ERR_NULL, tier);
    *last = (mahe_segment){NULL, room, 50};
    refuse("NULL dst", list, 3, MAHE_ERR_NULL, tier);
    for (size_t distance = 1; distance < 50; distance++) {
        *last = (mahe_segment){room + 200, room + 200 + distance, 50};
        refuse("overlap up", list, 3, MAHE_ERR_OVERLAP, tier);
        *last = (mahe_segment){room + 200 + distance, room + 200, 50};
        refuse("overlap down", list, 3, MAHE_ERR_OVERLAP, tier);
    }
    *last = (mahe_segment){room + 200, room + 300, UINT64_MAX};
    refuse("size", list, 3, MAHE_ERR_SIZE, tier);
    last->n = (uint64_t)1 << 62;
    refuse("size whose bytes wrap to 0", list, 3, MAHE_ERR_SIZE, tier);
    if (mahe_axpy_segments_f32(NULL, 1.0f, 0) != MAHE_OK)
        fail("nothing to do is refused");
    if (mahe_axpy_segments_f32(NULL, 1.0f, 1) != MAHE_ERR_NULL)
        fail("a NULL list is taken");
    if (mahe_axpy_segments_f32(list, 1.0f, SIZE_MAX / 2) != MAHE_ERR_SIZE)
        fail("a list of any size is taken");
    union {
        mahe_segment list[2];
        float room[2 * sizeof(mahe_segment) / sizeof(float)];
    } inside = {{{room, room + 100, 50}, {NULL, room, 1}}};
    inside.list[1].dst = inside.room;
    if (mahe_axpy_segments_f32(inside.list, 1.0f, 2) != MAHE_ERR_OVERLAP)
        fail("a list that would be written is taken");
    compare(tier);
}

void check_segments(const struct mahe_table *tier)
{
    if (room_arena.start == NULL) {
        room_arena = arena_new(ROOM * sizeof(float));
        list_arena = arena_new(MOST * sizeof(mahe_segment));
    }
    if (mahe_kernel_set_impl(tier->name) != MAHE_OK)
        fail("cannot use %s", tier->name);
    any(tier->name);
    in_order(tier->name);
    refused(tier->name);
    mahe_kernel_set_impl("auto");
}
