"""What a trained model says of raw rows: the likeliest classes, or a number in the unit of the label. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from services.common.errors import CheckpointError
from services.common.learning.models import build_model
from services.common.learning.parameters import Floats
from services.common.learning.preprocessing import Category, Preprocessing
from services.common.learning.specification import Specification

TOP = 5


def predict(
    parameters: Floats, spec: Specification, preprocessing: Preprocessing, rows: Sequence[object], top: int = TOP
) -> list[dict[str, Any]]:
    """One JSON-able answer a row: `{"top": [{"label", "probability"}, ...]}`, likeliest first, or `{"value": number}`.

    `parameters` (float32[n]) are those of a checkpoint. DatasetError names a row that cannot be used, SettingsError a
    field of `spec`, and CheckpointError says that the parameters are of another model.
    """
    label = preprocessing.label
    model = build_model(spec, preprocessing.inputs, label.classes)
    if len(parameters) != model.n_parameters:
        raise CheckpointError(
            f"The checkpoint has {len(parameters)} parameters, but its model has {model.n_parameters}: it belongs to "
            "other data or another model; choose the run's own."
        )
    answers = model.predict(parameters, preprocessing.transform(rows))
    if not isinstance(label, Category):
        return [{"value": label.answer(answer)} for answer in answers[:, 0]]
    order = np.argsort(-answers, axis=1, kind="stable")[:, :top]
    return [
        {"top": [{"label": label.answer(int(i)), "probability": float(row[i])} for i in places]}
        for row, places in zip(answers, order, strict=True)
    ]
