"""Convolutions by tiles: equal to torch's own to rounding, forward and backward."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from labelweave.nn import winograd as module
from labelweave.nn.winograd import Conv3x3, winograd


def images(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("m", "height", "width"), [(2, 2, 2), (2, 8, 12), (4, 4, 4), (4, 8, 12)])
def test_tiles_give_the_direct_convolution_and_its_gradients(monkeypatch, m, height, width):
    monkeypatch.setattr(module, "_TILES_AT_ONCE", 1)  # of 2 x 2 outputs, two images and then one
    x, weight = images(3, 5, height, width), images(7, 5, 3, 3)
    weights_of_outputs = images(3, 7, height, width)
    found = []
    for convolve in (lambda *a: F.conv2d(*a, padding=1), lambda *a: winograd(*a, m)):
        leaves = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
        out = convolve(*leaves)
        (out * weights_of_outputs).sum().backward()
        found.append([out.detach(), *(leaf.grad for leaf in leaves)])
    for direct, tiled in zip(*found, strict=True):
        assert tiled.shape == direct.shape
        torch.testing.assert_close(tiled, direct, rtol=1e-9, atol=1e-9)


def test_gradients_are_those_of_differences():
    x = images(1, 2, 4, 4).requires_grad_()
    weight = images(2, 2, 3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: winograd(a, b, 4), (x, weight))


@pytest.mark.parametrize(("channels", "side", "tiled"), [(64, 8, 4), (256, 2, 2), (128, 6, None)])
def test_in_single_precision_the_layer_differs_by_rounding(monkeypatch, channels, side, tiled):
    asked = []
    monkeypatch.setattr(module, "winograd", lambda x, w, m: asked.append(m) or winograd(x, w, m))
    layer = Conv3x3(channels, channels)
    x = images(32, channels, side, side).float()
    with torch.no_grad():
        trained, predicted = layer.train()(x), layer.eval()(x)
    assert asked == ([] if tiled is None else [tiled])
    exact = F.conv2d(x.double(), layer.weight.double(), padding=1)
    assert (trained - exact).abs().max() < 5e-5 * exact.abs().max()
    assert torch.equal(predicted, F.conv2d(x, layer.weight, padding=1))


def test_maps_of_one_place_see_the_middle_of_the_kernels():
    layer = Conv3x3(3, 4).train()
    x = images(5, 3, 1, 1).float()
    out = layer(x)
    torch.testing.assert_close(out, F.conv2d(x, layer.weight, padding=1))
    out.sum().backward()
    edge = layer.weight.grad.clone()
    edge[:, :, 1, 1] = 0
    assert layer.weight.grad[:, :, 1, 1].abs().min() > 0
    assert not edge.any()


def test_few_rows_and_half_precision_go_the_direct_way(monkeypatch):
    monkeypatch.setattr(module, "winograd", None)  # would fail
    layer = Conv3x3(128, 128).train()
    assert layer(torch.zeros(1, 128, 4, 4)).shape == (1, 128, 4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(torch.zeros(64, 128, 4, 4)).dtype == torch.bfloat16
    assert layer.bfloat16()(torch.zeros(64, 128, 4, 4).bfloat16()).dtype == torch.bfloat16
