"""The commands on a folder of images: train, evaluate, predict, encode, and what they refuse."""

import json

import numpy as np
import pytest

import labelweave as lw
from labelweave.nn.pretrained import is_installed
from labelweave.serve.loaded_model import describe

Image = pytest.importorskip("PIL.Image")
SMALL = ("-s", "encoder=resnet18", "-s", "encoder__size=8", "-s", "encoder__width=4")


@pytest.fixture
def photos(workdir):
    """photos/: 40 images of 10 x 10 pixels, light on the left, on the right, or both."""
    random = np.random.default_rng(0)
    folder = workdir / "photos"
    folder.mkdir()
    rows = ["image,left,right"]
    for k in range(40):
        labels = random.integers(0, 2, 2)
        pixels = random.integers(0, 60, (10, 10, 3), dtype=np.uint8)
        pixels[:, :5] += np.uint8(150 * labels[0])
        pixels[:, 5:] += np.uint8(150 * labels[1])
        Image.fromarray(pixels).save(folder / f"{k}.png")
        rows.append(f"{k}.png,{labels[0]},{labels[1]}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_from_a_folder_to_predictions(run, photos, workdir):
    out = run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", "model")
    assert "40 rows, images, 2 labels" in out.output
    out = run("evaluate", "model", photos, "--json")
    assert json.loads(out.stdout)["verdict"] == "the model has seen none of them"
    only = workdir / "new"
    only.mkdir()
    for k in (3, 5):
        (only / f"{k}.png").write_bytes((photos / f"{k}.png").read_bytes())
    out = run("predict", "model", only, "--proba", "all", "-q")
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    assert [line["id"] for line in lines] == ["3.png", "5.png"]
    one = run("predict", "model", only / "5.png", "--proba", "all", "-q")
    assert len(one.stdout.splitlines()) == 1
    table = run("predict", "model", photos / "labels.csv", "-q", "--proba", "all")
    assert len(table.stdout.splitlines()) == 40


@pytest.mark.filterwarnings("always::labelweave.exceptions.LabelweaveWarning")
def test_a_broken_image_is_named_or_left_out(run, photos):
    run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", "model", "-q")
    (photos / "7.png").write_bytes(b"")
    assert "7.png" in run("predict", "model", photos, status=2).output
    out = run("predict", "model", photos, "--skip-bad-images")
    assert "7.png" in out.stderr
    assert len(out.stdout.splitlines()) == 39
    (photos / "9.png").unlink()
    out = run("train", photos, "-m", "mlp", *SMALL, status=2)
    assert "9.png is annotated but missing" in out.output
    assert "(option --skip-bad-images)" in out.output
    for command in (
        ("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", "other"),
        ("encode", "model", photos, "--out", "features.npz"),
        ("evaluate", "model", photos),
    ):
        out = run(*command, "--skip-bad-images")
        assert "2 of 40 images are left out" in out.stderr
        assert "7.png" in out.stderr
        assert "9.png" in out.stderr


def test_partial_labels_and_features(run, photos):
    inner = [part.replace("encoder", "base__encoder") for part in SMALL]
    run("train", photos, "-m", "cls", *inner, "-s", "base__epochs=1", "--out", "cls", "-q")
    run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", "model", "-q")
    out = run("train", photos, "-m", "mlknn", "-s", "image__weights=model", "--out", "knn")
    assert "the network of model; features are computed once" in out.output
    run("predict", "knn", photos, "-q")


def test_a_model_of_encoded_images_takes_images(run, photos):
    run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", "model", "-q")
    out = run("encode", "model", photos, "--out", "features.npz")
    assert "32 features per image" in out.output
    run("train", "features.npz", "-m", "mlknn", "--out", "npz", "-q")
    of_images = run("predict", "npz", photos, "--proba", "all", "-q").stdout.splitlines()
    of_features = run("predict", "npz", "features.npz", "--proba", "all", "-q").stdout.splitlines()
    assert len(of_images) == 40
    assert of_images == of_features
    assert describe(lw.load("npz")).input == "images"
    run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=2", "--out", "model", "-q")
    out = run("train", "features.npz", "-m", "mlknn", "--out", "npz", status=2)
    assert "no longer the one that made these features" in out.output
    archive = dict(np.load("features.npz"))
    for wrong in ("[]", "{}", '{"network": 1, "checksum": "", "device": "x"}', "no json"):
        np.savez("wrong.npz", **{**archive, "image_encoder": np.array(wrong)})
        out = run("train", "wrong.npz", "-m", "mlknn", status=2)
        assert "'image_encoder' names no network" in out.output


def test_photographs_go_through_the_pretrained_network(run, photos):
    if not is_installed("efficientnet-lite0"):
        pytest.skip("the weights of EfficientNet-lite0 are not installed")
    out = run("train", photos, "-m", "mlknn", "--out", "model")
    assert "images (efficientnet-lite0, weights of ImageNet; features are computed" in out.output
    assert lw.load("model").encoder_.n_features_out_ == 1280
    assert len(run("predict", "model", photos, "-q").stdout.splitlines()) == 40
    out = run("train", photos, "-m", "cls+", "-s", "base__epochs=1", "--out", "partial")
    assert "efficientnet-lite0" in out.output


@pytest.mark.filterwarnings("always::labelweave.exceptions.LabelweaveWarning")
def test_without_it_the_command_says_what_to_install(run, photos, monkeypatch):
    monkeypatch.setattr("labelweave.nn.pretrained.find_spec", lambda name: None)
    out = run("train", photos, "-m", "mlknn", "--out", "pixels")
    assert "learns from rows of pixels" in out.stderr
    assert "labelweave[vision]" in out.stderr
    out = run("train", photos, "-m", "mlknn", "-s", "image__network=pixels", "--out", "chosen")
    assert lw.load("chosen").n_features_in_ == 64 * 64 * 3
    out = run("train", "digit-scenes", "--data-option", "images=true", "-m", "mlknn", status=2)
    assert "digit-scenes holds images" in out.output


def test_refusals(run, photos, csv_file):
    out = run("train", csv_file, "--labels", 3, "-m", "br", "-s", "image__weights=x", status=2)
    assert "there are none" in out.output
    out = run("train", photos, "-m", "br", "-s", "image__wieghts=x", status=2)
    assert "parameter of images" in out.output
    out = run("train", photos, "-m", "mlp", "-s", "encoder=vgg16", status=2)
    assert "there is no encoder 'vgg16'" in out.output
    out = run("encode", "none.pth", photos, "--out", "f.npz", status=2)
    assert "none.pth" in out.output
    out = run("encode", "none.pth", photos, "--out", "f.csv", status=2)
    assert ".npz" in out.output


@pytest.mark.filterwarnings("ignore:the teachers have no label in common")
@pytest.mark.filterwarnings("ignore:BinaryRelevance learns from rows of pixels")
def test_students_and_unions_of_image_models(run, photos, workdir):
    rows = [line.split(",") for line in (photos / "labels.csv").read_text().splitlines()]
    for k, name in ((1, "left"), (2, "right")):
        (photos / "labels.csv").write_text("\n".join(f"{row[0]},{row[k]}" for row in rows))
        run("train", photos, "-m", "mlp", *SMALL, "-s", "epochs=1", "--out", name, "-q")
    (photos / "labels.csv").unlink()
    small = ["-s", "student__epochs=1", "-s", "student__encoder=resnet18"]
    small += ["-s", "student__encoder__size=8", "-s", "student__encoder__width=4"]
    options = (["--keep-teachers"], ["--student", "br"], ["--student", "mlp", *small])
    for k, more in enumerate(options):
        folder = f"m{k}"
        run("amalgamate", "left", "right", "--data", photos, "--out", folder, "-q", *more)
        assert describe(lw.load(folder)).input == "images"
        out = run("predict", folder, photos, "--proba", "all", "-q")
        lines = [json.loads(line) for line in out.stdout.splitlines()]
        assert len(lines) == 40
        assert sorted(lines[0]["probabilities"]) == ["left", "right"]
