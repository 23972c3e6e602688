"""Pictures that are decoded already: every value less a mean, over a scale, in the order rows, columns, channels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.common.errors import DatasetError
from services.common.learning.parameters import Floats
from services.common.learning.preprocessing.labels import Label, read_label
from services.common.learning.preprocessing.values import DATA_ROW
from services.common.learning.shapes import INPUTS_MAX
from services.common.learning.specification import Specification, check_fields, real, refuse, whole

PIXEL_MAX = 255.0
PIXEL_SCALE_MIN, PIXEL_SCALE_MAX = 1e-3, 1e6


@dataclass(frozen=True, slots=True)
class Image:
    """Pictures of one size; `mean` and `scale` are of pixel values 0..255."""

    height: int
    width: int
    channels: int
    mean: float
    scale: float
    label: Label

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one picture."""
        return self.height, self.width, self.channels

    @property
    def inputs(self) -> int:
        """Numbers in a model's row."""
        return self.height * self.width * self.channels

    def transform(self, rows: Sequence[object]) -> Floats:
        """Pictures uint8[height, width, channels] as float32[n, inputs]; DatasetError names the one that is not so.

        A grey picture may come as uint8[height, width].
        """
        inputs = np.empty((len(rows), self.inputs), dtype=np.float32)
        for i, picture in enumerate(rows):
            inputs[i] = scaled_pixels(self._pixels(i, picture).reshape(-1), self.mean, self.scale)
        return inputs

    def _pixels(self, i: int, picture: object) -> np.ndarray:
        shapes = (self.shape, self.shape[:2]) if self.channels == 1 else (self.shape,)
        if isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape in shapes:
            return picture
        found = f"{picture.dtype}{list(picture.shape)}" if isinstance(picture, np.ndarray) else type(picture).__name__
        raise DatasetError(
            f"Picture {i + 1} is {found}; needed: uint8{list(self.shape)}. Decode and resize it first.", code=DATA_ROW
        )


def scaled_pixels(pixels: np.ndarray, mean: float, scale: float) -> Floats:
    """(pixels - mean) / scale in float32, of any shape: the same wherever pictures are scaled."""
    scaled: Floats = (pixels.astype(np.float32) - np.float32(mean)) / np.float32(scale)
    return scaled


def read_image(data: Specification) -> Image:
    """A picture's preprocessing from JSON; SettingsError names a bad field."""
    check_fields("preprocessing", data, ("version", "kind", "height", "width", "channels", "mean", "scale", "label"))
    height = whole("preprocessing height", data.get("height"), 1, INPUTS_MAX)
    width = whole("preprocessing width", data.get("width"), 1, INPUTS_MAX)
    channels = whole("preprocessing channels", data.get("channels"), 1, 3)
    if channels == 2:
        raise refuse("preprocessing channels", channels, "1 or 3")
    if height * width * channels > INPUTS_MAX:
        raise refuse("preprocessing height", height, f"height x width x channels up to {INPUTS_MAX}")
    mean, scale = read_pixel_scaling("preprocessing", data)
    return Image(height, width, channels, mean, scale, read_label(data))


def read_pixel_scaling(where: str, data: Specification) -> tuple[float, float]:
    """`mean` and `scale` of values 0..255."""
    mean = real(f"{where} mean", data.get("mean"), 0.0, PIXEL_MAX)
    return mean, real(f"{where} scale", data.get("scale"), PIXEL_SCALE_MIN, PIXEL_SCALE_MAX)
