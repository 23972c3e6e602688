"""The files of bench/results, as they lie there: which is the newest that has a part, its commit, the machine."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
REQUIREMENTS = (ROOT / "bench" / "wire" / "requirements.txt", ROOT / "bench" / "wire" / "requirements-hivemind.txt")
BENCHMARKS = ("speed", "wire", "kernels", "trainer", "learning")
PEERS = {"flwr": "Flower", "hivemind": "Hivemind", "torch": "PyTorch"}

Found = dict[str, Any]


@dataclass(frozen=True)
class File:
    """One JSON file; `name` is without its ending: `wire.memory` has a part of the benchmark `wire`."""

    name: str
    found: Found

    @property
    def benchmark(self) -> str:
        """Which one wrote it."""
        return self.name.partition(".")[0]

    @property
    def commit(self) -> str:
        """Of the code that was measured, short."""
        return str(self.found.get("commit") or self.found.get("machine", {}).get("commit", ""))

    @property
    def at(self) -> str:
        """When it was written, so that later is greater; empty where it does not say."""
        return str(self.found.get("at", ""))

    @property
    def is_quick(self) -> bool:
        """Whether it only shows that measuring works: no figures to keep."""
        return bool(self.found.get("setting", {}).get("quick"))


def load(folder: Path = RESULTS) -> list[File]:
    """Every file of our benchmarks there, in order. Raises ValueError that names a file which is not JSON."""
    files = []
    for path in sorted(folder.glob("*.json")):
        if path.stem.partition(".")[0] in BENCHMARKS:
            try:
                files.append(File(path.stem, json.loads(path.read_text("utf-8"))))
            except json.JSONDecodeError as error:
                raise ValueError(f"{path} is not JSON ({error}): measure again") from None
    return files


def newest(files: Iterable[File], benchmark: str, parts: Sequence[str]) -> File | None:
    """The newest file of this benchmark in which none of the parts is empty; one file, so ratios are of one run."""
    having = [
        one
        for one in files
        if one.benchmark == benchmark and not one.is_quick and all(one.found.get(part) for part in parts)
    ]
    return max(having, key=lambda one: (one.at, one.name), default=None)


def machines(files: Iterable[File]) -> list[str]:
    """Where all this was measured: each different machine once, with its CPU where that is known."""
    found: dict[tuple[int, str], str] = {}
    for one in files:
        machine = one.found.get("machine", {})
        key = (machine.get("cores", 0), machine.get("system", ""))
        found[key] = found.get(key) or machine.get("cpu", "")
    return [", ".join(filter(None, (f"{cores} x {cpu or 'CPU'}", system))) for (cores, system), cpu in found.items()]


def peers(texts: Iterable[str]) -> list[str]:
    """Whom we are compared with and in which version, from the text of the files that pin them."""
    pins = [pin for text in texts for pin in re.findall(r"^(\w+)==(\S+)", text, re.MULTILINE) if pin[0] in PEERS]
    return sorted({f"{PEERS[package]} {version}" for package, version in pins})
