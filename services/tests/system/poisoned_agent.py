"""The shipped agent, whose trainer sends poison: `python -m services.tests.system.poisoned_agent`.

Which poison is in its environment (poisoned_trainer.py). All else is done as always.
"""

import sys

from services.worker import __main__ as agent
from services.worker.shell import trainer_child

if __name__ == "__main__":
    trainer_child.MODULE = "services.tests.system.poisoned_trainer"
    sys.exit(agent.main())
