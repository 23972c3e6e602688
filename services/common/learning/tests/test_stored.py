"""Stored data sets: from files to batches, and everything about a file that must not be trained on."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import DatasetError
from services.common.learning import LocalTask, build_inner, build_model, load, run_local_steps
from services.common.learning.stored import blobs_of, descriptor_digest, with_held_out

RANDOM = np.random.default_rng(4)
X, Y = RANDOM.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 3
PIXELS = RANDOM.integers(0, 256, (40, 6), dtype=np.uint8)


def stored(folder: Path, x: np.ndarray = X, y: np.ndarray = Y, **change: Any) -> dict[str, Any]:
    """Writes the two blobs; the descriptor."""
    train: dict[str, Any] = {"n": len(x)}
    for name, array in (("x", x), ("y", y)):
        path = folder / f"{name}.npy"
        np.save(path, array)
        sha = hashlib.sha256(path.read_bytes()).hexdigest()
        train[name] = {"sha256": sha, "bytes": path.stat().st_size}
        path.rename(folder / sha)
    descriptor = {"kind": "stored", "name": "mine", "inputs": 6, "classes": 3, "shape": [6], "train": train} | change
    return {**descriptor, "digest": descriptor_digest(descriptor)}


def test_a_stored_data_set_is_mapped_and_has_nothing_held_out(tmp_path: Path) -> None:
    descriptor = stored(tmp_path)
    dataset = load(descriptor, tmp_path)
    assert isinstance(dataset.x_train, np.ndarray)
    assert isinstance(dataset.x_train.base, np.ndarray) and not dataset.x_train.flags.writeable
    assert np.array_equal(dataset.x_train, X) and np.array_equal(dataset.y_train, Y)
    assert (dataset.x_test.shape, len(dataset.y_test)) == ((0, 6), 0)
    assert (dataset.name, dataset.classes, dataset.digest) == ("mine", 3, descriptor["digest"])
    assert dataset.summary()["train_per_class"] == [14, 13, 13]
    assert [blob.sha256 for blob in blobs_of(descriptor)] == [descriptor["train"][k]["sha256"] for k in "xy"]


def test_pictures_stay_bytes_on_disk_and_train_as_their_scaled_numbers_do(tmp_path: Path) -> None:
    dataset = load(stored(tmp_path, PIXELS, shape=[1, 2, 3], mean=127.5, scale=64.0), tmp_path)
    rows = np.array([5, 0, 39])
    numbers = (PIXELS.astype(np.float32) - np.float32(127.5)) / np.float32(64)
    assert dataset.x_train[rows].dtype == np.float32
    assert np.array_equal(dataset.x_train[rows], numbers[rows])
    plain = load(stored(tmp_path, numbers), tmp_path)
    model = build_model({"family": "softmax"}, 6, 3)
    anchor, task = model.initial_parameters(1), LocalTask(1, 1, 1, ((0, 40),), 8, 9)
    deltas = [
        run_local_steps(model, build_inner({"name": "sgd", "lr": 0.1}, len(anchor)), anchor, d, task, lambda *_: False)
        for d in (dataset, plain)
    ]
    assert np.array_equal(deltas[0].delta, deltas[1].delta)


@pytest.mark.parametrize(("shape", "divisor"), [([1, 2, 3], 255), ([6], 1)], ids=["picture", "tokens"])
def test_bytes_without_a_scale_are_pictures_from_0_to_1_or_tokens(
    tmp_path: Path, shape: list[int], divisor: int
) -> None:
    dataset = load(stored(tmp_path, PIXELS, shape=shape), tmp_path)
    assert np.array_equal(dataset.x_train[:], PIXELS.astype(np.float32) / np.float32(divisor))


def test_the_master_adds_what_is_held_out(tmp_path: Path) -> None:
    descriptor = stored(tmp_path, PIXELS, shape=[1, 2, 3])
    np.save(tmp_path / "validation.x.npy", PIXELS[:7])
    np.save(tmp_path / "validation.y.npy", Y[:7])
    dataset = load(descriptor, tmp_path)
    held = with_held_out(dataset, descriptor, tmp_path / "validation.x.npy", tmp_path / "validation.y.npy")
    model = build_model({"family": "softmax"}, 6, 3)
    params = model.initial_parameters(1)
    x = PIXELS[:7].astype(np.float32) / np.float32(255)
    assert model.evaluate(params, held.x_test, held.y_test) == model.evaluate(params, x, Y[:7])
    assert held.x_train is dataset.x_train


def test_a_regression_has_numbers_to_learn(tmp_path: Path) -> None:
    y = X[:, 0] * 2
    dataset = load(stored(tmp_path, X, y, classes=0), tmp_path)
    assert np.array_equal(dataset.y_train, y)
    assert dataset.summary()["train_per_class"] == []


@pytest.mark.parametrize("harm", ["missing", "shorter", "other", "folder"])
def test_a_file_that_is_not_what_its_name_says_is_named_with_the_next_step(tmp_path: Path, harm: str) -> None:
    descriptor = stored(tmp_path)
    path = tmp_path / descriptor["train"]["x"]["sha256"]
    raw = path.read_bytes()
    path.unlink()
    if harm == "shorter":
        path.write_bytes(raw[:-1])
    elif harm == "other":
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    elif harm == "folder":
        path.mkdir()
    with pytest.raises(DatasetError) as caught:
        load(descriptor, tmp_path)
    assert caught.value.code == "DATA_BLOB"
    assert str(path) in caught.value.sentence
    assert "fetched from the master again" in caught.value.sentence


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X.astype(np.float64), Y, "needed: float32 or uint8"),
        (X[:, :5], Y, "needed: float32 or uint8"),
        (np.asfortranarray(X), Y, "C order"),
        (X, Y[:39], "needed: int64, [40]"),
        (X, Y.astype(np.float32), "needed: int64"),
        (X, Y + 1, "labels 0 to 2, not 1 to 3"),
        (X, Y - 1, "labels 0 to 2, not -1 to 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, x: np.ndarray, y: np.ndarray, said: str) -> None:
    with pytest.raises(DatasetError) as caught:
        load(stored(tmp_path, x, y), tmp_path)
    assert said in caught.value.sentence


def test_objects_and_other_files_are_never_unpickled(tmp_path: Path) -> None:
    descriptor = stored(tmp_path, np.array([[object()] * 6] * 40))
    with pytest.raises(DatasetError, match="cannot be opened"):
        load(descriptor, tmp_path)


def test_numbers_to_learn_are_finite(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="finite numbers only"):
        load(stored(tmp_path, X, np.full(40, np.nan, np.float32), classes=0), tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inputs": 0}, "dataset inputs is 0"),
        ({"classes": 1}, "dataset classes is 1"),
        ({"shape": [2, 3]}, "dataset shape is [2, 3]"),
        ({"shape": [5]}, "dataset shape is [5]"),
        ({"train": {"n": 40, "x": {"sha256": "../../etc/passwd", "bytes": 1}}}, "sha256 is '../../etc/passwd'"),
        ({"train": 1}, "dataset train is 1"),
        ({"name": ""}, "dataset name is ''"),
        ({"test": 1}, "dataset field is 'test'"),
        ({"mean": 1.0}, "dataset scale is None"),
    ],
)
def test_a_bad_descriptor_names_the_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError) as caught:
        load(stored(tmp_path, **change), tmp_path)
    assert said in caught.value.sentence


def test_another_digest_or_no_folder_is_refused(tmp_path: Path) -> None:
    descriptor = stored(tmp_path)
    with pytest.raises(DatasetError, match="dataset digest"):
        load({**descriptor, "digest": "0" * 64}, tmp_path)
    with pytest.raises(DatasetError, match="no folder of blobs"):
        load(descriptor)
    with pytest.raises(DatasetError, match="has 40 rows, but says 41"):
        load(stored(tmp_path, train={**descriptor["train"], "n": 41}), tmp_path)
