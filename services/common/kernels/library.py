"""Opens libkernel: cffi in ABI mode, from the marked block of its own header. Not for callers: use the package itself.

A library that is missing, of another ABI or of another layout is a `KernelError` that names the next step. There is no
second implementation to fall back to, so nobody trains slowly without knowing.
"""

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cffi import FFI

from services.common.errors import KernelError, quoted
from services.common.kernels.paths import HEADER_NAME, LIB_FOLDER, LIBRARY_NAME, SOURCE_FOLDER, STAMP_NAME

ABI_VERSION = 2  # what this Python was written for; C and Python change together
TIERS = ("scalar", "avx2", "neon", "auto")
TIER_VARIABLE = "MAHE_KERNEL"

OK = 0
OVERLAP = 3
_UNSUPPORTED = 5
_BLOCK = re.compile(r"/\* >>> cffi \*/\n(.*?)/\* <<< cffi \*/", re.DOTALL)
_STRUCTS = ("mahe_stats", "mahe_segment", "mahe_adamw")
_C_TYPES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "float[]",
    np.dtype(np.int64): "int64_t[]",
    np.dtype(np.uint32): "uint32_t[]",
    np.dtype(np.uint16): "uint16_t[]",
    np.dtype(np.uint8): "uint8_t[]",
    np.dtype(np.int8): "int8_t[]",
}
_ONCE = FFI()  # declares nothing: its init_once holds back other threads while the library is opened


@dataclass(frozen=True)
class Library:
    """The open library: `lib` has the functions of the header, `ffi` makes their arguments."""

    ffi: Any  # cffi.FFI; its stubs know neither NumPy arrays nor the fields of a struct
    lib: Any
    path: Path
    types: dict[np.dtype[Any], Any]  # the C type of an array of each dtype
    from_buffer: Callable[..., Any]
    """(C type, array) -> the array's memory as C sees it. That keeps the array alive: it must outlive the call."""
    new: Callable[..., Any]
    """(C type of a pointer) -> memory of its own for what it points to, all zeros."""

    def function(self, op: str) -> Callable[..., Any]:
        """The function of that name; an older library of the same ABI may lack one that was added since."""
        found: Callable[..., Any] | None = getattr(self.lib, op, None)
        if found is None:
            raise KernelError(f"{self.path} lacks {op}: run `make kernels`")
        return found

    def tier(self) -> str:
        """The tier in use."""
        return self._text(self.lib.mahe_kernel_impl())

    def features(self) -> str:
        """What CPU and operating system offer of what the tiers ask for: names with a space between."""
        return self._text(self.lib.mahe_cpu_features())

    def compiler(self) -> str:
        """Who built it, as `build` noted it beside the library; "" where it did not."""
        note = self.path.with_name(STAMP_NAME)
        return "".join(note.read_text(encoding="utf-8").splitlines()[1:2]) if note.is_file() else ""

    def _text(self, pointer: Any) -> str:
        raw: bytes = self.ffi.string(pointer)
        return raw.decode("ascii")


@functools.cache
def library() -> Library:
    """The library of this installation, opened once, at first use; the tier is taken from `MAHE_KERNEL` then."""
    opened: Library = _ONCE.init_once(lambda: open_library(LIB_FOLDER, tier=asked_tier()), "library")
    return opened


def asked_tier() -> str:
    """What `MAHE_KERNEL` says; "auto" where it says nothing."""
    return os.environ.get(TIER_VARIABLE, "").strip() or "auto"


def kernel_impl() -> str:
    """The tier in use, "scalar", "avx2" or "neon", for logs and the status page."""
    return library().tier()


def open_library(folder: Path, *, tier: str = "auto") -> Library:
    """Opens the library in `folder` (an absolute path), checks ABI version and struct sizes, and sets the tier.

    The tier holds for the whole process, because the operating system loads a library once.
    """
    path = folder / LIBRARY_NAME
    if not path.is_file():
        raise KernelError(f"the kernel library {path} is missing: run `make kernels`")
    ffi = FFI()
    ffi.cdef(_declarations(folder))
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        raise KernelError(f"the kernel library cannot be loaded: {error}: run `make kernels`") from error
    _check_abi(ffi, lib, path)
    types = {dtype: ffi.typeof(name) for dtype, name in _C_TYPES.items()}
    # What FFI.from_buffer and FFI.new call in the end: with every array these layers would cost as much again.
    inner = getattr(ffi, "_backend", ffi)
    opened = Library(ffi, lib, path, types, inner.from_buffer, getattr(inner, "newp", ffi.new))
    set_tier(opened, tier)
    return opened


def set_tier(opened: Library, tier: str) -> None:
    """Makes the library use `tier` ("scalar", "avx2", "neon" or "auto") from now on, in the whole process."""
    if tier not in TIERS:
        raise KernelError(f"{TIER_VARIABLE} is {quoted(tier)}; allowed: {', '.join(TIERS)}; set it to auto")
    status = opened.lib.mahe_kernel_set_impl(tier.encode("ascii"))
    if status == _UNSUPPORTED:
        raise KernelError(f"{TIER_VARIABLE} is {tier!r}, which this CPU or this build lacks; use auto or scalar")
    if status != OK:
        raise KernelError(f"the kernel library refused the tier {tier!r} (status {status}): run `make kernels`")


def usable_tiers(opened: Library) -> list[str]:
    """The tiers that this CPU and this build can run, the slowest first. Leaves the tier in use as it is."""
    before = opened.tier()
    usable = [tier for tier in TIERS[:-1] if opened.lib.mahe_kernel_set_impl(tier.encode("ascii")) == OK]
    set_tier(opened, before)
    return usable


def _declarations(folder: Path) -> str:
    """The C declarations cffi reads: from the header beside the library, else from the checkout."""
    candidates = (folder / HEADER_NAME, SOURCE_FOLDER / "include" / HEADER_NAME)
    header = next((path for path in candidates if path.is_file()), None)
    if header is None:
        raise KernelError(f"the kernel header {candidates[0]} is missing: run `make kernels`")
    block = _BLOCK.search(header.read_text(encoding="utf-8"))
    if block is None:
        raise KernelError(f"{header} has no block marked for cffi: run `make kernels`")
    return block[1].replace("MAHE_API ", "")


def _check_abi(ffi: FFI, lib: Any, path: Path) -> None:
    try:
        found = lib.mahe_abi_version()
        declared = lib.MAHE_ABI_VERSION
    except AttributeError as error:
        raise KernelError(f"{path} is not a MAHE kernel library ({error}): run `make kernels`") from error
    if not found == declared == ABI_VERSION:
        raise KernelError(
            f"{path} has ABI version {found} (its header {declared}), this MAHE needs {ABI_VERSION}: run `make kernels`"
        )
    missing = [name for name in dir(lib) if not hasattr(lib, name)]
    if missing:
        raise KernelError(f"{path} lacks {', '.join(missing)}: run `make kernels`")
    for struct in _STRUCTS:
        size, in_header = getattr(lib, struct.replace("mahe_", "mahe_sizeof_"))(), ffi.sizeof(struct)
        if size != in_header:
            raise KernelError(f"{path}: {struct} has {size} bytes, its header says {in_header}: run `make kernels`")
