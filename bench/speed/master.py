"""The shipped master with `mnist10k`, whose evaluator has it too: `python -m bench.speed.master`."""

import sys
from typing import Any

from bench.speed import mnist
from services.common.learning import catalog
from services.master import __main__ as master
from services.master.shell import evaluation, operator

EVALUATOR = "bench.speed.evaluator"


def longer_catalog() -> list[dict[str, Any]]:
    """In place of `catalog`: with what a new run is checked against of our data set, too."""
    return [*catalog(), {"name": mnist.NAME, "dimensions": mnist.INPUTS, "classes": mnist.CLASSES}]


if __name__ == "__main__":
    mnist.register()
    evaluation.MODULE = EVALUATOR
    operator.catalog = longer_catalog
    sys.exit(master.main())
