"""Residual networks: torchvision's names and shapes, its weight files, and what the stems do."""

import pytest
import torch
from safetensors.torch import save_file

from labelweave.exceptions import InputError
from labelweave.nn.resnet import ResNetModule, load_weights, read_weights


def expected_shapes(depth):
    """Every name and shape of torchvision's network, written out by rule."""
    blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth]
    shapes = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    n_in = 64
    for stage, n_blocks in enumerate(blocks):
        width = 64 * 2**stage
        for b in range(n_blocks):
            name = f"layer{stage + 1}.{b}"
            kernels = [(width, n_in, 3, 3), (width, width, 3, 3)]
            n_out = width
            if depth == 50:
                n_out = 4 * width
                kernels = [(width, n_in, 1, 1), (width, width, 3, 3), (n_out, width, 1, 1)]
            for k, shape in enumerate(kernels, 1):
                shapes[f"{name}.conv{k}.weight"] = shape
                shapes |= norm(f"{name}.bn{k}", shape[0])
            if n_in != n_out or (b == 0 and stage > 0):
                shapes[f"{name}.downsample.0.weight"] = (n_out, n_in, 1, 1)
                shapes |= norm(f"{name}.downsample.1", n_out)
            n_in = n_out
    return shapes | {"fc.weight": (1000, n_in), "fc.bias": (1000,)}


def norm(name, width):
    vectors = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{part}": (width,) for part in vectors} | {f"{name}.num_batches_tracked": ()}


@pytest.mark.parametrize(
    ("depth", "n_entries", "n_parameters"), [(18, 122, 11_689_512), (50, 320, 25_557_032)]
)
def test_names_and_shapes_are_those_of_torchvision(depth, n_entries, n_parameters):
    network = ResNetModule(depth, n_classes=1000)
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert shapes == expected_shapes(depth)
    assert len(shapes) == n_entries
    assert sum(p.numel() for p in network.parameters()) == n_parameters  # as published
    assert "layer4.1.bn2.running_var" in shapes
    assert list(shapes)[:2] == ["conv1.weight", "bn1.weight"]


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
def test_a_weight_file_loads_as_it_is(tmp_path, ending):
    source = ResNetModule(18, width=4, n_classes=7)
    path = tmp_path / f"resnet{ending}"
    if ending == ".pth":
        torch.save(source.state_dict(), path)
    else:
        save_file(source.state_dict(), path)
    network = ResNetModule(18, width=4)  # no last layer: that of the file is left out
    load_weights(network, read_weights(path), str(path))
    x = torch.rand(2, 3, 32, 32)
    expected = source.eval().maps(x).mean(dim=(2, 3))
    assert torch.equal(network.eval()(x), expected)
    complete = ResNetModule(18, width=4, n_classes=7)
    load_weights(complete, read_weights(path), str(path))
    assert torch.equal(complete.eval()(x), source(x))


def test_old_files_and_wrapped_ones_load_too(tmp_path):
    source = ResNetModule(18, width=4)
    old = {n: v for n, v in source.state_dict().items() if not n.endswith("num_batches_tracked")}
    torch.save({"state_dict": {f"module.{n}": v for n, v in old.items()}}, tmp_path / "a.pth")
    network = ResNetModule(18, width=4)
    load_weights(network, read_weights(tmp_path / "a.pth"), "a.pth")
    assert torch.equal(network.conv1.weight, source.conv1.weight)


def test_other_weights_are_refused(tmp_path):
    with pytest.raises(InputError, match="of another network"):
        load_weights(ResNetModule(18, width=4), ResNetModule(34, width=4).state_dict(), "file")
    with pytest.raises(InputError, match="stem='imagenet'"):
        small = ResNetModule(18, width=4, stem="small")
        load_weights(small, ResNetModule(18, width=4).state_dict(), "file")


class Harmful:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of a weight file was run')",))


def test_files_without_weights_are_refused_and_their_code_is_never_run(tmp_path):
    (tmp_path / "text.pth").write_text("no weights")
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save({"conv1.weight": Harmful()}, tmp_path / "harmful.pth")
    for name, message in {
        "none": "no file of weights",
        "text": "read safely",
        "list": "but list",
        "harmful": "read safely",
    }.items():
        with pytest.raises(InputError, match=message):
            read_weights(tmp_path / f"{name}.pth")


@pytest.mark.parametrize(("stem", "side"), [("imagenet", 1), ("pooled", 2), ("small", 4)])
def test_stems_keep_more_or_less_of_a_small_image(stem, side):
    network = ResNetModule(18, stem=stem, width=4)
    assert network.maps(torch.rand(1, 3, 32, 32)).shape == (1, 32, side, side)


@pytest.mark.parametrize("n_pixels", [1, 5, 33])
def test_any_size_goes_through(n_pixels):
    network = ResNetModule(18, stem="small", width=4).eval()
    assert network(torch.rand(2, 3, n_pixels, n_pixels)).shape == (2, 32)


def test_settings_are_checked():
    with pytest.raises(InputError, match="ResNet-19"):
        ResNetModule(19)
    with pytest.raises(InputError, match="stem"):
        ResNetModule(18, stem="large")
