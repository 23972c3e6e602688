"""The evaluator process: measures committed versions on held-out examples. Spawned by `evaluation`; JSON lines only.

in   {"version", "path", "data", "model"}      out  {"t": "done", "version", "loss", "accuracy"} or {"t": "failed", ...}
"""

import json
from pathlib import Path
from typing import Any

from services.common.errors import MaheError
from services.common.host.children import lines_from_parent, tell_parent
from services.common.host.machine import give_way_to_all
from services.common.learning import Dataset, build_model, load
from services.master.shell import checkpoints


def main() -> None:
    """Answer each line until the master closes the pipe."""
    give_way_to_all()  # rounds never wait for it
    datasets: dict[str, Dataset] = {}
    for line in lines_from_parent():
        try:
            tell_parent({"t": "done", "version": line["version"], **evaluate(line, datasets)})
        except MaheError as error:
            tell_parent({"t": "failed", "version": line["version"], "reason": error.sentence})


def evaluate(line: dict[str, Any], datasets: dict[str, Dataset]) -> dict[str, float]:
    """Loss and accuracy of what the line asks for; `datasets` keeps the last one read. Raises MaheError."""
    key = json.dumps(line["data"], sort_keys=True)
    if key not in datasets:
        datasets.clear()
        datasets[key] = load(line["data"])
    dataset = datasets[key]
    parameters = checkpoints.read_parameters(Path(line["path"]))
    model = build_model(line["model"], dataset.x_test.shape[1], dataset.classes)
    loss, accuracy = model.evaluate(parameters, dataset.x_test, dataset.y_test)
    return {"loss": loss, "accuracy": accuracy}


if __name__ == "__main__":
    main()
