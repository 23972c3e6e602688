"""Where the kernel library lies, for those who build it and those who open it. Nothing else."""

import sys
from pathlib import Path

SOURCE_FOLDER = Path(__file__).resolve().parents[3] / "libkernel"
LIB_FOLDER = Path(__file__).resolve().parent / "lib"
HEADER_NAME = "mahe_kernel.h"
LIBRARY_NAME = "libmahe_kernel" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
STAMP_NAME = "built-from.txt"  # first line: what it was built from, as a SHA-256; second: the compiler
