"""The performance section as Markdown, in English or Chinese: pure, from the files, the pins and the pictures there."""

from collections.abc import Callable, Sequence

from bench.report.figures import Figures
from bench.report.lines import LINES, Line
from bench.report.others import OTHERS
from bench.report.results import File, machines, newest, peers
from bench.report.words import CHINESE

HEADS = ("What", "MAHE", "Other", "Ratio", "Target", "Commit")
MEASURED = "Measured by `make bench` on {}."
MADE = "Workers and links are made on it: {} of a core for each worker, network namespaces joined at the rate named."
BESIDE, RATIOS = "Beside: {}.", "Each ratio is from one measurement of both."
PICTURES, BETTER = "Pictures: {}.", "What the others do better:"
NOT_YET = "not measured yet"
FOLDER = "bench/results"

Translate = Callable[[str], str]


def section(files: Sequence[File], pins: Sequence[str], pictures: Sequence[str], *, chinese: bool = False) -> str:
    """What stands in the README. `pins` are texts of requirements, `pictures` names of files in bench/results."""
    say: Translate = in_chinese if chinese else str
    used = {one.name: one for line in LINES if (one := _file(files, line)) is not None}
    sentences = [say(MEASURED).format("; ".join(machines(used.values())))] if used else []
    cores = next((one.found["setting"]["cores"] for one in used.values() if one.benchmark == "speed"), None)
    sentences += [say(MADE).format(f"{cores:g}")] if cores is not None else []
    sentences += [say(BESIDE).format(say(", ").join(peers(pins))), say(RATIOS)]
    shown = say(", ").join(f"[{name.removesuffix('.png')}]({FOLDER}/{name})" for name in pictures)
    sentences += [say(PICTURES).format(shown)] if shown else []
    heads = [f"| {' | '.join(map(say, HEADS))} |", f"|{' --- |' * len(HEADS)}"]
    others = [f"- **{one.name}** {one.chinese if chinese else one.english}" for one in OTHERS]
    rows = [row(line, _file(files, line), say) for line in LINES]
    intro = ("" if chinese else " ").join(sentences)
    return "\n".join([intro, "", *heads, *rows, "", say(BETTER), "", *others])


def row(line: Line, file: File | None, say: Translate) -> str:
    """One line of the table; without its figures it names what measures them."""
    found = None if file is None else line.figures(file.found)
    if file is None or found is None:
        cells = [say(line.what), f"{say(NOT_YET)}{say(': ')}`make {line.source.verb}`", "", "", "", ""]
    else:
        other = say(": ").join(filter(None, (say(line.other), found.other)))
        ratio = say(line.ratio).format(found.ratio) if found.ratio else ""
        commit = f"[{file.commit}]({FOLDER}/{file.name}.json)"
        cells = [say(line.what), found.ours, other, ratio, verdict(line, found, say), commit]
    return f"| {' | '.join(cells)} |"


def verdict(line: Line, found: Figures, say: Translate) -> str:
    """The target, and whether it was met; where not, the reason if there is one."""
    if found.met is None:
        return ""
    target = f"{say(line.target).format(found.target)}{say(': ')}"
    if found.met:
        return target + say("met")
    return f"{target}**{say('missed')}**{say(' ({})').format(say(line.why)) if line.why else ''}"


def missed(files: Sequence[File]) -> list[str]:
    """For people at a terminal: of each file the targets that were missed, also those without a line in the table."""
    return [f"{file.name} ({file.commit}): {text}" for file in files for text in _missed(file)]


def in_chinese(text: str) -> str:
    """What has no Chinese is a name and stands as it is."""
    return CHINESE.get(text, text)


def _file(files: Sequence[File], line: Line) -> File | None:
    return newest(files, line.source.benchmark, line.source.parts)


def _missed(file: File) -> list[str]:
    found = [str(one["target"]) for one in file.found.get("targets", []) if not one["met"]]
    for part in file.found.values():
        for one in part if isinstance(part, list) else []:
            found += [
                f"{target['kernel']} {target['size']} against {target['other']}: {target['verdict']}"
                for target in one.get("targets", [])
                if target["verdict"] != "met"
            ]
            found += [_named(one)] if one.get("held") is False else []
    return found


def _named(row: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if not isinstance(value, (list, dict)))
