"""What kernels this PC has, and whether they compute what NumPy does: `python -m services.common.kernels.selftest`.

Every kernel, on every tier that this CPU can run, on some hundred lengths, bit for bit; under two seconds. If
`MAHE_KERNEL` names a tier, on that one alone: no other is used then. Run it in a process of its own (`mahe kernels`
does): the tier is a thing of the whole process.
"""

import sys

import numpy as np

from services.common.errors import KernelError
from services.common.kernels.arguments import Float32Array
from services.common.kernels.cases import CASES, Draw, Results, same_bits
from services.common.kernels.library import (
    ABI_VERSION,
    TIER_VARIABLE,
    Library,
    asked_tier,
    library,
    set_tier,
    usable_tiers,
)

QUICK_LENGTHS = (1, 7, 31, 64, 199, 1024, 4097)
LENGTHS = (*range(1, 200), *(2**i + j for i in range(8, 13) for j in (-1, 0, 1)), 10_007)
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-39, 3.4e38, -3.4e38, 1, 0.5, 1.1754944e-38], np.float32
)


def describe(opened: Library) -> list[str]:
    """What is there, for people."""
    built = opened.compiler()
    return [
        f"tier {opened.tier()}; this CPU and this build can run: {', '.join(usable_tiers(opened))}",
        f"CPU features: {opened.features() or 'none that plain C would use'}",
        f"library {opened.path}, ABI version {ABI_VERSION}{f', built with {built}' if built else ''}",
    ]


def tested_tiers(opened: Library) -> list[str]:
    """The tier that `MAHE_KERNEL` names; every one that can run here, if it names none."""
    asked = asked_tier()
    return usable_tiers(opened) if asked == "auto" else [asked]


def differences(opened: Library) -> list[str]:
    """A sentence for each kernel and tested tier that differs from NumPy. Leaves the tier in use as it was."""
    before = opened.tier()
    try:
        return _compared(opened, tested_tiers(opened), LENGTHS)
    finally:
        set_tier(opened, before)


def quick_differences(opened: Library) -> list[str]:
    """The same on few lengths, of the tier in use alone: no other thread that computes meanwhile notices. In 0.1 s."""
    return _compared(opened, [opened.tier()], QUICK_LENGTHS)


def _compared(opened: Library, tiers: list[str], lengths: tuple[int, ...]) -> list[str]:
    found: dict[tuple[str, str], str] = {}
    for name, case in CASES.items():
        for n in lengths:
            with np.errstate(all="ignore"):
                ours, expected = case(n, drawn(n))
            for tier in tiers:
                if tier != opened.tier():
                    set_tier(opened, tier)
                if (name, tier) not in found and (told := difference(ours(), expected)):
                    found[name, tier] = f"{name} on tier {tier} differs from NumPy for {n} elements: {told}"
    return list(found.values())


def drawn(seed: int) -> Draw:
    """Draws values that are seldom plain: small and large, with zeros, infinities and NaN among every fourth lot."""
    random = np.random.default_rng(seed)

    def draw(n: int) -> Float32Array:
        values = random.uniform(-1, 1, n).astype(np.float32)
        if seed % 2:
            values *= np.exp2(random.integers(-30, 31, n)).astype(np.float32)
        if seed % 4 == 3:
            places = random.integers(0, n, -(-n // 40)) if n else np.zeros(0, np.int64)
            values[places] = random.choice(SPECIAL, places.size)
        return values

    return draw


def difference(got: Results, expected: Results) -> str:
    """The first entry that differs, in words; "" if none does."""
    for ours, theirs in zip(got, expected, strict=True):
        same = same_bits(ours, theirs)
        if not same.all():
            i = int(np.argmin(same))
            return f"entry {i} is {ours[i]!r} instead of {theirs[i]!r}"
    return ""


def main() -> int:
    """The command: facts, then the verdict; exit code 1 when there are no kernels or one of them differs."""
    try:
        opened = library()
        for line in describe(opened):
            sys.stdout.write(line + "\n")
        found = differences(opened)
    except KernelError as error:
        sys.stderr.write(f"{error.sentence}\n")
        return 1
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        sys.stderr.write(f"self-test: {found[0]}{more}; set MAHE_KERNEL=scalar and report this with the lines above\n")
        return 1
    tiers = ", ".join(tested_tiers(opened)) + (f" alone ({TIER_VARIABLE})" if asked_tier() != "auto" else "")
    sys.stdout.write(f"self-test: {len(CASES)} kernels on {tiers}, {len(LENGTHS)} lengths each: the bits of NumPy\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
