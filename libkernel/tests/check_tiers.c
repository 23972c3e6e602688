/* check_tiers.c: the choice of the tier, and what the library says about itself. */
#include <string.h>

#include "check.h"

static void expect(const char *what, int32_t got, int32_t status)
{
    if (got != status)
        fail("%s returned %d, should be %d", what, (int)got, (int)status);
}

static void sizes(void)
{
    label("the library about itself");
    expect("mahe_abi_version", mahe_abi_version(), MAHE_ABI_VERSION);
    expect("mahe_sizeof_stats", (int32_t)mahe_sizeof_stats(), (int32_t)sizeof(mahe_stats));
    expect("mahe_sizeof_segment", (int32_t)mahe_sizeof_segment(), (int32_t)sizeof(mahe_segment));
    expect("mahe_sizeof_adamw", (int32_t)mahe_sizeof_adamw(), (int32_t)sizeof(mahe_adamw));
    if (mahe_cpu_features() == NULL)
        fail("no list of features");
#ifdef MAHE_X86_64_ASM
    for (size_t i = 0; mahe_tables[i] != NULL; i++) {
        const int all = strcmp(mahe_cpu_features(), "sse2 avx avx2 ymm") == 0;
        if (strcmp(mahe_tables[i]->name, "avx2") == 0 && mahe_cpu_can_run(mahe_tables[i]) != all)
            fail("the features are \"%s\", but avx2 %s", mahe_cpu_features(), all ? "cannot run" : "can run");
    }
#endif
}

/* Every tier that this CPU has can be taken, the others are refused, and "auto" takes the last that can. */
static void every_tier(void)
{
    label("the choice of the tier");
    const char *best = "scalar";
    for (size_t i = 0; mahe_tables[i] != NULL; i++) {
        const int can = mahe_cpu_can_run(mahe_tables[i]);
        expect(mahe_tables[i]->name, mahe_kernel_set_impl(mahe_tables[i]->name), can ? MAHE_OK : MAHE_ERR_UNSUPPORTED);
        if (can && mahe_table_in_use() != mahe_tables[i])
            fail("set to %s, uses %s", mahe_tables[i]->name, mahe_table_in_use()->name);
        if (can && strcmp(mahe_kernel_impl(), mahe_tables[i]->name) != 0)
            fail("set to %s, reports %s", mahe_tables[i]->name, mahe_kernel_impl());
        if (can)
            best = mahe_tables[i]->name;
    }
    expect("auto", mahe_kernel_set_impl("auto"), MAHE_OK);
    if (strcmp(mahe_kernel_impl(), best) != 0)
        fail("auto took %s, the best is %s", mahe_kernel_impl(), best);
}

static void refused(void)
{
    static const char *const unknown[] = {"", "mmx", "AVX2", "avx", "avx2 ", "scalar\n", "autoo"};
    label("refused tiers");
    expect("scalar", mahe_kernel_set_impl("scalar"), MAHE_OK);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        expect(unknown[i], mahe_kernel_set_impl(unknown[i]), MAHE_ERR_UNKNOWN);
    expect("no name", mahe_kernel_set_impl(NULL), MAHE_ERR_NULL);
#ifndef MAHE_X86_64_ASM
    expect("avx2", mahe_kernel_set_impl("avx2"), MAHE_ERR_UNSUPPORTED);
#endif
#ifndef MAHE_AARCH64_ASM
    expect("neon", mahe_kernel_set_impl("neon"), MAHE_ERR_UNSUPPORTED);
#endif
    if (strcmp(mahe_kernel_impl(), "scalar") != 0)
        fail("a refused tier was taken: %s", mahe_kernel_impl());
    expect("auto", mahe_kernel_set_impl("auto"), MAHE_OK);
}

void check_tiers(const struct mahe_table *none)
{
    (void)none;
    sizes();
    every_tier();
    refused();
}
