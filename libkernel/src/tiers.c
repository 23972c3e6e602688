/* tiers.c: which implementation runs. One table for each tier, one pointer to the one in use, chosen once. */
#include <stdatomic.h>
#include <string.h>

#include "kernels.h"

#define SCALAR(member, result, parameters) .member = mahe_##member##_scalar,
static const struct mahe_table scalar_table = {.name = "scalar", MAHE_KERNELS(SCALAR)};

#ifdef MAHE_X86_64_ASM
#define AVX2(member, result, parameters) .member = mahe_##member##_avx2,
static const struct mahe_table avx2_table = {.name = "avx2", MAHE_KERNELS(AVX2)};
#endif

#ifdef MAHE_AARCH64_ASM
#define NEON(member, result, parameters) .member = mahe_##member##_neon,
static const struct mahe_table neon_table = {.name = "neon", MAHE_KERNELS(NEON)};
#endif

const struct mahe_table *const mahe_tables[] = {
    &scalar_table,
#ifdef MAHE_X86_64_ASM
    &avx2_table,
#endif
#ifdef MAHE_AARCH64_ASM
    &neon_table,
#endif
    NULL,
};

/* Names the header knows; a build for another CPU lacks some of them. */
static const char *const known_tiers[] = {"scalar", "avx2", "neon"};

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

const struct mahe_table *mahe_table_in_use(void)
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

uint64_t mahe_sizeof_segment(void)
{
    return sizeof(mahe_segment);
}

uint64_t mahe_sizeof_adamw(void)
{
    return sizeof(mahe_adamw);
}

const char *mahe_kernel_impl(void)
{
    return mahe_table_in_use()->name;
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
