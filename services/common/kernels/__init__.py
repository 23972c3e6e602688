"""The numeric kernels of libkernel as typed functions on NumPy arrays. Nothing is loaded before the first call.

Each checks dtype, shape, layout, writability and overlap, then makes one call into C, which releases the GIL.
`libkernel/include/mahe_kernel.h` says what is computed to the last bit. Arrays are C-contiguous, native-endian, of any
shape; they stay the caller's. With `threads` a large call is cut over several (`threads.py`): the bits stay the same.
Not an array library: what NumPy does well is left to NumPy.
"""

from services.common.kernels.bf16 import bf16_from_f32, f32_from_bf16
from services.common.kernels.blocks import (
    dequantise_add_q4,
    dequantise_add_q8,
    dequantise_q4,
    dequantise_q8,
    fold_q4,
    fold_q8,
    q4_codes_size,
    quantise_q4,
    quantise_q8,
    scales_size,
)
from services.common.kernels.library import kernel_impl
from services.common.kernels.optimizers import AdamWNumbers, adamw, momentum, nesterov
from services.common.kernels.sparse import topk
from services.common.kernels.threads import Threads
from services.common.kernels.vectors import Stats, absmax, axpy_segments, fold, reduce_add, sgd_update, stats

__all__ = [
    "AdamWNumbers",
    "Stats",
    "Threads",
    "absmax",
    "adamw",
    "axpy_segments",
    "bf16_from_f32",
    "dequantise_add_q4",
    "dequantise_add_q8",
    "dequantise_q4",
    "dequantise_q8",
    "f32_from_bf16",
    "fold",
    "fold_q4",
    "fold_q8",
    "kernel_impl",
    "momentum",
    "nesterov",
    "q4_codes_size",
    "quantise_q4",
    "quantise_q8",
    "reduce_add",
    "scales_size",
    "sgd_update",
    "stats",
    "topk",
]
