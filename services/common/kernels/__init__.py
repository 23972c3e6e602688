"""The numeric kernels of libkernel for Python. Nothing is loaded before the first call."""

from services.common.kernels.ops import Stats, fold, kernel_impl, reduce_add, sgd_update, stats

__all__ = ["Stats", "fold", "kernel_impl", "reduce_add", "sgd_update", "stats"]
