"""The shipped agent, whose trainer is the one that does not train: `python -m bench.wire.null_agent`.

It does not give way to other programs, as those it is compared with do not.
"""

import sys

from bench.wire import times
from services.worker import __main__ as agent
from services.worker.shell import trainer_child
from services.worker.shell.agent import Agent
from services.worker.shell.replica_files import ReplicaFiles
from services.worker.shell.slot import Slot

TRAINER = "bench.wire.null_trainer"


def watch(found: times.Times) -> None:
    """Time what the agent does with files and frames."""
    found.around(Agent, "_send_chunks", "_receive", "_record", "_turn")
    found.around(ReplicaFiles, "prepare", "store", "note", "forget_updates")
    found.around(Slot, "keep")


if __name__ == "__main__":
    if (recorded := times.wanted("agent")) is not None:
        watch(recorded)
    trainer_child.MODULE = TRAINER
    agent.give_way = lambda nice: None
    code = agent.main()
    if recorded is not None:
        recorded.flush()
    sys.exit(code)
