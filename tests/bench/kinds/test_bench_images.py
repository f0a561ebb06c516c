"""The bench on images: named sets, sources of a transfer, and folders as they are published."""

from dataclasses import replace

import numpy as np
import pytest

from labelweave.bench.kinds import kind_module, other_data
from labelweave.bench.running import fitting
from labelweave.bench.running.cell_data import checksum, load, why_missing
from labelweave.bench.running.method_settings import published_settings
from labelweave.bench.running.plan import Quick, make_plan
from labelweave.bench.suite import DataEntry, MethodEntry, ScenarioEntry, load_suite
from labelweave.data import Dataset
from labelweave.images import Images, ResNet

Image = pytest.importorskip("PIL.Image")
SCENES = DataEntry("digit-scenes", options={"images": True})


def quick(suite, **changes):
    """The first cell of a suite, on few rows and for one epoch."""
    cell = make_plan(replace(suite, **changes)).cells[0]
    return replace(cell, quick=Quick(rows=60, epochs=1, steps=1))


@pytest.mark.parametrize("name", ["mulsupcon-6-images", "cls-2-images"])
def test_a_suite_on_images_runs(name):
    suite = load_suite(name)
    for method in suite.methods[-3:]:
        inner = "base__" if "base__encoder" in method.settings else ""
        small = {**method.settings, f"{inner}encoder__width": 4}
        cell = quick(suite, data=(SCENES,), methods=(replace(method, settings=small),))
        outcome = kind_module(suite.kind).run(cell, load(cell.data))
        assert 0 < outcome.scores["map"] < 1


def test_a_smoke_run_cuts_all_stages_down():
    suite = load_suite("mulsupcon-6-images")
    cell = quick(suite, data=(SCENES,), methods=suite.methods[-1:])
    settings, short = cell.settings, fitting._settings(cell)
    stages = ("pretrain_epochs", "pretrain_steps", "probe_epochs", "epochs")
    assert all(settings[name] > 1 for name in stages)
    assert all(short[name] == 1 for name in stages)


def test_an_encoder_of_one_set_is_probed_on_another():
    suite = load_suite("mulsupcon-7-images")
    scenario = ScenarioEntry(
        "s", settings={"source": "digit-scenes", "source_options": {"images": True}}
    )
    (entry,) = other_data("transfer", scenario.settings)
    assert entry.external is None
    assert load(entry).X.shape == (3000, 32, 32)
    settings = {"encoder": "resnet18", "encoder__width": 4, "encoder__size": 16}
    method = MethodEntry("probe", "mulsupcon", settings={**settings, "mode": "linear-probe"})
    source = {"source_settings": {**settings, "pretrain_steps": 1}}
    method = replace(method, options=source)
    cell = quick(suite, data=(SCENES,), scenarios=(scenario,), methods=(method,))
    outcome = kind_module("transfer").run(cell, load(cell.data))
    assert 0 < outcome.scores["map"] < 1


def test_the_source_of_a_published_method_is_trained_as_published(monkeypatch):
    """400 passes over the images, not the default number of steps."""
    suite = load_suite("mulsupcon-7")
    of_source = []

    def caught(cell, parts):
        of_source.append(fitting._settings(cell))
        raise InterruptedError

    monkeypatch.setattr(fitting, "fit", caught)
    scenario = ScenarioEntry("s", settings={"source": "other labels"})
    entry = replace(SCENES, name="pascal-voc-2007", source="pascal-voc-2007")
    for method in suite.methods:
        cell = quick(suite, data=(entry,), scenarios=(scenario,), methods=(method,))
        with pytest.raises(InterruptedError):
            kind_module("transfer").run(replace(cell, quick=None), load(SCENES))
    bce, ours, tuned = of_source
    assert all(one["encoder"].depth == 50 for one in of_source)
    assert (bce["pretrain_epochs"], bce["epochs"], bce["optimizer"]) == (0, 400, "sgd")
    for one in (ours, tuned):
        assert (one["pretrain_epochs"], one["pretrain_steps"]) == (400, None)
    assert (ours["mode"], tuned.get("mode", "finetune")) == ("linear-probe", "finetune")
    assert (tuned["lr"], tuned["backbone_lr"]) == (1e-4, 1e-4)


def test_published_folders_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path))
    (entry,) = [one for one in load_suite("mulsupcon-6").data if one.name == "pascal-voc-2007"]
    assert "PASCAL VOC 2007 images" in why_missing(entry)
    folder = tmp_path / "pascal-voc-2007"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    (folder / "labels.csv").write_text("image,dog\na.png,1\n")
    assert why_missing(entry) is None
    data = load(entry)
    assert data.name == "pascal-voc-2007"
    assert data.X.size == 224


def test_mulsupcon_reads_the_labels_of_its_paper():
    """24 labels of MIRFLICKR, labelled images of COCO alone, features in folders of their own."""
    options = {one.name: one.options for one in load_suite("mulsupcon-6").data}
    assert options["mirflickr"]["annotated"] == "potential"
    assert options["ms-coco"]["keep_unlabelled"] is False
    (source,) = {one.source for one in load_suite("c-gmvae-1").data if one.name == "mirflickr"}
    of_vectors = {one.source for one in load_suite("mulsupcon-4").data} | {source}
    assert not of_vectors & set(options)


def test_a_checksum_follows_the_images():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    data = Dataset(Images(pixels, size=8), np.eye(3))
    assert checksum(data) == checksum(Dataset(Images(pixels.copy(), size=8), np.eye(3)))
    assert checksum(data) != checksum(Dataset(Images(pixels + 1, size=8), np.eye(3)))


def test_methods_of_the_image_suites_take_images():
    for name in ("mulsupcon-5-images", "mulsupcon-7-images-back", "mulsupcon-8-images", "cls-2"):
        suite = load_suite(name)
        for method in suite.methods:
            assert isinstance(method, MethodEntry)
            start = published_settings(method.id, method.published, suite.data[0].source)
            settings = start | dict(method.settings)
            inner = getattr(settings.get("base"), "encoder", settings.get("base__encoder"))
            encoder = settings.get("encoder", inner)
            assert isinstance(encoder, ResNet) or encoder.startswith("resnet")
