"""Random changes of batches of images: crop and resize, flip, colours, greyscale, blur.

All random numbers of a batch are one matrix, drawn from torch's generator. Crop, resize, flip and
blur are products with a matrix for the rows and one for the columns of each image, by the same
weights as Pillow's bilinear resizing; colours follow Pillow's enhancers.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from labelweave.exceptions import InputError
from labelweave.nn.process_rows import draw_rows

_GREY = (0.299, 0.587, 0.114)  # of ITU-R 601-2, as in Pillow


@dataclass(frozen=True)
class AugmentSettings:
    """Settings of the augmentation.

    Parameters
    ----------
    crop : float, default=1.0
        The smallest share of the area of an image that a crop keeps; 1: no crop.
    ratio : float, default=4/3
        Largest ratio of the longer side of a crop to the shorter one.
    flip : float, default=0.5
        Probability of a mirror image.
    brightness, contrast, saturation : float, default=0.0
        Largest deviation of the factor from 1.
    hue : float, default=0.0
        Largest rotation of the hue, in turns.
    jitter : float, default=0.8
        Probability that brightness, contrast, saturation and hue are changed.
    grey : float, default=0.0
        Probability that an image is turned into greyscale.
    blur : float, default=0.0
        Probability of a Gaussian blur, of `sigma` pixels in an image of 32 (and more in larger
        ones, in proportion).
    sigma : (float, float), default=(0.1, 0.6)
    """

    crop: float = 1.0
    ratio: float = 4 / 3
    flip: float = 0.5
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    jitter: float = 0.8
    grey: float = 0.0
    blur: float = 0.0
    sigma: tuple[float, float] = (0.1, 0.6)


PRESETS: dict[str, AugmentSettings | None] = {
    "none": None,
    "light": AugmentSettings(crop=0.6),
    "strong": AugmentSettings(
        crop=0.2, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, grey=0.2, blur=0.5
    ),
}
"""Settings by name; "strong" is what contrastive learning of images uses (MoCo v2)."""


def make_augment(augment: Any) -> Augment | None:
    """An augmentation from a name, settings, or a dict of settings; None for no augmentation.

    >>> make_augment("none") is None, make_augment({"flip": 1.0}).settings.flip
    (True, 1.0)
    """
    if isinstance(augment, str):
        if augment not in PRESETS:
            raise InputError(f"there is no augmentation {augment!r}: choose {', '.join(PRESETS)}")
        augment = PRESETS[augment]
    if augment is None:
        return None
    if isinstance(augment, dict):
        known = asdict(AugmentSettings())
        if wrong := sorted(set(augment) - set(known)):
            raise InputError(f"augment has no setting {wrong[0]!r}: choose {', '.join(known)}")
        augment = replace(AugmentSettings(), **augment)
    return Augment(augment)


class Augment(nn.Module):
    """Random changes of images (n, 3, height, width) with values from 0 to 1, in training only.

    Examples
    --------
    >>> augment = Augment(PRESETS["strong"])
    >>> augment(torch.rand(4, 3, 8, 8)).shape
    torch.Size([4, 3, 8, 8])
    """

    def __init__(self, settings: AugmentSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or AugmentSettings()
        if not 0 < self.settings.crop <= 1:
            raise InputError(f"crop is a share of the area, not {self.settings.crop}")

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        draws = draw_rows(x.new_empty((len(x), 13)), Tensor.uniform_).unbind(1)
        x = self._crop_and_flip(x, *draws[:5])
        x = self._colour(x, *draws[5:11])
        s = self.settings
        if s.blur > 0:
            low, high = s.sigma
            sigma = (low + (high - low) * draws[11]) * x.shape[2] / 32
            # No blur is a sigma so small that the weights are those of the pixel itself.
            sigma = torch.where(draws[12] < s.blur, sigma, 1e-2)
            x = resample(x, blur_weights(sigma, x.shape[2]), blur_weights(sigma, x.shape[3]))
        return x

    def _crop_and_flip(
        self, x: Tensor, area: Tensor, shape: Tensor, top: Tensor, left: Tensor, flip: Tensor
    ) -> Tensor:
        """A random part of each image, resized to the size of the image."""
        s = self.settings
        height, width = x.shape[2:]
        flipped = flip < s.flip
        if s.crop == 1:
            return torch.where(flipped[:, None, None, None], x.flip(3), x) if s.flip else x
        share = s.crop + (1 - s.crop) * area
        # A large crop cannot be elongated: neither side may be longer than that of the image.
        steepest = torch.minimum(-share.log(), share.new_tensor(math.log(s.ratio)))
        tilt = torch.exp((2 * shape - 1) * steepest / 2)
        high = (share.sqrt() / tilt).clamp(max=1) * height
        wide = (share.sqrt() * tilt).clamp(max=1) * width
        rows = resize_weights(top * (height - high), high, height, height)
        columns = resize_weights(left * (width - wide), wide, width, width)
        columns = torch.where(flipped[:, None, None], columns.flip(1), columns)
        return resample(x, rows, columns)

    def _colour(self, x: Tensor, changed: Tensor, *draws: Tensor) -> Tensor:
        s = self.settings
        if s.jitter > 0:
            is_changed = changed < s.jitter
            changes = (
                (adjust_brightness, s.brightness),
                (adjust_contrast, s.contrast),
                (adjust_saturation, s.saturation),
            )
            for (adjust, most), draw in zip(changes, draws, strict=False):
                if most > 0:
                    x = adjust(x, torch.where(is_changed, 1 + most * (2 * draw - 1), 1.0))
            if s.hue > 0:
                turn = torch.where(is_changed, s.hue * (2 * draws[3] - 1), 0.0)
                x = adjust_hue(x, turn)
        if s.grey > 0:
            x = torch.where((draws[4] < s.grey)[:, None, None, None], greyscale(x), x)
        return x


# -- places ----------------------------------------------------------------------------


def resample(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Combine the rows and the columns of each image by weights of that image.

    `rows` has shape (n, new height, height) and `columns` (n, new width, width).
    """
    return rows.unsqueeze(1) @ x @ columns.transpose(1, 2).unsqueeze(1)


