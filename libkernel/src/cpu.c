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

enum { AVX = 1, AVX2 = 2, YMM = 4 };

/* What there is, each by itself: AVX and AVX2 as the CPU says, YMM if the operating system keeps these registers. */
static uint32_t found(void)
{
    const uint32_t osxsave = 1u << 27;
    const uint64_t xmm_and_ymm = 6;
    const uint32_t leaves = __get_cpuid_max(0, NULL);
    uint32_t bits = 0;
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    if (leaves < 1)
        return 0;
    __cpuid(1, a, b, c, d);
    if (c >> 28 & 1)
        bits |= AVX;
    if ((c & osxsave) != 0 && (xcr0() & xmm_and_ymm) == xmm_and_ymm)
        bits |= YMM;
    if (leaves < 7)
        return bits;
    __cpuid_count(7, 0, a, b, c, d);
    if (b >> 5 & 1)
        bits |= AVX2;
    return bits;
}

static int has_avx2(void)
{
    return found() == (AVX | AVX2 | YMM);
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
    static const char *const named[] = {
        "sse2",     "sse2 avx",     "sse2 avx2",     "sse2 avx avx2",
        "sse2 ymm", "sse2 avx ymm", "sse2 avx2 ymm", "sse2 avx avx2 ymm",
    };
    return named[found()];
#elif defined(MAHE_AARCH64_ASM)
    return "asimd";
#else
    return "";
#endif
}
