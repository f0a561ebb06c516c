"""EfficientNet-lite: the shapes of the published weights, and the package's own forward pass."""

import pytest
import torch

from labelweave.exceptions import InputError
from labelweave.nn.efficientnet import LITE_SIZES, EfficientNetLiteModule
from labelweave.nn.image_network import EfficientNetLite
from labelweave.nn.pretrained import PRETRAINED, is_installed, pretrained_file
from labelweave.nn.resnet import read_weights


@pytest.mark.parametrize(
    ("variant", "n_entries", "n_parameters"),
    [(0, 296, 4_652_008), (1, 386, 5_416_680), (2, 386, 6_092_072)],
)
def test_the_sizes_are_the_published_ones(variant, n_entries, n_parameters):
    network = EfficientNetLiteModule(variant, n_classes=1000)
    assert len(network.state_dict()) == n_entries
    assert sum(p.numel() for p in network.parameters()) == n_parameters
    with pytest.raises(InputError, match="lite3"):
        EfficientNetLiteModule(3)


@pytest.mark.parametrize("variant", [0, 1, 2])
def test_it_equals_the_forward_pass_of_the_package(variant):
    reference = pytest.importorskip(
        "efficientnet_lite_pytorch", reason="the reference network is not installed"
    )
    name = f"efficientnet-lite{variant}"
    torch.manual_seed(0)
    if is_installed(name):
        weights = read_weights(pretrained_file(name))
    else:  # random weights compare the computation as well
        weights = EfficientNetLiteModule(variant, n_classes=1000).state_dict()
        for key, value in weights.items():
            if key.endswith("running_var"):
                value.uniform_(0.5, 2)
    ours = EfficientNetLiteModule(variant, n_classes=1000).eval()
    ours.load_state_dict(weights)
    for size in (LITE_SIZES[variant], 97):  # odd sizes are padded on both sides
        theirs = reference.EfficientNet.from_name(name, image_size=size).eval()
        theirs.load_state_dict(weights)
        x = torch.randn(2, 3, size, size)
        with torch.no_grad():
            expected = theirs(x)
            assert (ours(x) - expected).abs().max() < 1e-5
            assert (ours.maps(x) - theirs.extract_features(x)).abs().max() < 1e-5
        assert expected.std() > 1e-3


@pytest.mark.parametrize("name", PRETRAINED)
def test_the_installed_weights_become_those_of_the_network(name):
    if not is_installed(name):
        pytest.skip(f"the weights of {name} are not installed")
    weights = read_weights(pretrained_file(name))
    backbone = EfficientNetLite(int(name[-1]))()
    assert torch.equal(backbone.network._conv_head.weight, weights["_conv_head.weight"])
    white = torch.full((1, 3, 4, 4), 255, dtype=torch.uint8)
    assert torch.allclose(backbone.eval().pixels(white), torch.tensor(1.0))  # (255 - 127) / 128


def test_the_lowest_resolution_is_the_last_stage():
    network = EfficientNetLiteModule(0)
    assert network._blocks[network.last_resolution]._depthwise_conv.stride == (2, 2)
    assert len(network.last_layers()) == 5 + 2
