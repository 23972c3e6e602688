/* dispatch.c: the public functions. They check the arguments once and call the tier in use. */
#include <stdatomic.h>
#include <string.h>

#include "kernels.h"

static const struct mahe_table scalar_table = {
    "scalar", mahe_reduce_add_f32_scalar, mahe_sgd_update_f32_scalar, mahe_fold_f32_i64_scalar, mahe_stats_f32_scalar,
};

#ifdef MAHE_X86_64_ASM
static const struct mahe_table avx2_table = {
    "avx2", mahe_reduce_add_f32_avx2, mahe_sgd_update_f32_avx2, mahe_fold_f32_i64_avx2, mahe_stats_f32_avx2,
};
#endif

const struct mahe_table *const mahe_tables[] = {
    &scalar_table,
#ifdef MAHE_X86_64_ASM
    &avx2_table,
#endif
    NULL,
};

/* Names the header knows; a build for another CPU lacks some of them. */
static const char *const known_tiers[] = {"scalar", "avx2"};

/* NULL until first use. Every thread that fills it writes the same pointer to constant data, so relaxed is enough. */
static _Atomic(const struct mahe_table *) active;

static const struct mahe_table *best(void)
{
    const struct mahe_table *found = &scalar_table;
    for (size_t i = 0; mahe_tables[i] != NULL; i++)
        if (mahe_cpu_can_run(mahe_tables[i]))
            found = mahe_tables[i];
    return found;
}

static const struct mahe_table *table(void)
{
    const struct mahe_table *found = atomic_load_explicit(&active, memory_order_relaxed);
    if (found == NULL) {
        found = best();
        atomic_store_explicit(&active, found, memory_order_relaxed);
    }
    return found;
}

int32_t mahe_abi_version(void)
{
    return MAHE_ABI_VERSION;
}

uint64_t mahe_sizeof_stats(void)
{
    return sizeof(mahe_stats);
}

const char *mahe_kernel_impl(void)
{
    return table()->name;
}

int32_t mahe_kernel_set_impl(const char *name)
{
    if (name == NULL)
        return MAHE_ERR_NULL;
    if (strcmp(name, "auto") == 0) {
        atomic_store_explicit(&active, best(), memory_order_relaxed);
        return MAHE_OK;
    }
    for (size_t i = 0; mahe_tables[i] != NULL; i++)
        if (strcmp(name, mahe_tables[i]->name) == 0 && mahe_cpu_can_run(mahe_tables[i])) {
            atomic_store_explicit(&active, mahe_tables[i], memory_order_relaxed);
            return MAHE_OK;
        }
    for (size_t i = 0; i < sizeof known_tiers / sizeof *known_tiers; i++)
        if (strcmp(name, known_tiers[i]) == 0)
            return MAHE_ERR_UNSUPPORTED;
    return MAHE_ERR_UNKNOWN;
}

/* Two arrays of n elements of at most 8 bytes each: present, addressable, and apart (or equal, where allowed). */
static int32_t check(const void *a, size_t a_bytes, const void *b, size_t b_bytes, int alias_allowed)
{
    const uintptr_t pa = (uintptr_t)a;
    const uintptr_t pb = (uintptr_t)b;
    if (a == NULL || b == NULL)
        return MAHE_ERR_NULL;
    if (pa == pb && alias_allowed)
        return MAHE_OK;
    /* Modulo arithmetic: the distance from the lower to the upper array is the small one of the two differences. */
    return pb - pa < a_bytes || pa - pb < b_bytes ? MAHE_ERR_OVERLAP : MAHE_OK;
}

static int too_large(size_t n)
{
    return n > PTRDIFF_MAX / sizeof(int64_t);
}

int32_t mahe_reduce_add_f32(float *dst, const float *src, float weight, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const int32_t status = check(dst, n * sizeof *dst, src, n * sizeof *src, 1);
    if (status == MAHE_OK)
        table()->reduce_add(dst, src, weight, n);
    return status;
}

int32_t mahe_sgd_update_f32(float *params, const float *grad, float lr, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const int32_t status = check(params, n * sizeof *params, grad, n * sizeof *grad, 1);
    if (status == MAHE_OK)
        table()->sgd_update(params, grad, lr, n);
    return status;
}

int32_t mahe_fold_f32_i64(int64_t *acc, const float *delta, double scale, size_t n)
{
    if (n == 0)
        return MAHE_OK;
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const int32_t status = check(acc, n * sizeof *acc, delta, n * sizeof *delta, 0);
    if (status == MAHE_OK)
        table()->fold(acc, delta, scale, n);
    return status;
}

int32_t mahe_stats_f32(const float *x, size_t n, mahe_stats *out)
{
    if (out == NULL)
        return MAHE_ERR_NULL;
    if (n == 0) {
        *out = (mahe_stats){0};
        return MAHE_OK;
    }
    if (too_large(n))
        return MAHE_ERR_SIZE;
    const int32_t status = check(x, n * sizeof *x, out, sizeof *out, 0);
    if (status == MAHE_OK)
        table()->stats(x, n, out);
    return status;
}
