"""The report from small made-up files: which file counts, what each line says, what is missed, both languages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.report import figures, lines, readme, results, table
from bench.report.figures import Figures
from bench.report.others import OTHERS
from bench.report.results import File
from bench.report.words import CHINESE

LINK, SLOW = {"mbit": 100.0, "delay_ms": 2.0}, {"mbit": 10.0, "delay_ms": 10.0}
AUTO, FIXED = {"k_steps": 50, "k_auto": True}, {"k_steps": 200}


def scaling(workers: int, samples_per_s: float, of_lone: float = 0.0, arm: dict[str, Any] = AUTO) -> dict[str, Any]:
    return {"link": LINK, "arm": arm, "workers": workers, "samples_per_s": samples_per_s, "of_lone": of_lone}


def overhead(n: int, of_bare: float, flower_s: float | None, workers: int = 2) -> dict[str, Any]:
    return {
        "n": n,
        "workers": workers,
        "encoding": "fp32",
        "mahe_s": 2e-7 * n,
        "bare_s": 1e-7 * n,
        "flower_s": flower_s,
        "of_bare": of_bare,
        "faster_than_flower": None if flower_s is None else flower_s / (2e-7 * n),
    }


POISON = {
    "poison-cluster": [
        {
            "rule": rule,
            "attack": attack,
            "accuracies": [0.9, 0.91],
            "points_below_clean_mean": 1.0 + place,
            "target": 2.5 if rule == "clip" else None,
            "held": None if rule == "mean" else attack != "flip",
        }
        for rule in ("clip", "mean")
        for place, attack in enumerate(("nan", "x-10", "flip"))
    ]
}
STEPS = {
    "every-step": [
        {"arm": "every step", "accuracy": 0.95},
        {"arm": "rounds", "accuracy": 0.945},
        {"gap_points": 0.5, "fewer_bytes": 199.0},
    ]
}
TRAINER = {
    "rows": [
        {
            "model": "m",
            "optimizer": name,
            "samples_s": 1234.5,
            "torch_samples_s": 1000.0,
            "ratio": ratio,
            "target": 0.95,
        }
        for name, ratio in (("sgd", 1.2), ("momentum", 0.95), ("adamw", 0.94))
    ]
}
QUALITY = {
    "encodings": [
        {"data": data, "encoding": encoding, "off_by_spreads": off, "target": target}
        for data, encoding, off, target in (
            ("digits", "fp32", 0.0, None),
            ("digits", "int8", 0.01, 0.1),
            ("mnist", "int8", 0.02, 0.1),
            ("digits", "int4", 0.1, 0.1),
            ("digits", "topk", 0.8, None),
        )
    ]
}
KERNEL: dict[str, Any] = {
    "rows": [
        {
            "kernel": "adamw",
            "size": "16 MiB",
            "us": {"ours": 4000.0, "torch": 5000.0},
            "times_as_fast_as": {"torch": 1.25},
            "targets": [{"kernel": "adamw", "size": "16 MiB", "other": "torch", "at_least": 1.2, "verdict": "met"}],
        }
    ]
}
WIRE = {
    "wire": [
        {"encoding": encoding, "wire_up": up, "wire_down": up, "exchange_s": seconds}
        for encoding, up, seconds in (("fp32", 4_000_000, 1.3), ("int8", 1_000_000, 0.4), ("int4", 520_000, 0.21))
    ],
    "hivemind": [{"compression": "8 bit", "step_s": 0.2}],
}
UNEQUAL = {"unequal": [{"utilisation_mean": 0.905, "of_divided": 1.16, "recovered_after": None}]}

Case = tuple[Callable[[Any], Figures | None], dict[str, Any], Figures]
CASES: list[Case] = [
    (
        lambda found: figures.samples_per_s(found, 100, 2),
        {"scaling": [scaling(0, 1000), scaling(2, 1800.4, 1.8), scaling(0, 9, arm=FIXED), scaling(2, 9, 9.0, FIXED)]},
        Figures("1,800", "1,000", "1.80", "1.8", met=True),
    ),
    (
        lambda found: figures.samples_per_s(found, 100, 1),
        {"scaling": [scaling(0, 1000), scaling(1, 950, 0.95)]},
        Figures("950", "1,000", "0.95"),
    ),
    (
        lambda found: figures.against_ddp(found, 10),
        {
            "ddp": [
                {"link": LINK, "who": "DDP", "samples_per_s": 160.0},
                {"link": SLOW, "who": "DDP", "samples_per_s": 20.0},
                {"link": SLOW, "who": "MAHE", "arm": AUTO, "samples_per_s": 1990.0, "of_ddp": 99.5},
            ]
        },
        Figures("1,990", "20", "99.5", "100", met=False),
    ),
    (
        lambda found: figures.time_to_loss(found, 100),
        {
            "time-to-loss": [
                {"link": LINK, "workers": 1, "seconds": 30.0},
                {"link": LINK, "workers": 2, "seconds": 20.0},
            ]
        },
        Figures("20.0 s", "30.0 s", "1.50", "1", met=True),
    ),
    (
        lambda found: figures.time_to_loss(found, 100),
        {
            "time-to-loss": [
                {"link": LINK, "workers": 1, "seconds": 30.0},
                {"link": LINK, "workers": 2, "seconds": None},
            ]
        },
        Figures("-", "30.0 s", "", "1", met=False),
    ),
    (figures.fewer_bytes, WIRE, Figures("2.00 / 1.04 MB", "8.00 MB", "4.00 / 7.69", "3.9 / 7.8", met=False)),
    (lambda found: figures.exchange(found, "int8"), WIRE, Figures("0.400 s", "0.200 s", "0.50")),
    (
        lambda found: figures.exchange(found, "int4"),
        WIRE,
        Figures("0.210 s", "0.200 s", "0.95", "0.21 s", met=True),
    ),
    (
        figures.against_flower,
        {"overhead": [overhead(99_954, 9, 0.1), overhead(1_000_140, 9, 2.0), overhead(9_999_840, 9, 10.0)]},
        Figures("20 / 200 / 2,000 ms", "100 / 2,000 / 10,000 ms", "5.00 / 10.00 / 5.00", "5", met=True),
    ),
    (
        lambda found: figures.against_zeromq(found, "fp32"),
        {
            "overhead": [
                overhead(10**5, 1.2, None),
                overhead(10**6, 1.3, None),
                overhead(10**7, 1.4, None),
                overhead(10**7, 1.0, None, workers=4),
            ]
        },
        Figures("20 / 200 / 2,000 ms", "10 / 100 / 1,000 ms", "1.2 / 1.3 / 1.4", "1.3", met=False),
    ),
    (
        figures.memory,
        {"memory": [{"workers": count, "growth_mib": 2.0 * count, "model_mib": 16.0} for count in (8, 16)]},
        Figures("+16.0 MiB", target="16.0 MiB", met=True),
    ),
    (
        lambda found: figures.kernel(found, "adamw", "torch"),
        KERNEL,
        Figures("4.00 ms", "5.00 ms", "1.25", "1.2", met=True),
    ),
    (
        lambda found: figures.local_steps(found, "m"),
        TRAINER,
        Figures("1,234 / 1,234 / 1,234", "1,000 / 1,000 / 1,000", "1.20 / 0.95 / 0.94", "0.95", met=False),
    ),
    (figures.quality, QUALITY, Figures("0.020 / 0.100", target="0.1", met=True)),
    (figures.every_step, STEPS, Figures("94.5 %", "95.0 %", "199", "200", met=False)),
    (
        figures.poison,
        POISON,
        Figures("90.5 / 90.5 / 90.5 %", "90.5 / 90.5 / 90.5 %", "1.0 / 2.0 / 3.0", "2.5", met=False),
    ),
    (figures.utilisation, UNEQUAL, Figures("90.5 %", target="90 %", met=True)),
    (figures.divided, UNEQUAL, Figures("1.16", target="1.15", met=False)),
    (figures.recovered, UNEQUAL, Figures("-", target="3", met=False)),
    (figures.estimate, {"estimate": [{"off": -0.26}, {"off": 0.1}]}, Figures("-26% / +10%", target="25%", met=False)),
]


@pytest.mark.parametrize("of,found,expected", CASES)
def test_a_line_says_what_its_rows_say(
    of: Callable[[Any], Figures | None], found: dict[str, Any], expected: Figures
) -> None:
    assert of(found) == expected


@pytest.mark.parametrize(
    "of,found",
    [
        (lambda found: figures.samples_per_s(found, 100, 4), {"scaling": [scaling(0, 1000), scaling(2, 1800, 1.8)]}),
        (lambda found: figures.samples_per_s(found, 10, 2), {"scaling": [scaling(0, 1000), scaling(2, 1800, 1.8)]}),
        (
            lambda found: figures.against_ddp(found, 100),
            {"ddp": [{"link": LINK, "who": "DDP", "samples_per_s": 160.0}]},
        ),
        (
            lambda found: figures.time_to_loss(found, 10),
            {"time-to-loss": [{"link": SLOW, "workers": 1, "seconds": 9.0}]},
        ),
        (figures.fewer_bytes, {"wire": WIRE["wire"][:2]}),
        (lambda found: figures.exchange(found, "int8"), {**WIRE, "hivemind": [{"compression": "fp32", "step_s": 0.5}]}),
        (figures.against_flower, {"overhead": [overhead(10**size, 9, None) for size in (5, 6, 7)]}),
        (figures.against_flower, {"overhead": [overhead(10**size, 9, 1.0) for size in (5, 6)]}),
        (figures.memory, {"memory": [{"workers": 16, "growth_mib": 2.0, "model_mib": 4.0}]}),
        (lambda found: figures.kernel(found, "adamw", "scipy"), KERNEL),
        (lambda found: figures.local_steps(found, "another"), TRAINER),
        (figures.quality, {"encodings": QUALITY["encodings"][:2]}),
        (figures.every_step, {"every-step": [{"left out": "there is no file", "held": None}]}),
        (figures.poison, {"poison-cluster": POISON["poison-cluster"][:4]}),
    ],
)
def test_a_line_says_nothing_when_a_figure_is_missing(
    of: Callable[[Any], Figures | None], found: dict[str, Any]
) -> None:
    assert of(found) is None


def test_the_newest_file_with_all_parts_counts() -> None:
    whole = File("wire", {"at": "2026-01-02 10:00:00", "wire": [1], "hivemind": [1], "memory": [1]})
    later = File("wire.memory", {"at": "2026-01-03 09:00:00", "wire": [1], "hivemind": [], "memory": [2]})
    quick = File("wire.quick", {"at": "2026-01-04 09:00:00", "setting": {"quick": True}, "memory": [3]})
    files = [later, whole, quick, File("kernels", {"memory": [4]})]
    assert results.newest(files, "wire", ["memory"]) is later
    assert results.newest(files, "wire", ["wire", "hivemind"]) is whole
    assert results.newest(files, "wire", ["overhead"]) is None


def test_files_are_read_by_their_names_and_a_broken_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text('{"commit": "abc"}')
    (tmp_path / "kernels.json").write_text('{"machine": {"commit": "def-dirty"}}')
    (tmp_path / "chaos.soak.json").write_text("{}")
    assert [(one.name, one.commit) for one in results.load(tmp_path)] == [("kernels", "def-dirty"), ("speed", "abc")]
    (tmp_path / "wire.json").write_text("{")
    with pytest.raises(ValueError, match=r"wire\.json is not JSON"):
        results.load(tmp_path)


def test_a_machine_is_named_once_and_by_its_cpu_where_one_file_knows_it() -> None:
    here = {"cores": 2, "system": "Linux"}
    files = [File("wire", {"machine": here}), File("kernels", {"machine": {**here, "cpu": "Xeon"}})]
    assert results.machines(files) == ["2 x Xeon, Linux"]
    elsewhere = File("speed", {"machine": {"cores": 8, "system": "Linux"}})
    assert results.machines([*files, elsewhere]) == ["2 x Xeon, Linux", "8 x CPU, Linux"]


def test_peers_have_the_versions_that_are_pinned() -> None:
    assert results.peers(["# torch==1.0\nflwr==1.2\ntorch==2.0\nmatplotlib==3", "hivemind==1.1\ntorch==2.0\n"]) == [
        "Flower 1.2",
        "Hivemind 1.1",
        "PyTorch 2.0",
    ]


def test_without_files_each_line_names_the_verb_that_measures_it() -> None:
    said = table.section([], [], [])
    assert "| Samples/s, 2 workers, 100 Mbit/s | not measured yet: `make bench-speed` |" in said
    assert said.count("not measured yet") == len(lines.LINES)
    assert "Measured by" not in said and "Pictures" not in said
    makefile = (results.ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{line.source.verb}:" in makefile for line in lines.LINES)


def test_a_row_has_figures_target_reason_and_commit() -> None:
    facts = {"commit": "abc1234", "machine": {"cores": 2, "system": "Linux"}, "at": "2026"}
    rows = [overhead(10**size, 7.0, 0.001) for size in (5, 6, 7)]
    said = table.section([File("wire", {**facts, "overhead": rows})], ["flwr==1.2"], ["wire.png"])
    begin = "Measured by `make bench` on 2 x CPU, Linux. Beside: Flower 1.2."
    assert said.startswith(begin)
    assert "Pictures: [wire](bench/results/wire.png)." in said
    assert "| 7.0 / 7.0 / 7.0x as long | at most 1.3: **missed** (there nothing is added up" in said
    assert "| [abc1234](bench/results/wire.json) |" in said
    met = table.section([File("wire", {**facts, "overhead": [{**row, "of_bare": 1.0} for row in rows]})], [], [])
    assert "| at most 1.3: met |" in met


def test_the_quota_of_a_worker_is_told_where_speed_was_measured() -> None:
    speed = File("speed", {"setting": {"cores": 0.4, "quick": False}, "scaling": [scaling(0, 9)]})
    assert "0.4 of a core for each worker" in table.section([speed], [], [])


def test_missed_targets_are_listed_in_whatever_shape_they_have() -> None:
    kernel = {**KERNEL["rows"][0], "targets": [{**KERNEL["rows"][0]["targets"][0], "verdict": "MISSED: it waits"}]}
    files = [
        File("kernels", {"machine": {"commit": "a"}, "rows": [kernel, *KERNEL["rows"]]}),
        File(
            "learning",
            {"commit": "b", "poison": [{"rule": "clip", "held": False, "accuracies": [0.1]}, {"held": True}]},
        ),
        File("wire", {"commit": "c", "targets": [{"target": "slow", "met": False}, {"target": "fine", "met": True}]}),
    ]
    assert table.missed(files) == [
        "kernels (a): adamw 16 MiB against torch: MISSED: it waits",
        "learning (b): rule clip, held False",
        "wire (c): slow",
    ]


def test_every_text_has_its_chinese_or_is_a_name() -> None:
    names = {"fp32", "Flower", "torch", "NumPy", "MAHE", "{}", ""}
    fields = ("what", "other", "ratio", "target", "why")
    shown = {getattr(line, field) for line in lines.LINES for field in fields} | set(table.HEADS)
    shown |= {table.MEASURED, table.MADE, table.BESIDE, table.RATIOS, table.PICTURES, table.BETTER, table.NOT_YET}
    assert shown - CHINESE.keys() == names
    assert all(text.count("{}") == chinese.count("{}") for text, chinese in CHINESE.items())
    assert not CHINESE.keys() - shown - {"met", "missed", ": ", ", ", " ({})"}


def test_both_languages_say_the_same_figures() -> None:
    files = results.load()
    english, chinese = (table.section(files, [], [], chinese=one).splitlines() for one in (False, True))
    assert len(english) == len(chinese) == 7 + len(lines.LINES) + len(OTHERS)
    for one, other in zip(english, chinese, strict=True):
        if one.startswith("| ") and not one.startswith("| ---"):
            cells, cells_zh = (text.split(" | ") for text in (one, other))
            assert (cells[1], cells[5]) == (cells_zh[1], cells_zh[5]) or "not measured" in cells[1] or "Commit" in one
    assert any("未达到" in line for line in chinese)


def test_the_section_is_written_between_its_comments(tmp_path: Path) -> None:
    for path in readme.WRITERS:
        (tmp_path / path).write_text("# A\n\n<!-- performance: begin -->\n\nold\n\n<!-- performance: end -->\n\nlast\n")
    readme.write(tmp_path)
    said = (tmp_path / "README.zh-CN.md").read_text("utf-8")
    assert said == f"# A\n\n<!-- performance: begin -->\n\n{readme.chinese()}\n\n<!-- performance: end -->\n\nlast\n"
    (tmp_path / "README.md").write_text("# A\n")
    with pytest.raises(ValueError, match="performance: begin"):
        readme.write(tmp_path)


def test_the_report_reads_a_folder(tmp_path: Path) -> None:
    (tmp_path / "trainer.json").write_text(json.dumps({"commit": "abc", "rows": []}))
    assert "not measured yet: `make bench-trainer`" in readme.english(tmp_path)
