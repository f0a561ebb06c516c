"""A network for images from an ONNX file: its settings, and running it with ONNX Runtime."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from labelweave.exceptions import InputError, in_one_line, require
from labelweave.nn.image_network import IMAGENET_MEAN, IMAGENET_STD

__all__ = ["OnnxNetwork", "OnnxSession"]

_SIZE = 224  # pixels of a side, where the file leaves it open
_FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class OnnxNetwork(BaseEstimator):
    """Settings of a network in an ONNX file.

    Parameters
    ----------
    size : int, optional
        Pixels of a side; by default those of the file, or 224 if it leaves them open.
    mean, std : three floats, optional
        The colours, as shares of 255, that become 0, and the deviation that becomes 1; by default
        those of ImageNet.
    """

    def __init__(self, size: int | None = None, *, mean: Any = None, std: Any = None) -> None:
        self.size = size
        self.mean = mean
        self.std = std

    def row_size(self) -> int:
        """Numbers in the largest layer of one image, by a rough estimate."""
        return 32 * (self.size or _SIZE) ** 2


class OnnxSession:
    """A network of images (n, 3, size, size) to vectors (n, n_out), run by ONNX Runtime.

    Nothing but the bytes of the file is read: weights in other files are refused.
    """

    def __init__(self, settings: OnnxNetwork, content: bytes, source: str) -> None:
        runtime = require("onnxruntime", "export")
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # what is wrong is said below
        try:
            self._session = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has an error class of its own for each cause
            raise InputError(
                f"{source} is not a file that ONNX Runtime can use: {in_one_line(error)}"
            ) from None
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        shape = inputs[0].shape if len(inputs) == 1 else []
        if len(shape) != 4 or shape[1] not in (3, None) or inputs[0].type not in _FLOATS:
            raise InputError(
                f"{source} is no network for images: it must have one input of the shape "
                "(images, 3, height, width)"
            )
        self._input, self._dtype = inputs[0].name, _FLOATS[inputs[0].type]
        vectors = [output.name for output in outputs if len(output.shape) == 2]
        if len(vectors) != 1:
            raise InputError(
                f"{source} has {len(vectors)} outputs with one vector per image: it must have one"
            )
        self._output = vectors[0]
        self._rows = shape[0] if isinstance(shape[0], int) else None
        fixed = [side for side in shape[2:] if isinstance(side, int)]
        self.size = settings.size or (fixed[0] if fixed else _SIZE)
        if any(side != self.size for side in fixed):
            raise InputError(
                f"{source} takes images of {shape[2]} x {shape[3]} pixels, not of {self.size} x "
                f"{self.size}"
            )
        self._mean = _colours(settings.mean, IMAGENET_MEAN)
        self._std = _colours(settings.std, IMAGENET_STD)
        blank = torch.zeros((1, 3, self.size, self.size), dtype=torch.uint8)
        try:
            self.n_out = self(blank).shape[1]
        except Exception as error:
            raise InputError(
                f"{source} does not work with images of {self.size} x {self.size} pixels: "
                f"{in_one_line(error)}"
            ) from None

    def __call__(self, x: Tensor) -> Tensor:
        """Return one vector per image of bytes (n, 3, size, size)."""
        pixels = ((x.float() / 255 - self._mean) / self._std).numpy().astype(self._dtype)
        step = self._rows or len(pixels)
        parts = []
        for start in range(0, len(pixels), step):
            part = pixels[start : start + step]
            missing = step - len(part)
            padded = np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)])
            (vectors,) = self._session.run([self._output], {self._input: padded})
            parts.append(vectors[: len(part)])
        return torch.from_numpy(np.concatenate(parts).astype(np.float32))


def _colours(values: Any, default: tuple[float, ...]) -> Tensor:
    numbers = default if values is None else tuple(float(value) for value in values)
    if len(numbers) != 3 or not all(math.isfinite(n) for n in numbers):
        raise InputError(f"mean and std of an ONNX file must be three numbers, not {values!r}")
    return torch.tensor(numbers).view(3, 1, 1)
