"""The shipped master with the kernel library of another folder: `python -m services.tests.system.poisoned_master`.

Which folder is in its environment. All else is done as always.
"""

import os
import sys
from pathlib import Path

from services.common.kernels import library
from services.master import __main__ as master

FOLDER = "TEST_KERNEL_FOLDER"

if __name__ == "__main__":
    library.LIB_FOLDER = Path(os.environ[FOLDER])  # type: ignore[attr-defined]
    sys.exit(master.main())
