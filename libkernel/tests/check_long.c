/* check_long.c: that lengths are 64 bits wide everywhere. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

#define ROOM_BYTES 4096

static sigjmp_buf back;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

/* Runs on small arrays of zeros with a length far beyond them: a kernel that sees all of it must run into the guard
 * page. One that drops upper bits returns. */
static void must_fault(const char *name, kernel fn, const struct call *call, const char *tier)
{
    struct sigaction before[2];
    const struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    if (sigsetjmp(back, 1) == 0) {
        call_kernel(fn, call, tier);
        fail("%s took only the lower bits of its length (%s)", name, tier);
    }
    sigaction(SIGSEGV, &before[0], NULL);
    sigaction(SIGBUS, &before[1], NULL);
}

/* Only what may be called with n >= 2^32; blocks are short, and top-k has places of 32 bits. */
static void upper_bits(const struct mahe_table *tier, uint64_t n)
{
    static struct arena arenas[4];
    uint64_t p[4];
    for (int i = 0; i < 4; i++) {
        if (arenas[i].start == NULL)
            arenas[i] = arena_new(ROOM_BYTES);
        void *start = arena_place(&arenas[i], arenas[i].bytes, AT_START, 0);
        memset(start, 0, arenas[i].bytes);
        p[i] = word_of(start);
    }
    const mahe_adamw step = {0};
    mahe_stats out = {0};
    const struct {
        const char *name;
        kernel fn;
        struct call call;
    } cases[] = {
        {"reduce_add", (kernel)tier->reduce_add, {{p[0], p[1], n}, {real_f(0.5f)}}},
        {"sgd_update", (kernel)tier->sgd_update, {{p[0], p[1], n}, {real_f(0.5f)}}},
        {"fold", (kernel)tier->fold, {{p[0], p[1], n}, {real_d(0.5)}}},
        {"absmax", (kernel)tier->absmax, {{p[0], n}, {0}}},
        {"stats", (kernel)tier->stats, {{p[0], n, word_of(&out)}, {0}}},
        {"momentum", (kernel)tier->momentum, {{p[0], p[1], p[2], n}, {real_f(0.5f), real_f(0.5f)}}},
        {"nesterov", (kernel)tier->nesterov, {{p[0], p[1], p[2], n}, {real_f(0.5f), real_f(0.5f)}}},
        {"adamw", (kernel)tier->adamw, {{p[0], p[1], p[2], p[3], word_of(&step), n}, {0}}},
        {"bf16_from_f32", (kernel)tier->bf16_from_f32, {{p[0], p[1], n}, {0}}},
        {"f32_from_bf16", (kernel)tier->f32_from_bf16, {{p[0], p[1], n}, {0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_fault(cases[i].name, cases[i].fn, &cases[i].call, tier->name);
}

void check_long(const struct mahe_table *tier)
{
    for (int bit = 32; bit < 60; bit++) {
        label("n = 2^%d", bit);
        upper_bits(tier, (uint64_t)1 << bit);
    }
}

/* More than 2^31 bytes that are only read, all of them the kernel's page of zeros: nothing is spent but address space
 * and time. */
void check_huge(const struct mahe_table *tier)
{
    label("more than 2^31 bytes");
    const size_t n = ((size_t)1 << 29) + 1000003;
    const size_t bytes = n * sizeof(float);
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED)
        fail("no address space for %zu bytes: raise the limit (ulimit -v), or name the other checks", bytes);
    x[0] = 3.0f;
    x[n - 2] = INFINITY;
    x[n - 1] = -4.0f;
    mahe_stats out;
    tier->stats(x, n, &out);
    if (out.nonfinite != 1 || float_bits(out.absmax) != float_bits(4.0f) || real_d(out.sum_squares) != real_d(25.0))
        fail("stats: %llu nonfinite, largest %a, sum of squares %a (%s)", (unsigned long long)out.nonfinite,
             (double)out.absmax, out.sum_squares, tier->name);
    x[n - 2] = 2.0f;
    if (tier->absmax(x, n) != float_bits(4.0f))
        fail("absmax overlooks the last entry (%s)", tier->name);
    x[n - 2] = INFINITY;
    uint32_t indices[2] = {7, 7};
    float values[2] = {7.0f, 7.0f};
    tier->topk_take(indices, values, x, n, float_bits(4.0f), 1);
    if (indices[0] != n - 2 || indices[1] != n - 1 || float_bits(values[1]) != float_bits(-4.0f))
        fail("topk_take: places %u and %u (%s)", (unsigned)indices[0], (unsigned)indices[1], tier->name);
    munmap(x, bytes);
}
