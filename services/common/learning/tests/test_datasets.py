"""Data sets: the same bits everywhere, an honest split, and errors that say what to do."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import DatasetError
from services.common.learning import catalog, datasets
from services.common.learning.datasets import NAMES, describe, load
from services.common.learning.generators import GENERATORS, GRID

SHAPES = {"digits": (64, 10), "gauss3": (2, 3), "rings4": (2, 4), "spiral3": (2, 3)}
PINNED = {
    "digits": "b0bf5ea3b210b26f73b7d9a90f811b0d18623af7e7ffb76b2eb7868879b240ea",
    "gauss3": "9859e307ff2fbd41fab58eae577b63a3bea7ef2b45843b8c33dfbf89831e9491",
    "rings4": "4a6006bfb9768b6c19dab732331ec748f6ae28954ccd5b53974345d0c2cc814d",
    "spiral3": "062bc0dd70bea6df4c9452cae4ea81392b86b16cde84b916bf33699389f74660",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_default_descriptor_loads_with_the_digest_every_release_must_give(name: str) -> None:
    descriptor = describe(name)
    assert descriptor["digest"] == PINNED[name]
    assert json.loads(json.dumps(descriptor)) == descriptor
    assert describe(f"builtin:{name}") == descriptor
    dataset = load(descriptor)
    assert load({**descriptor, "name": f"builtin:{name}"}).digest == dataset.digest == descriptor["digest"]
    assert (dataset.x_train.shape[1], dataset.classes) == SHAPES[name]
    assert dataset.x_train[:].dtype == np.float32
    assert dataset.y_train.dtype == np.int64
    for array in (dataset.x_train[:], dataset.y_train, dataset.x_test[:], dataset.y_test):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


@pytest.mark.parametrize("name", NAMES)
def test_no_test_row_is_in_train_and_nothing_is_lost(name: str) -> None:
    dataset = load(describe(name))
    train, test = ({row.tobytes() for row in x} for x in (dataset.x_train[:], dataset.x_test[:]))
    assert not train & test
    total = describe(name)["n"]
    assert (len(dataset.y_test), len(dataset.y_train)) == (total // 5, total - total // 5)
    assert set(dataset.y_train.tolist()) == set(dataset.y_test.tolist()) == set(range(dataset.classes))


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_generated_values_lie_on_the_grid_and_follow_the_seed(name: str) -> None:
    dataset = load(describe(name, seed=11, n=300))
    assert len(dataset.y_train) + len(dataset.y_test) == 300
    steps = dataset.x_train[:] / np.float32(GRID)
    assert np.array_equal(steps, np.rint(steps))
    assert np.abs(dataset.x_train[:]).max() < 4
    assert dataset.digest != describe(name, n=300)["digest"]


def test_rings_have_their_radii() -> None:
    dataset = load(describe("rings4"))
    radius = np.hypot(*dataset.x_train[:].T)
    for label in range(4):
        ring = radius[dataset.y_train == label]
        assert float(ring.mean()) == pytest.approx(0.5 * (label + 1), abs=0.02)
        assert float(ring.std()) == pytest.approx(0.09, abs=0.015)


def test_gaussians_have_their_centres() -> None:
    dataset = load(describe("gauss3"))
    for label in range(3):
        cloud = dataset.x_train[dataset.y_train == label]
        angle = 2 * np.pi * label / 3
        assert cloud.mean(axis=0).tolist() == pytest.approx([np.cos(angle), np.sin(angle)], abs=0.06)
        assert cloud.std(axis=0).tolist() == pytest.approx([0.4, 0.4], abs=0.04)


def test_digits_are_the_bundled_images_scaled_by_sixteenths() -> None:
    path = Path(datasets.__file__).parent / "data" / "digits.npz"
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"`{sha}`" in (path.parent / "README.md").read_text(encoding="utf-8")
    dataset = load(describe("digits"))
    sixteenths = dataset.x_train[:] * 16
    assert np.array_equal(sixteenths, np.rint(sixteenths))
    assert (sixteenths.min(), sixteenths.max()) == (0, 16)


def test_summary_is_plain_data() -> None:
    summary = load(describe("rings4", n=100)).summary()
    assert json.loads(json.dumps(summary)) == summary
    assert summary["train"] == sum(summary["train_per_class"]) == 80
    assert summary["test"] == sum(summary["test_per_class"]) == 20


def test_another_digest_names_both() -> None:
    descriptor = describe("rings4")
    with pytest.raises(DatasetError) as caught:
        load({**descriptor, "digest": "0" * 64})
    assert descriptor["digest"] in caught.value.sentence
    assert "0" * 64 in caught.value.sentence
    assert caught.value.code == "DATASET_DIGEST"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "file"}, "dataset kind is 'file'"),
        ({"name": "rings5"}, "dataset name is 'rings5'; allowed: digits, gauss3, rings4, spiral3."),
        ({"seed": -1}, "dataset seed is -1"),
        ({"seed": 2**63}, "dataset seed is"),
        ({"n": 49}, "dataset n is 49; allowed for rings4: a whole number from 50 to 1,000,000."),
        ({"n": True}, "dataset n is True"),
        ({"n": 100.0}, "dataset n is 100.0"),
        ({"name": "digits"}, "allowed for digits: 1,797."),
        ({"noise": 1}, "'noise'"),
    ],
)
def test_a_bad_descriptor_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError) as caught:
        load({**describe("rings4"), **change})
    assert said in caught.value.sentence


def test_a_missing_field_or_name_is_refused() -> None:
    with pytest.raises(DatasetError, match="needed: exactly"):
        load({"kind": "builtin", "name": "rings4"})
    with pytest.raises(DatasetError, match="allowed"):
        describe("mnist")


def test_a_damaged_digits_file_is_an_operating_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (None, b"", b"not a zip", b"PK\x03\x04 cut off"):
        path = tmp_path / "digits.npz"
        if content is not None:
            path.write_bytes(content)
        monkeypatch.setattr(datasets, "_DIGITS_FILE", path)
        with pytest.raises(DatasetError, match="Install MAHE again"):
            load({"kind": "builtin", "name": "digits", "seed": 7, "n": 1797, "digest": ""})


def test_the_catalog_agrees_with_the_data() -> None:
    entries = catalog()
    assert [entry["name"] for entry in entries] == sorted(NAMES)
    assert json.loads(json.dumps(entries)) == entries
    for entry in entries:
        summary = load(entry["descriptor"]).summary()
        for field in ("name", "dimensions", "classes", "train", "test"):
            assert entry[field] == summary[field]
        assert set(entry["recommended"]) == {"model", "inner", "k_steps", "batch", "rounds"}
    entries[0]["recommended"]["model"]["hidden"].append(1)
    assert catalog()[0]["recommended"]["model"] == {"family": "mlp", "hidden": [64, 64]}
