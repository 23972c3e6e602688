/* replay.c: master and replica of a run on this CPU, with the kernels alone: each update is encoded with a residual,
 * decoded and taken from the parameters. `replay TIER ENCODING N`; stdin has N float32 parameters, then N of each
 * update; stdout gets the parameters that come out. For test_replicas.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../include/mahe_kernel.h"

enum { N_MAX = 8192, BLOCK = 1024 };

static float params[N_MAX], values[N_MAX], residual[N_MAX], decoded[N_MAX], scales[N_MAX / BLOCK];
static int8_t bytes[N_MAX];
static uint8_t halves[N_MAX / 2];
static uint16_t uppers[N_MAX];

/* values + residual -> decoded, and what is left over into residual: services/common/learning/encodings.py. */
static int32_t send(const char *encoding, size_t n)
{
    int32_t status;
    if (strcmp(encoding, "int8") == 0) {
        status = mahe_quantise_q8_f32(bytes, scales, residual, values, residual, BLOCK, n);
        return status != MAHE_OK ? status : mahe_dequantise_q8_f32(decoded, bytes, scales, BLOCK, n);
    }
    if (strcmp(encoding, "int4") == 0) {
        status = mahe_quantise_q4_f32(halves, scales, residual, values, residual, BLOCK, n);
        return status != MAHE_OK ? status : mahe_dequantise_q4_f32(decoded, halves, scales, BLOCK, n);
    }
    status = mahe_reduce_add_f32(residual, values, 1.0f, n);
    memcpy(decoded, residual, n * sizeof *decoded);
    if (status == MAHE_OK && strcmp(encoding, "bf16") == 0) {
        status = mahe_bf16_from_f32(uppers, residual, n);
        if (status == MAHE_OK)
            status = mahe_f32_from_bf16(decoded, uppers, n);
    }
    return status != MAHE_OK ? status : mahe_reduce_add_f32(residual, decoded, -1.0f, n);
}

int main(int argc, char **argv)
{
    const size_t n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (n < 1 || n > N_MAX || mahe_kernel_set_impl(argv[1]) != MAHE_OK || fread(params, sizeof *params, n, stdin) != n)
        return 2;
    while (fread(values, sizeof *values, n, stdin) == n)
        if (send(argv[2], n) != MAHE_OK || mahe_sgd_update_f32(params, decoded, 1.0f, n) != MAHE_OK)
            return 3;
    return fwrite(params, sizeof *params, n, stdout) == n ? 0 : 4;
}
