"""Augmentation on batches of tensors, against Pillow on single images, and its random numbers."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from labelweave.exceptions import InputError
from labelweave.nn import augment as aug
from labelweave.nn.randomness import forked_rng

Image = pytest.importorskip("PIL.Image")
from PIL import ImageEnhance, ImageFilter  # noqa: E402


def photographs(n=4, height=16, width=16, seed=0):
    """Smooth random images: bytes (n, height, width, 3)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (n, 6, 6, 3), dtype=np.uint8)
    return np.stack(
        [np.asarray(Image.fromarray(one).resize((width, height), Image.BICUBIC)) for one in coarse]
    )


def tensor(images):
    return torch.from_numpy(images.copy()).permute(0, 3, 1, 2).float() / 255


def levels(x):
    """A tensor as Pillow would hold it."""
    return x.mul(255).round().clamp(0, 255).permute(0, 2, 3, 1).numpy()


def near(actual, expected, most):
    worst = np.abs(levels(actual) - np.stack(expected).astype(float)).max()
    assert worst <= most


@pytest.mark.parametrize(("n_in", "n_out"), [(16, 16), (16, 9), (9, 16), (16, 33)])
def test_crop_and_resize_are_pillows(n_in, n_out):
    images = photographs(height=n_in, width=n_in)
    start = torch.tensor([0.0, 1.3, 2.75, 3.0])
    length = torch.tensor([n_in * 1.0, 5.5, 4.25, 6.0])
    weights = aug.resize_weights(start, length, n_in, n_out)
    resized = aug.resample(tensor(images), weights, weights)
    expected = []
    for image, first, long in zip(images, start.tolist(), length.tolist(), strict=True):
        box = (first, first, first + long, first + long)
        expected.append(Image.fromarray(image).resize((n_out, n_out), Image.BILINEAR, box=box))
    near(resized, [np.asarray(image) for image in expected], 2)
    assert torch.allclose(weights.sum(dim=2), torch.ones(4, n_out))


@pytest.mark.parametrize("factor", [0.3, 1.0, 1.4])
@pytest.mark.parametrize("what", ["brightness", "contrast", "saturation"])
def test_colours_are_pillows(what, factor):
    images = photographs()
    enhancer = {"saturation": "Color"}.get(what, what.capitalize())
    adjusted = getattr(aug, f"adjust_{what}")(tensor(images), torch.full((4,), factor))
    expected = [
        np.asarray(getattr(ImageEnhance, enhancer)(Image.fromarray(image)).enhance(factor))
        for image in images
    ]
    near(adjusted, expected, 2)


def test_greyscale_is_pillows():
    images = photographs()
    expected = [np.asarray(Image.fromarray(i).convert("L").convert("RGB")) for i in images]
    near(aug.greyscale(tensor(images)), expected, 1)


@pytest.mark.parametrize("turn", [0.0, 1 / 3, -0.25, 0.5])
def test_hue_is_pillows(turn):
    images = photographs()
    expected = []
    for image in images:
        hue, saturation, value = Image.fromarray(image).convert("HSV").split()
        turned = (np.asarray(hue).astype(int) + round(turn * 255)) % 255
        parts = (Image.fromarray(turned.astype(np.uint8)), saturation, value)
        expected.append(np.asarray(Image.merge("HSV", parts).convert("RGB")))
    near(aug.adjust_hue(tensor(images), torch.full((4,), turn)), expected, 8)  # HSV in bytes


def test_a_third_of_a_turn_makes_red_green():
    red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    turned = aug.adjust_hue(red, torch.tensor([1 / 3])).ravel()
    assert torch.allclose(turned, torch.tensor([0.0, 1.0, 0.0]), atol=1e-5)


def test_blur_is_pillows():
    images = photographs()
    sigma = torch.full((4,), 1.5)
    weights = aug.blur_weights(sigma, 16)
    blurred = aug.resample(tensor(images), weights, weights)
    expected = [
        np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(1.5))) for image in images
    ]
    # Pillow's own is three box filters, near a Gaussian; SciPy has the Gaussian itself.
    assert np.abs(levels(blurred) - np.stack(expected)).mean() < 2
    exact = gaussian_filter(images.astype(float), (0, 1.5, 1.5, 0), mode="nearest", truncate=8)
    near(blurred, exact, 1)
    near(aug.resample(tensor(images), *[aug.blur_weights(sigma * 1e-2, 16)] * 2), images, 1)


def test_a_flip_is_a_mirror_image():
    images = photographs()
    flip = aug.make_augment({"flip": 1.0}).train()
    near(flip(tensor(images)), images[:, :, ::-1], 0.5)
    crop = aug.make_augment({"flip": 1.0, "crop": 0.999999}).train()
    near(crop(tensor(images)), images[:, :, ::-1], 1)


def test_a_crop_keeps_its_share_of_the_area(monkeypatch):
    seen = []
    real = aug.resize_weights

    def noted(start, length, n_in, n_out):
        seen.append((start.clone(), length.clone(), n_in))
        return real(start, length, n_in, n_out)

    monkeypatch.setattr(aug, "resize_weights", noted)
    augment = aug.make_augment({"crop": 0.3, "ratio": 2.0}).train()
    with forked_rng(0):
        augment(torch.rand(500, 3, 20, 10))
    (top, high, height), (left, wide, width) = seen
    share = high * wide / (height * width)
    assert 0.25 < share.min() < 0.4
    assert share.max() <= 1
    assert abs(share.mean() - 0.65) < 0.05
    for start, length, side in ((top, high, height), (left, wide, width)):
        assert start.min() >= 0
        assert (start + length).max() <= side + 1e-4
    tilt = (wide / width) / (high / height)
    assert tilt.max() <= 2.001
    assert tilt.min() >= 0.499


def test_how_often_things_happen():
    grey = aug.make_augment({"grey": 0.3, "flip": 0.0}).train()
    x = tensor(photographs(1)).expand(2000, -1, -1, -1)
    with forked_rng(0):
        changed = grey(x)
    lost = (changed[:, 0] - changed[:, 1]).abs().amax(dim=(1, 2)) < 1e-6
    assert abs(lost.float().mean() - 0.3) < 0.04
    assert torch.equal(changed[~lost], x[~lost])


def test_seeded_and_only_in_training():
    x = tensor(photographs(8))
    augment = aug.make_augment("strong")
    with forked_rng(3):
        first = augment.train()(x)
    with forked_rng(3):
        second = augment(x)
    with forked_rng(4):
        third = augment(x)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(augment.eval()(x), x)
    assert first.min() >= -1e-5
    assert first.max() <= 1 + 1e-5
    assert not torch.equal(first[0], first[1])


def test_each_image_is_changed_by_itself():
    """The first rows of a batch do not depend on the others, given their random numbers."""
    x = tensor(photographs(8))
    augment = aug.make_augment("strong").train()
    with forked_rng(0):
        at_once = augment(x)
    other = x.clone()
    other[4:] = 0.5
    with forked_rng(0):
        assert torch.equal(augment(other)[:4], at_once[:4])


def test_settings_are_checked():
    with pytest.raises(InputError, match="no augmentation 'wild'"):
        aug.make_augment("wild")
    with pytest.raises(InputError, match="no setting 'spin'"):
        aug.make_augment({"spin": 1})
    with pytest.raises(InputError, match="crop"):
        aug.make_augment({"crop": 0.0})
    assert aug.make_augment(None) is None
