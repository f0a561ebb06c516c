"""Encoders of images: their networks and files, the cache, saving, and what they refuse."""

import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone

import labelweave as lw
from labelweave.exceptions import InputError, MissingExtraError
from labelweave.images import EfficientNetLite, ImageClassifier, ImageEncoder, ResNet
from labelweave.nn.efficientnet import EfficientNetLiteModule
from labelweave.nn.pretrained import is_installed
from labelweave.nn.resnet import ResNetModule

pytest.importorskip("PIL.Image")
needs_lite0 = pytest.mark.skipif(
    not is_installed("efficientnet-lite0"), reason="the weights of EfficientNet-lite0 are missing"
)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (12, 24, 24, 3), dtype=np.uint8)


def onnx_file(path, size=16, rows="n", pooled=True):
    """A network that takes the mean of each colour, or one that returns maps."""
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("Neg", ["x"], ["y"])]
    shape = [rows, 3, size, size]
    if pooled:
        nodes = [make.make_node("GlobalAveragePool", ["x"], ["maps"])]
        nodes.append(make.make_node("Flatten", ["maps"], ["y"]))
        shape = [rows, 3]
    graph = make.make_graph(
        nodes,
        "network",
        [make.make_tensor_value_info("x", kind, [rows, 3, size, size])],
        [make.make_tensor_value_info("y", kind, shape)],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def expected_features(images, size):
    x = lw.Images(images, size=size).pixels() / 255
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return ((x - mean) / std).mean(axis=(1, 2))


@needs_lite0
def test_the_default_is_pretrained_and_its_model_folder_small(images, tmp_path, monkeypatch):
    encoder = ImageEncoder(cache=tmp_path / "cache").fit()
    assert encoder.settings_.size == 224
    features = encoder.transform(images)
    assert features.shape == (12, 1280)
    random = ImageEncoder("efficientnet-lite0", weights="random", cache=False).fit()
    assert random.checksum_ != encoder.checksum_
    labels = np.arange(24).reshape(12, 2) % 3 > 0
    model = ImageClassifier(lw.make("mlknn", k=1), encoder=encoder).fit(images, labels)
    model.save(tmp_path / "model")
    stored = sum(file.stat().st_size for file in (tmp_path / "model").rglob("*"))
    assert stored < 1_000_000  # the weights are 13 MB
    loaded = lw.load(tmp_path / "model")
    assert loaded.encoder_.checksum_ == encoder.checksum_
    assert np.array_equal(loaded.predict_proba(images), model.predict_proba(images))
    monkeypatch.setattr("labelweave.nn.pretrained.find_spec", lambda name: None)
    with pytest.raises(Exception, match=r"labelweave\[vision\]"):
        lw.load(tmp_path / "model")


def test_without_the_package_it_names_the_extra(images, monkeypatch):
    monkeypatch.setattr("labelweave.nn.pretrained.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"labelweave\[vision\]"):
        ImageClassifier().fit(images, np.eye(12)[:, :2])


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
def test_files_of_weights(images, tmp_path, ending):
    for name, module in (
        ("resnet18", ResNetModule(18, n_classes=5)),
        ("efficientnet-lite1", EfficientNetLiteModule(1, n_classes=5)),
    ):
        path = tmp_path / f"{name}{ending}"
        weights = module.state_dict()
        torch.save(weights, path) if ending == ".pth" else save_file(weights, path)
        encoder = ImageEncoder(name, weights=path, size=32, cache=False).fit()
        features = encoder.transform(images)
        network = encoder._network
        x = torch.from_numpy(lw.Images(images, size=32).pixels()).permute(0, 3, 1, 2)
        with torch.no_grad():
            maps = module.eval().maps(network.pixels(x))
        assert np.allclose(features, maps.mean(dim=(2, 3)), atol=1e-5)
    with pytest.raises(InputError, match="of another network"):
        ImageEncoder("resnet34", weights=tmp_path / f"resnet18{ending}").fit()


def test_a_resnet_by_name_reads_weights_of_imagenet_as_they_are(tmp_path):
    torch.save(ResNetModule(18, n_classes=1000).state_dict(), tmp_path / "resnet18.pth")
    encoder = ImageEncoder("resnet18", weights=tmp_path / "resnet18.pth", cache=False).fit()
    assert (encoder.settings_.size, encoder.settings_.stem) == (224, "imagenet")


@pytest.mark.parametrize("rows", ["n", 2])  # any number of images, or two at a time
def test_a_network_in_an_onnx_file(images, tmp_path, rows):
    path = onnx_file(tmp_path / "net.onnx", rows=rows)
    encoder = ImageEncoder(weights=path, cache=tmp_path / "cache").fit()
    expected = expected_features(images[:5], 16)
    assert np.allclose(encoder.transform(images[:5]), expected, atol=1e-5)
    labels = np.arange(24).reshape(12, 2) % 3 > 0
    model = ImageClassifier(lw.make("mlknn", k=1), encoder=encoder).fit(images, labels)
    model.save(tmp_path / "model")
    path.unlink()  # a saved model contains the network
    loaded = lw.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(images), model.predict_proba(images))
    scaled = ImageEncoder(weights=onnx_file(path), mean=(0, 0, 0), std=(1, 1, 1), cache=False)
    assert scaled.fit_transform(images).min() >= 0


def test_files_that_are_no_encoder_get_one_sentence(images, tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(InputError, match=r"text\.onnx is not a file that ONNX Runtime can use"):
        ImageEncoder(weights=tmp_path / "text.onnx").fit()
    with pytest.raises(InputError, match="no file of weights"):
        ImageEncoder(weights=tmp_path / "none.onnx").fit()
    maps = onnx_file(tmp_path / "maps.onnx", pooled=False)
    with pytest.raises(InputError, match="0 outputs with one vector per image"):
        ImageEncoder(weights=maps).fit()
    fixed = onnx_file(tmp_path / "fixed.onnx")
    with pytest.raises(InputError, match="16 x 16 pixels, not of 32"):
        ImageEncoder(weights=fixed, size=32).fit()
    with pytest.raises(InputError, match="leave out network"):
        ImageEncoder("resnet18", weights=fixed).fit()
    with pytest.raises(InputError, match="three numbers"):
        ImageEncoder(weights=fixed, mean=[1, 2]).fit()
    with pytest.raises(InputError, match="are those of an ONNX file"):
        ImageEncoder("resnet18", weights="random", mean=[0, 0, 0]).fit()
    with pytest.raises(InputError, match="needs weights"):
        ImageEncoder("resnet18").fit()


def test_copies_keep_the_network(images):
    encoder = ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False).fit()
    expected = encoder.transform(images)
    assert np.array_equal(pickle.loads(pickle.dumps(encoder)).transform(images), expected)
    assert np.array_equal(clone(encoder).fit_transform(images), expected)
    larger = ImageEncoder(weights=encoder, size=16, cache=False).fit()
    assert not np.allclose(larger.transform(images), expected)
    assert larger.checksum_ != encoder.checksum_


def test_features_of_tuned_layers_are_those_of_all_layers():
    settings = EfficientNetLite(0, size=8, weights=None, trainable="last", lr=1e-4)
    labels = np.arange(16).reshape(8, 2) % 3 > 0
    images = np.random.default_rng(0).integers(0, 256, (8, 8, 8), dtype=np.uint8)
    model = lw.make("mlp", encoder=settings, epochs=1, random_state=0).fit(images, labels)
    encoder = ImageEncoder(weights=model, cache=False).fit()
    assert encoder.settings_.trainable == "all"
    assert encoder.transform(images).shape == (8, 1280)
