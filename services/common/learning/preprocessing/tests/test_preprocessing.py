"""Preprocessing from JSON: values by hand, and properties over whatever a row may hold."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.errors import DatasetError, SettingsError
from services.common.learning.preprocessing import Category, Image, Number, Table, Text, plain, read_preprocessing
from services.common.learning.preprocessing.values import number_of, words_of

SPECIES = {"name": "species", "kind": "category", "values": ["setosa", "virginica"]}
PRICE = {"name": "price", "kind": "number", "mean": 100.0, "scale": 50.0}
AGE = {"name": "age", "kind": "number", "fill": 40.0, "mean": 30.0, "scale": 10.0}
CITY = {"name": "city", "kind": "category", "values": ["a", "b", "3"]}
TABLE = {"version": 1, "kind": "table", "columns": [AGE, CITY], "label": SPECIES}
IMAGE = {"version": 1, "kind": "image", "height": 2, "width": 3, "channels": 1, "mean": 127.5, "scale": 64.0}
TEXT = {"version": 1, "kind": "text", "alphabet": "abc", "context": 4}


def table(**change: Any) -> Table:
    made = read_preprocessing({**TABLE, **change})
    assert isinstance(made, Table)
    return made


def test_a_table_fills_standardises_clamps_and_gives_each_value_an_input() -> None:
    rows = [["50", "a"], [None, "b"], {"city": " 3 ", "age": 20, "more": 1}, ["1e30", 3.0], [-1e9, "else"], ["?", "-"]]
    expected = [
        [2, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [-1, 0, 0, 1, 0],
        [10, 0, 0, 1, 0],
        [-10, 0, 0, 0, 1],
        [1, 0, 0, 0, 1],
    ]
    made = table()
    inputs = made.transform(rows)
    assert inputs.dtype == np.float32
    assert made.inputs == 5
    assert inputs.tolist() == expected


@pytest.mark.parametrize("value", ["", " NA ", "N/A", "nan", "null", "-", "?", "inf", "-Infinity", "1e400", None])
@pytest.mark.parametrize("wrap", [str, float], ids=["text", "number"])
def test_missing_and_not_finite_numbers_are_filled(value: str | None, wrap: Any) -> None:
    try:
        given_value = value if value is None else wrap(value)
    except ValueError:
        given_value = value
    assert table().transform([[given_value, "a"]])[0, 0] == 1
    assert table().transform([[10**400, "a"]])[0, 0] == 1


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("1,234.5", ".", 1234.5),
        ("1 234 567", ".", 1234567),
        ("1.234,5", ",", 1234.5),
        ("1.234", ",", 1234),
        ("-.5e1", ".", -5),
        ("12,5", ",", 12.5),
        ("1\u202f234,5", ",", 1234.5),
    ],
)
def test_numbers_are_read_by_the_decimal_mark(text: str, decimal: str, number: float) -> None:
    assert number_of(text, decimal) == number


@pytest.mark.parametrize("text", ["1,5", "1,2345", "1,234 567", "abc", "1_000", "0x10", "--1", ".", "e5", "9" * 401])
def test_what_is_no_number_is_refused_with_row_column_and_value(text: str) -> None:
    with pytest.raises(DatasetError) as caught:
        table().transform([["1", "a"], [text, "a"]])
    assert caught.value.code == "DATA_ROW"
    assert "Row 2, column 'age'" in caught.value.sentence


@pytest.mark.parametrize("row", [[[1], "a"], ["1", ["a"]], ["1", {"a": 1}], ["1", b"a"], ["1"], "1a", {"age": 1}, None])
def test_hostile_rows_are_refused(row: object) -> None:
    with pytest.raises(DatasetError, match="Row 1"):
        table().transform([row])


def test_a_whole_number_may_be_written_with_a_point_and_a_truth_value_is_a_word() -> None:
    assert words_of(3.0) == ("3", "3.0")
    assert words_of(np.float32(0.5)) == ("0.5",)
    assert words_of(True) == ("true",)
    assert words_of(math.inf) == words_of(10**400) == ()
    with pytest.raises(DatasetError):
        table().transform([[True, "a"]])


CELLS = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.text(max_size=20),
    st.sampled_from(["1e400", "inf", "nan", "a", "b", "x" * 10_000, 1e308, -1e308, 1e-320]),
)
NUMBERS = st.floats(-1e300, 1e300)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=5), fill=NUMBERS, mean=NUMBERS, scale=st.floats(1e-300, 1e300))
def test_no_row_gives_nan_or_leaves_the_clamp(rows: list[tuple[object, object]], **column: float) -> None:
    made, said = table(columns=[{**AGE, **column}, CITY]), ""
    inputs: np.ndarray | None
    try:
        inputs = made.transform(rows)
    except DatasetError as error:
        said = error.sentence
        inputs = None
    if inputs is None:
        assert said.startswith("Row ")
        return
    assert np.isfinite(inputs).all()
    assert (np.abs(inputs) <= 10).all()
    assert (inputs[:, 1:].sum(axis=1) == 1).all(), "each row has one value of a category"
    assert np.array_equal(inputs, made.transform([dict(zip(("age", "city"), row, strict=True)) for row in rows]))


def test_columns_that_are_arrays_already_are_encoded_alike() -> None:
    numbers, places = np.array([[50.0], [np.nan], [np.inf]]), np.array([[0], [3], [-1]])
    assert table().encode(numbers, places).tolist() == [[2, 1, 0, 0, 0], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1]]


@given(st.lists(st.integers(0, 1)))
def test_a_class_comes_back_as_itself(targets: list[int]) -> None:
    label = table().label
    assert isinstance(label, Category)
    assert label.targets([label.answer(target) for target in targets]).tolist() == targets
    assert label.targets([]).dtype == np.int64


@given(st.floats(-1e6, 1e6))
def test_a_number_comes_back_as_itself_to_float32(value: float) -> None:
    label = table(label=PRICE).label
    assert isinstance(label, Number)
    [target] = label.targets([value])
    assert target.dtype == np.float32
    assert label.answer(target) == pytest.approx(value, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("value", [None, "", "rose", ["setosa"], b"setosa", math.nan])
def test_a_label_that_is_missing_or_unknown_is_refused(value: object) -> None:
    for label in (SPECIES, PRICE):
        with pytest.raises(DatasetError, match="Row 2"):
            table(label=label).label.targets(["setosa" if label is SPECIES else 1, value])
    with pytest.raises(DatasetError, match="a finite number"):
        table(label=PRICE).label.targets([1e300])


def test_pictures_are_scaled_in_the_order_rows_columns_channels() -> None:
    made = read_preprocessing({**IMAGE, "label": SPECIES})
    assert isinstance(made, Image)
    picture = np.array([[0, 255, 1], [2, 3, 4]], dtype=np.uint8)
    inputs = made.transform([picture, picture[:, :, None]])
    assert inputs.dtype == np.float32
    assert inputs[0].tolist() == inputs[1].tolist() == [(v - 127.5) / 64 for v in (0, 255, 1, 2, 3, 4)]
    for wrong in (picture.T, picture.astype(np.float32), picture.tolist(), None):
        with pytest.raises(DatasetError, match="Picture 1"):
            made.transform([wrong])


def test_text_gives_its_last_characters_and_a_token_for_the_rest() -> None:
    made = read_preprocessing(TEXT)
    assert isinstance(made, Text)
    assert made.transform(["abcabc", "a", "", "xb"]).tolist() == [[2, 0, 1, 2], [3, 3, 3, 0], [3] * 4, [3, 3, 3, 1]]
    assert made.label.classes == 3
    with pytest.raises(DatasetError, match="Row 1"):
        made.transform([1])


def test_plain_numbers_stay_as_they_are() -> None:
    made = plain(2, 3)
    rows = np.array([[0.1, -7], [1e30, 2]], dtype=np.float32)
    assert np.array_equal(made.transform(rows), rows)
    assert made.label.answer(2) == "2"
    for wrong in (["1", None], [1, math.inf], [1, 1e39], [1, "x"]):
        with pytest.raises(DatasetError, match="column 'input1'"):
            made.transform([wrong])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "preprocessing version is 2; allowed: 1."),
        ({"kind": "pickle"}, "preprocessing kind is 'pickle'"),
        ({"columns": []}, "preprocessing columns is []"),
        ({"columns": [1]}, "columns[0] is 1"),
        ({"columns": [{**AGE, "scale": 0}]}, "columns[0] scale is 0"),
        ({"columns": [{**AGE, "mean": math.nan}]}, "columns[0] mean is nan"),
        ({"columns": [{**AGE, "fill": 1e301}]}, "columns[0] fill is 1e+301"),
        ({"columns": [{**AGE, "fil": 1}]}, "columns[0] field is 'fil'"),
        ({"columns": [AGE, AGE]}, "preprocessing columns is 'age'"),
        ({"columns": [{**CITY, "values": ["a", "a"]}]}, "columns[0] values[1] is 'a'"),
        ({"columns": [{**CITY, "values": [" a"]}]}, "columns[0] values[0] is ' a'"),
        ({"columns": [{**CITY, "values": ["NA"]}]}, "columns[0] values[0] is 'NA'"),
        ({"label": None}, "label is None"),
        ({"label": {**SPECIES, "values": ["a"]}}, "label values is ['a']"),
        ({"label": {**PRICE, "name": "age"}}, "preprocessing columns is 'age'"),
        ({"decimal": ";"}, "preprocessing decimal is ';'"),
        ({**IMAGE, "channels": 2, "columns": []}, "preprocessing field is 'columns'"),
    ],
)
def test_a_bad_preprocessing_names_the_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_preprocessing({**TABLE, **change})
    assert said in caught.value.sentence


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({**IMAGE, "label": SPECIES, "channels": 2}, "channels is 2; allowed: 1 or 3"),
        ({**IMAGE, "label": SPECIES, "scale": 0}, "preprocessing scale is 0"),
        ({**IMAGE, "label": SPECIES, "height": 65_536}, "preprocessing height is 65536"),
        ({**TEXT, "alphabet": "aa"}, "preprocessing alphabet is 'aa'"),
        ({**TEXT, "context": 0}, "preprocessing context is 0"),
        ([], "preprocessing is []"),
    ],
)
def test_bad_pictures_and_texts_name_the_field(data: Any, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_preprocessing(data)
    assert said in caught.value.sentence
