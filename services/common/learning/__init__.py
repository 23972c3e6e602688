"""Learning: models, optimizers, data, and the numbers of a round. Pure: no sockets, no clock, no logs, no threads."""

from services.common.learning import encodings
from services.common.learning.bits import SEED_MAX
from services.common.learning.cards import catalog
from services.common.learning.checking import BAD_SPEC, faults_of, summary
from services.common.learning.datasets import Descriptor, describe, load
from services.common.learning.examples import Dataset
from services.common.learning.fold import Accumulator
from services.common.learning.inner import InnerOptimizer, build_inner
from services.common.learning.local_steps import Cancelled, LocalResult, LocalTask, run_local_steps
from services.common.learning.models import Model, build_model
from services.common.learning.outer import OuterOptimizer, apply_update, build_outer
from services.common.learning.parameters import Floats, Ints, Layout, bytes_digest, digest
from services.common.learning.robust import coordinate_median, trimmed_mean
from services.common.learning.shards import Range, batches, indices, permutation
from services.common.learning.specification import BAD_SPECIFICATION, Specification
from services.common.learning.speed import Workload, benchmark_workload, expected_samples_per_s, workload

__all__ = [
    "BAD_SPEC",
    "BAD_SPECIFICATION",
    "SEED_MAX",
    "Accumulator",
    "Cancelled",
    "Dataset",
    "Descriptor",
    "Floats",
    "InnerOptimizer",
    "Ints",
    "Layout",
    "LocalResult",
    "LocalTask",
    "Model",
    "OuterOptimizer",
    "Range",
    "Specification",
    "Workload",
    "apply_update",
    "batches",
    "benchmark_workload",
    "build_inner",
    "build_model",
    "build_outer",
    "bytes_digest",
    "catalog",
    "coordinate_median",
    "describe",
    "digest",
    "encodings",
    "expected_samples_per_s",
    "faults_of",
    "indices",
    "load",
    "permutation",
    "run_local_steps",
    "summary",
    "trimmed_mean",
    "workload",
]
