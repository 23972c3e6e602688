/* One-pass statistics, NEON: cuts the array into pieces for the assembly, then adds the tail and the last sum. */
#include "../kernels.h"

#ifdef MAHE_AARCH64_ASM

/* A 32-bit counter of finite entries takes two per block; small pieces keep it far from overflow. */
#define PIECE_BLOCKS ((size_t)1 << 20)

_Static_assert(offsetof(struct mahe_stats_state, absmax) == 128, "stats_neon.S reads absmax there");
_Static_assert(offsetof(struct mahe_stats_state, finite) == 160, "stats_neon.S reads finite there");

void MAHE_CALL mahe_stats_neon(const float *x, size_t n, mahe_stats *out)
{
    struct mahe_stats_state state = {0};
    for (size_t left = n / 16; left > 0;) {
        const size_t blocks = left < PIECE_BLOCKS ? left : PIECE_BLOCKS;
        mahe_stats_blocks_neon(x, blocks, &state);
        state.nonfinite += 16 * (uint64_t)blocks;
        for (size_t j = 0; j < 8; j++) {
            state.nonfinite -= state.finite[j];
            state.finite[j] = 0;
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
