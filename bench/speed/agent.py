"""The shipped agent, whose trainer has `mnist10k`: `python -m bench.speed.agent`."""

import sys

from services.worker import __main__ as agent
from services.worker.shell import trainer_child

TRAINER = "bench.speed.trainer"

if __name__ == "__main__":
    trainer_child.MODULE = TRAINER
    sys.exit(agent.main())
