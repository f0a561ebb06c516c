"""Networks for images as the encoder of methods: what they take, save, and refuse."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import labelweave as lw
from labelweave.calibration import CalibratedMultiLabel
from labelweave.data._catalog.digit_scenes import digit_scenes
from labelweave.dependent.mulsupcon_tasks import ContrastiveTask
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.export import export_torch
from labelweave.images import ImageClassifier, ImageEncoder, Images, ResNet
from labelweave.model_selection import cross_val_predict_proba
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.image_network import ImageBackbone
from labelweave.nn.resnet import ResNetModule
from labelweave.nn.task import StepInfo, make_plan

Image = pytest.importorskip("PIL.Image")
SMALL = ResNet(size=8, width=4)


@pytest.fixture(scope="module")
def scenes():
    return digit_scenes(60, 20)


def shades(n=60, side=8, seed=0):
    """Images whose left and right half are dark or light, and labels that say which is light."""
    random = np.random.default_rng(seed)
    Y = random.integers(0, 2, (n, 2))
    images = random.integers(0, 60, (n, side, side), dtype=np.uint8)
    images[:, :, : side // 2] += (Y[:, :1, None] * 150).astype(np.uint8)
    images[:, :, side // 2 :] += (Y[:, 1:, None] * 150).astype(np.uint8)
    return images, Y


def png_files(images, folder):
    """Save images; their paths."""
    paths = [str(folder / f"{k}.png") for k in range(len(images))]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image).save(path)
    return paths


METHODS = {
    "mlp": {},
    "asl": {},
    "ml-gcn": {"graph_hidden": (8,)},
    "c-tran": {"size": 8, "layers": 1, "heads": 2},
    "lamp": {"size": 8, "layers": 1, "heads": 2},
    "c-gmvae": {"label_encoder": (8,), "decoder": (8,), "embedding_size": 8, "latent_size": 4},
    "mulsupcon": {"pretrain_epochs": 1, "pretrain_steps": 2, "projection": 8},
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_take_images_and_are_saved(method, scenes, tmp_path):
    model = lw.make(method, encoder=SMALL, epochs=1, random_state=0, **METHODS[method])
    model.fit(scenes.X[:40], scenes.Y[:40])
    expected = model.predict_proba(scenes.X[40:])
    assert expected.shape == (40, 10)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(scenes.X[40:]), expected)
    alone = np.vstack([loaded.predict_proba(scenes.X[k : k + 1]) for k in range(40, 43)])
    assert np.allclose(alone, expected[:3], atol=1e-5)


@pytest.mark.parametrize("method", ["cls", "role", "co-teaching+", "wan"])
def test_methods_for_partial_labels_take_images(method, scenes, tmp_path):
    base = lw.make("mlp", encoder=SMALL, epochs=1)
    model = lw.make(method, base=base, random_state=0).fit(scenes.X[:40], scenes.Y[:40])
    expected = model.predict_proba(scenes.X[40:])
    model.save(tmp_path / "model")
    assert np.array_equal(lw.load(tmp_path / "model").predict_proba(scenes.X[40:]), expected)


def test_forms_of_images_are_the_same(tmp_path):
    images, Y = shades()
    paths = png_files(images, tmp_path)
    model = lw.make("mlp", encoder=SMALL, epochs=1, random_state=0)
    expected = clone(model).fit(images, Y).predict_proba(images)
    colour = np.repeat(images[..., None], 3, axis=3)
    forms = (colour, paths, np.array(paths), Images(paths, size=20), list(images), images / 255)
    for form in forms:
        assert np.array_equal(clone(model).fit(form, Y).predict_proba(form), expected)
    fitted = model.fit(images, Y)
    assert np.array_equal(fitted.predict_proba(paths[:3]), expected[:3])


def test_it_learns():
    images, Y = shades(200)
    encoder = ResNet(size=8, width=4, augment="none")
    model = lw.make("mlp", encoder=encoder, epochs=8, lr=1e-2, random_state=0)
    model.fit(images[:150], Y[:150])
    assert lw.evaluate(model, (images[150:], Y[150:]), metrics=["map"])["map"] > 0.95


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros((5, 64)), "shape"),
        ([], "no image"),
        (["none.png"] * 5, "no such image"),
        ("none.png", "single path"),
        ([1, 2, 3, 4, 5], "row 0"),
    ],
)
def test_what_is_no_image_is_refused(wrong, words):
    model = lw.make("mlp", encoder=SMALL, epochs=1)
    with pytest.raises(InputError, match=words):
        model.fit(wrong, np.eye(5)[: len(wrong), :2] if len(wrong) == 5 else np.zeros((0, 2)))


def test_names_stand_for_networks():
    model = lw.make("mlp", encoder="resnet50")
    assert model._image_encoder().depth == 50
    assert lw.make("cls", base=model)._image_encoder().depth == 50
    assert lw.make("mlp")._image_encoder() is None
    with pytest.raises(InputError, match="no encoder 'vgg'"):
        lw.make("mlp", encoder="vgg").fit(np.zeros((5, 8, 8)), np.eye(5)[:, :2])
    assert lw.make("mlp", encoder=ResNet()).set_params(encoder__size=12).encoder.size == 12


def test_weights_are_where_training_starts(tmp_path):
    source = ResNetModule(18, stem="imagenet", width=4, n_classes=3)
    torch.save(source.state_dict(), tmp_path / "resnet18.pth")
    encoder = ResNet(size=16, width=4, stem="imagenet", weights=tmp_path / "resnet18.pth")
    backbone = encoder()
    assert torch.equal(backbone.network.conv1.weight, source.conv1.weight)
    images, Y = shades(20, side=16)
    model = lw.make("mlp", encoder=encoder, epochs=1, random_state=0).fit(images, Y)
    model.save(tmp_path / "model")
    (tmp_path / "resnet18.pth").unlink()  # a saved model does without the file
    loaded = lw.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(images), model.predict_proba(images))


@pytest.mark.parametrize("method", ["mlp", "cls", "role", "co-teaching", "mulsupcon"])
@pytest.mark.parametrize("trainable", ["none", "last", "all"])
def test_training_changes_no_layer_the_last_or_all(trainable, method, tmp_path):
    start = ResNetModule(18, stem="small", width=4)
    torch.save(start.state_dict(), tmp_path / "weights.pth")
    encoder = ResNet(size=8, width=4, weights=tmp_path / "weights.pth", trainable=trainable)
    images, Y = shades(20)
    if method == "mulsupcon":
        model = lw.make(method, encoder=encoder, epochs=1, pretrain_steps=2, random_state=0)
    else:
        model = lw.make("mlp", encoder=encoder, epochs=1, lr=1e-2)
        model = model if method == "mlp" else lw.make(method, base=model)
    fitted = model.set_params(random_state=0).fit(images, Y).network_
    after = next(part for part in fitted.modules() if isinstance(part, ImageBackbone)).network
    old, new = start.state_dict(), after.state_dict()
    changed = {name.partition(".")[0] for name in new if not torch.equal(old[name], new[name])}
    stages = {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4"}
    assert changed == {"none": set(), "last": {"layer4"}, "all": stages}[trainable]


def test_a_learning_rate_of_the_encoder_alone():
    network = torch.nn.Sequential(ResNet(size=8, width=4, lr=1e-5)(), torch.nn.Linear(32, 2))
    plan = make_plan(network, n_steps=10, lr=1e-2, schedule="cosine-restarts")
    head, backbone = plan.optimizer.param_groups
    assert (head["lr"], backbone["lr"]) == (1e-2, 1e-5)
    assert [p.shape for p in head["params"]] == [(2, 32), (2,)]
    assert len(backbone["params"]) == len(list(network[0].parameters()))
    assert plan.scheduler.eta_min <= 1e-5  # the rate of the encoder must not rise
    plain = torch.nn.Sequential(ResNet(size=8, width=4)(), torch.nn.Linear(32, 2))
    assert len(make_plan(plain, n_steps=10).optimizer.param_groups) == 1
    images, Y = shades(8)
    both = lw.make("mulsupcon", encoder=ResNet(size=8, width=4, lr=1e-5), epochs=1)
    with pytest.raises(InputError, match="backbone_lr"):
        both.fit(images, Y)


def test_images_reach_the_network_scaled_and_channels_last():
    backbone = ResNet(size=4, width=4)().eval()
    x = torch.full((2, 3, 4, 4), 255, dtype=torch.uint8)
    pixels = backbone.pixels(x)
    expected = (1 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    assert torch.allclose(pixels[0, :, 0, 0], expected)
    assert pixels.is_contiguous(memory_format=torch.channels_last)
    # Kernels are not: torch's fused optimiser copies what is not contiguous, forth and back.
    assert all(p.is_contiguous() for p in backbone.parameters())


def test_two_views_of_the_contrast_differ():
    """Both networks of the pretraining see the images through their own augmentation."""
    encoder = ResNet(size=8, width=4, augment="strong")()
    seen = []
    encoder.augment.register_forward_hook(lambda module, args, out: seen.append(out))
    task = ContrastiveTask(
        encoder, 2, n_dims=4, queue_size=4, momentum=0.9, mask=0.0, loss={}, plan={}
    )
    task.key_network[0].augment.register_forward_hook(lambda m, args, out: seen.append(out))
    images, Y = shades(6)
    x = torch.from_numpy(images)[:, None].expand(-1, 3, -1, -1)
    batch = Batch(x, torch.from_numpy(Y).float(), torch.arange(6))
    task.train().losses(batch, StepInfo(0, 0, 0.0))
    assert len(seen) >= 2
    assert not torch.equal(seen[0], seen[-1])


def test_transfer_to_another_set_with_other_labels(scenes, tmp_path):
    settings = {"encoder": SMALL, "pretrain_epochs": 1, "pretrain_steps": 2, "epochs": 1}
    source = lw.make("mulsupcon", random_state=0, **settings).fit(scenes.X[:40], scenes.Y[:40])
    images, Y = shades()
    probe = lw.make("mulsupcon", pretrained=source, mode="linear-probe", random_state=0, **settings)
    probe.fit(images, Y)
    ours, theirs = (model.network_.encoder.state_dict() for model in (probe, source))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)  # frozen
    assert probe.predict_proba(images).shape == (60, 2)
    assert np.array_equal(probe.transform(images), source.transform(images))


def test_a_network_of_vectors_may_be_an_encoder_too():
    X, Y = np.random.default_rng(0).normal(size=(40, 5)), np.eye(2)[np.arange(40) % 2]
    model = lw.make("mlp", encoder=lambda n: MLPEncoder(n, (8,)), epochs=1, random_state=0)
    assert model.fit(X, Y).predict_proba(X).shape == (40, 2)


# -- frozen features ---------------------------------------------------------------------------


def test_features_of_a_frozen_network(tmp_path, monkeypatch):
    images, _ = shades()
    encoder = ImageEncoder(SMALL, weights="random", cache=tmp_path).fit()
    features = encoder.transform(images)
    assert features.shape == (60, encoder.n_features_out_)
    backbone = ResNet(**SMALL.get_params())()
    backbone.load_state_dict(dict(encoder.weights_))
    x = torch.from_numpy(images[:4].copy())[:, None].expand(-1, 3, -1, -1)
    with torch.no_grad():
        assert np.allclose(features[:4], backbone.eval()(x), atol=1e-5)
    calls = []
    monkeypatch.setattr(ImageEncoder, "_computed", lambda self, some: calls.append(len(some)))
    assert np.array_equal(encoder.transform(images), features)  # all from the cache
    assert np.array_equal(
        ImageEncoder(SMALL, weights="random", cache=tmp_path).fit_transform(images[::-1].copy()),
        features[::-1],
    )
    assert calls == []


def test_another_network_has_another_cache(tmp_path):
    images, _ = shades(5)
    first = ImageEncoder(SMALL, weights="random", cache=tmp_path).fit()
    other = ImageEncoder(ResNet(34, size=8, width=4), weights="random", cache=tmp_path).fit()
    assert first.checksum_ != other.checksum_
    assert not np.array_equal(first.transform(images), other.transform(images))


def test_features_by_what_a_method_has_learnt(tmp_path):
    images, Y = shades()
    model = lw.make("mlp", encoder=SMALL, epochs=1, random_state=0).fit(images, Y)
    encoder = ImageEncoder(weights=model, cache=False).fit()
    trained = next(p for p in model.network_.modules() if isinstance(p, ImageBackbone))
    assert torch.equal(encoder.weights_["network.conv1.weight"], trained.network.conv1.weight)
    model.save(tmp_path / "model")
    saved = ImageEncoder(weights=tmp_path / "model", cache=False).fit()
    assert np.array_equal(saved.transform(images), encoder.transform(images))
    assert clone(encoder).weights is model  # a clone of it would have forgotten
    assert np.array_equal(
        ImageEncoder(weights=encoder, cache=False).fit_transform(images), encoder.transform(images)
    )


def test_every_vector_method_works_on_features(tmp_path):
    images, Y = shades()
    paths = png_files(images[:5], tmp_path)
    encoder = ImageEncoder(SMALL, weights="random", cache=False)
    for method in ("br", "mlknn", "extra-trees"):
        model = ImageClassifier(lw.make(method), encoder=encoder, random_state=0).fit(images, Y)
        model.save(tmp_path / method)
        loaded = lw.load(tmp_path / method)
        expected = model.predict_proba(images)
        assert np.array_equal(loaded.predict_proba(images), expected)
        assert np.allclose(loaded.predict_proba(paths), expected[:5], atol=1e-5)


def test_an_encoder_needs_weights(tmp_path):
    with pytest.raises(InputError, match="needs weights"):
        ImageEncoder("resnet18").fit()
    with pytest.raises(InputError, match="no file of weights"):
        ImageEncoder(weights=tmp_path / "none.pth").fit()
    with pytest.raises(InputError, match="BinaryRelevance is not a fitted method"):
        ImageEncoder(weights=lw.make("br")).fit()


def test_vector_methods_take_a_collection_as_rows_of_pixels():
    images, Y = shades(40)
    with pytest.warns(LabelweaveWarning, match="learns from rows of pixels"):
        model = lw.make("br").fit(Images(images, size=4), Y)
    assert model.n_features_in_ == 48
    resized = model.predict_proba(Images(images, size=8))  # brought to the size it knows
    assert np.array_equal(resized, model.predict_proba(Images(images, size=4)))


def test_calibration_and_folds_of_images():
    images, Y = shades(30)
    model = lw.make("mlp", encoder=SMALL, epochs=1, random_state=0)
    calibrated = CalibratedMultiLabel(model, cv=2, random_state=0).fit(Images(images, size=8), Y)
    assert calibrated.predict_proba(images[:3]).shape == (3, 2)
    out_of_fold = cross_val_predict_proba(model, Images(images, size=8), Y, cv=2)
    assert out_of_fold.shape == (30, 2)


def test_a_network_for_images_is_exported(tmp_path):
    images, Y = shades(12)
    model = lw.make("mlp", encoder=SMALL, epochs=1, random_state=0).fit(images, Y)
    export_torch(model, tmp_path / "model.pt2")
    predict = torch.export.load(tmp_path / "model.pt2").module()
    x = torch.from_numpy(images.copy()).float()[:, None].expand(-1, 3, -1, -1)
    assert np.allclose(predict(x).detach().numpy(), model.predict_proba(images), atol=1e-5)