def resize_weights(start: Tensor, length: Tensor, n_in: int, n_out: int) -> Tensor:
    """Weights of bilinear resizing, from a range of pixels to `n_out`: (n, n_out, n_in).

    As in Pillow, the weights are a triangle around the source position of a new pixel, wider if
    the image becomes smaller. Pixels beside the range contribute too, if the image has them.

    >>> resize_weights(torch.tensor([1.0]), torch.tensor([2.0]), 4, 2)[0]
    tensor([[0., 1., 0., 0.],
            [0., 0., 1., 0.]])
    """
    scale = (length / n_out)[:, None]
    centre = start[:, None] + (torch.arange(n_out, device=start.device) + 0.5) * scale
    support = scale.clamp(min=1)
    pixel = torch.arange(n_in, device=start.device) + 0.5
    apart = (pixel - centre.unsqueeze(2)).abs() / support.unsqueeze(2)
    weights = (1 - apart).clamp(min=0)
    return weights / weights.sum(dim=2, keepdim=True).clamp(min=1e-9)


def blur_weights(sigma: Tensor, n: int) -> Tensor:
    """Weights of a Gaussian blur of each image, (n_images, n, n); edge pixels are repeated.

    >>> blur_weights(torch.tensor([1e-2]), 2)[0]
    tensor([[1., 0.],
            [0., 1.]])
    """
    place = torch.arange(n, device=sigma.device)
    far = n  # pixels beyond an edge have the colour of the edge
    source = torch.arange(-far, n + far, device=sigma.device)
    apart = (source - place[:, None]).to(sigma.dtype)
    weights = torch.exp(-0.5 * (apart / sigma[:, None, None]) ** 2)
    inner = weights[:, :, far : far + n].clone()
    inner[:, :, 0] += weights[:, :, :far].sum(dim=2)
    inner[:, :, -1] += weights[:, :, far + n :].sum(dim=2)
    return inner / inner.sum(dim=2, keepdim=True)


# -- colours ---------------------------------------------------------------------------


def greyscale(x: Tensor) -> Tensor:
    """The brightness in all three colours."""
    return _lightness(x).expand_as(x)


def adjust_brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Darker below a factor of 1 and lighter above."""
    return (x * factor[:, None, None, None]).clamp(0, 1)


def adjust_contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Nearer to the mean brightness of the image below 1, farther from it above."""
    mean = _lightness(x).mean(dim=(2, 3), keepdim=True)
    return (mean + (x - mean) * factor[:, None, None, None]).clamp(0, 1)


def adjust_saturation(x: Tensor, factor: Tensor) -> Tensor:
    """Nearer to greyscale below 1, farther from it above."""
    grey = _lightness(x)
    return (grey + (x - grey) * factor[:, None, None, None]).clamp(0, 1)


def adjust_hue(x: Tensor, turn: Tensor) -> Tensor:
    """Colours turned around the circle of hues: by 1/3, red becomes green."""
    high, low = x.amax(dim=1, keepdim=True), x.amin(dim=1, keepdim=True)
    chroma = high - low
    red, green, blue = (x - low).div(chroma.clamp(min=1e-12)).split(1, dim=1)
    # Where on the circle of six the colour is: between which of the three, by the highest.
    sixth = torch.where(
        x[:, :1] == high,
        green - blue,
        torch.where(x[:, 1:2] == high, 2 + blue - red, 4 + red - green),
    )
    hue = sixth + 6 * turn[:, None, None, None]
    offsets = x.new_tensor([5.0, 3.0, 1.0])[None, :, None, None]
    k = (offsets + hue) % 6
    return high - chroma * torch.minimum(k, 4 - k).clamp(0, 1)


def _lightness(x: Tensor) -> Tensor:
    red, green, blue = x.split(1, dim=1)
    return _GREY[0] * red + _GREY[1] * green + _GREY[2] * blue
