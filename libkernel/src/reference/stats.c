/* One-pass statistics in plain C: the specification of mahe_stats_f32. Other tiers share its tail and last sum. */
#include <string.h>

#include "../kernels.h"

void mahe_stats_add(struct mahe_stats_state *state, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7fffffffu;
        if (bits >= 0x7f800000u) {
            state->nonfinite++;
            continue;
        }
        if (bits > state->absmax[0])
            state->absmax[0] = bits;
        /* 24 bits squared are 48: the square is exact in float64 and cannot overflow. */
        const double value = (double)x[i];
        state->lane[i % 16] += value * value;
    }
}

void mahe_stats_finish(struct mahe_stats_state *state, mahe_stats *out)
{
    for (size_t step = 8; step > 0; step /= 2)
        for (size_t j = 0; j < step; j++)
            state->lane[j] += state->lane[j + step];
    uint32_t absmax = 0;
    for (size_t j = 0; j < 8; j++)
        if (state->absmax[j] > absmax)
            absmax = state->absmax[j];
    out->nonfinite = state->nonfinite;
    memcpy(&out->absmax, &absmax, sizeof absmax);
    out->sum_squares = state->lane[0];
}

void MAHE_CALL mahe_stats_scalar(const float *x, size_t n, mahe_stats *out)
{
    struct mahe_stats_state state = {0};
    mahe_stats_add(&state, x, n);
    mahe_stats_finish(&state, out);
}
