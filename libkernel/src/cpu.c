/* cpu.c: what this CPU and operating system can run. Feature bits and XCR0 only, never family or model. */
#include <string.h>

#include "kernels.h"

#ifdef MAHE_X86_64_ASM
#include <cpuid.h>

static uint64_t xcr0(void)
{
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static int has_avx2(void)
{
    const uint32_t osxsave_and_avx = 1u << 27 | 1u << 28;
    const uint64_t xmm_and_ymm = 6;
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    if (__get_cpuid_max(0, NULL) < 7)
        return 0;
    __cpuid(1, a, b, c, d);
    if ((c & osxsave_and_avx) != osxsave_and_avx || (xcr0() & xmm_and_ymm) != xmm_and_ymm)
        return 0;
    __cpuid_count(7, 0, a, b, c, d);
    return (b >> 5 & 1) != 0;
}
#endif

int mahe_cpu_can_run(const struct mahe_table *table)
{
#ifdef MAHE_AARCH64_ASM
    if (strcmp(table->name, "neon") == 0)
        return 1; /* Advanced SIMD is part of the ABI of every system we build for */
#endif
#ifdef MAHE_X86_64_ASM
    if (strcmp(table->name, "avx2") == 0)
        return has_avx2();
#endif
    return strcmp(table->name, "scalar") == 0;
}

const char *mahe_cpu_features(void)
{
#if defined(MAHE_X86_64_ASM)
    return has_avx2() ? "sse2 avx avx2 ymm" : "sse2";
#elif defined(MAHE_AARCH64_ASM)
    return "asimd";
#else
    return "";
#endif
}
