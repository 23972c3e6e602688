/* check_dispatch.c: what the public functions do before a tier runs: statuses, empty arrays, choice of the tier. */
#include <string.h>

#include "check.h"

static void expect(const char *what, int32_t got, int32_t status)
{
    if (got != status)
        fail("%s returned %d, should be %d", what, (int)got, (int)status);
}

static void tiers(void)
{
    label("dispatch tiers");
    const char *best = "scalar";
    for (size_t i = 0; mahe_tables[i] != NULL; i++) {
        const int can = mahe_cpu_can_run(mahe_tables[i]);
        expect(mahe_tables[i]->name, mahe_kernel_set_impl(mahe_tables[i]->name), can ? MAHE_OK : MAHE_ERR_UNSUPPORTED);
        if (can && strcmp(mahe_kernel_impl(), mahe_tables[i]->name) != 0)
            fail("set to %s, reports %s", mahe_tables[i]->name, mahe_kernel_impl());
        if (can)
            best = mahe_tables[i]->name;
    }
    expect("scalar", mahe_kernel_set_impl("scalar"), MAHE_OK);
    expect("an unknown tier", mahe_kernel_set_impl("mmx"), MAHE_ERR_UNKNOWN);
    expect("an empty name", mahe_kernel_set_impl(""), MAHE_ERR_UNKNOWN);
    expect("no name", mahe_kernel_set_impl(NULL), MAHE_ERR_NULL);
    if (strcmp(mahe_kernel_impl(), "scalar") != 0)
        fail("a refused tier was taken: %s", mahe_kernel_impl());
    expect("auto", mahe_kernel_set_impl("auto"), MAHE_OK);
    if (strcmp(mahe_kernel_impl(), best) != 0)
        fail("auto took %s, the best is %s", mahe_kernel_impl(), best);
#ifndef MAHE_X86_64_ASM
    expect("avx2", mahe_kernel_set_impl("avx2"), MAHE_ERR_UNSUPPORTED);
#endif
}

static void empty_and_null(void)
{
    label("dispatch empty and NULL");
    float f = 1.0f;
    int64_t k = 1;
    mahe_stats out = {7, 7.0f, 7.0};
    expect("reduce_add n=0", mahe_reduce_add_f32(NULL, NULL, 1.0f, 0), MAHE_OK);
    expect("sgd_update n=0", mahe_sgd_update_f32(NULL, NULL, 1.0f, 0), MAHE_OK);
    expect("fold n=0", mahe_fold_f32_i64(NULL, NULL, 1.0, 0), MAHE_OK);
    expect("stats n=0", mahe_stats_f32(NULL, 0, &out), MAHE_OK);
    if (out.nonfinite != 0 || float_bits(out.absmax) != 0 || out.sum_squares != 0.0)
        fail("stats of nothing is not zero");
    expect("reduce_add NULL", mahe_reduce_add_f32(&f, NULL, 1.0f, 1), MAHE_ERR_NULL);
    expect("reduce_add NULL", mahe_reduce_add_f32(NULL, &f, 1.0f, 1), MAHE_ERR_NULL);
    expect("sgd_update NULL", mahe_sgd_update_f32(NULL, &f, 1.0f, 1), MAHE_ERR_NULL);
    expect("fold NULL", mahe_fold_f32_i64(NULL, &f, 1.0, 1), MAHE_ERR_NULL);
    expect("fold NULL", mahe_fold_f32_i64(&k, NULL, 1.0, 1), MAHE_ERR_NULL);
    expect("stats NULL", mahe_stats_f32(NULL, 1, &out), MAHE_ERR_NULL);
    expect("stats NULL", mahe_stats_f32(&f, 1, NULL), MAHE_ERR_NULL);
    expect("reduce_add size", mahe_reduce_add_f32(&f, &f, 1.0f, SIZE_MAX / 4), MAHE_ERR_SIZE);
    expect("sgd_update size", mahe_sgd_update_f32(&f, &f, 1.0f, SIZE_MAX), MAHE_ERR_SIZE);
    expect("fold size", mahe_fold_f32_i64(&k, &f, 1.0, SIZE_MAX / 8), MAHE_ERR_SIZE);
    expect("stats size", mahe_stats_f32(&f, SIZE_MAX, &out), MAHE_ERR_SIZE);
}

static void overlap(void)
{
    label("dispatch overlap");
    union {
        float f[32];
        int64_t k[16];
        mahe_stats s;
    } room = {{0}};
    float *f = room.f;
    for (size_t distance = 1; distance < 8; distance++) {
        expect("reduce_add up", mahe_reduce_add_f32(f, f + distance, 1.0f, 8), MAHE_ERR_OVERLAP);
        expect("reduce_add down", mahe_reduce_add_f32(f + distance, f, 1.0f, 8), MAHE_ERR_OVERLAP);
        expect("sgd_update up", mahe_sgd_update_f32(f, f + distance, 1.0f, 8), MAHE_ERR_OVERLAP);
    }
    expect("reduce_add beside", mahe_reduce_add_f32(f, f + 8, 1.0f, 8), MAHE_OK);
    expect("reduce_add beside", mahe_reduce_add_f32(f + 8, f, 1.0f, 8), MAHE_OK);
    expect("sgd_update alias", mahe_sgd_update_f32(f, f, 1.0f, 8), MAHE_OK);
    expect("fold alias", mahe_fold_f32_i64(room.k, f, 1.0, 8), MAHE_ERR_OVERLAP);
    expect("fold in the last acc", mahe_fold_f32_i64(room.k, f + 15, 1.0, 8), MAHE_ERR_OVERLAP);
    expect("fold below", mahe_fold_f32_i64(room.k + 3, f, 1.0, 8), MAHE_ERR_OVERLAP);
    expect("fold beside", mahe_fold_f32_i64(room.k, f + 16, 1.0, 8), MAHE_OK);
    expect("fold beside", mahe_fold_f32_i64(room.k + 4, f, 1.0, 8), MAHE_OK);
    expect("stats overlap", mahe_stats_f32(f, 2, &room.s), MAHE_ERR_OVERLAP);
    expect("stats beside", mahe_stats_f32(f + 6, 2, &room.s), MAHE_OK);
}

void check_dispatch(void)
{
    label("dispatch constants");
    expect("mahe_abi_version", mahe_abi_version(), MAHE_ABI_VERSION);
    expect("mahe_sizeof_stats", (int32_t)mahe_sizeof_stats(), (int32_t)sizeof(mahe_stats));
    tiers();
    empty_and_null();
    overlap();
}
