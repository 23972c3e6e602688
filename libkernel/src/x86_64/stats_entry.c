/* One-pass statistics, AVX2: cuts the array into pieces. The assembly takes a piece as if all of it were finite; where
 * that was wrong, the plain C does it again from the state before. Then come the tail and the last sum. */
#include "../kernels.h"

#ifdef MAHE_X86_64_ASM

/* 16 KiB: still in the L1 cache when it is done again; hundreds of blocks for each start of the assembly. */
#define PIECE_BLOCKS ((size_t)256)
#define INFINITY_BITS 0x7f800000u

_Static_assert(offsetof(struct mahe_stats_state, absmax) == 128, "stats_avx2.S reads absmax there");

static int all_finite(const struct mahe_stats_state *state)
{
    for (size_t j = 0; j < 8; j++)
        if (state->absmax[j] >= INFINITY_BITS)
            return 0;
    return 1;
}

void MAHE_CALL mahe_stats_avx2(const float *x, size_t n, mahe_stats *out)
{
    struct mahe_stats_state state = {0};
    for (size_t left = n / 16; left > 0;) {
        const size_t blocks = left < PIECE_BLOCKS ? left : PIECE_BLOCKS;
        const struct mahe_stats_state before = state;
        mahe_stats_blocks_avx2(x, blocks, &state);
        if (!all_finite(&state)) {
            state = before;
            mahe_stats_add(&state, x, 16 * blocks);
        }
        x += 16 * blocks;
        left -= blocks;
    }
    mahe_stats_add(&state, x, n % 16);
    mahe_stats_finish(&state, out);
}

#else
typedef int mahe_no_assembly_here; /* C forbids an empty file */
#endif
