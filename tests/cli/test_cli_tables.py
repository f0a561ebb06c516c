"""Files of mixed columns from `train` to the other commands."""

import json

import numpy as np
import pandas as pd
import pytest

import labelweave as lw


def write_products(path, n_rows=120, **columns):
    """A table with an id, a title, a price with blanks, a brand, a date and three labels."""
    random = np.random.default_rng(0)
    price = random.integers(1, 100, n_rows).astype(float)
    brand = random.choice(["acme", "bolt", "core"], n_rows)
    nouns = random.choice(["hat", "lamp", "shoe", "book"], n_rows)
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(n_rows)],
            "title": [f"one {noun} of size {k % 90}" for k, noun in enumerate(nouns)],
            "price": np.where(random.random(n_rows) < 0.1, np.nan, price),
            "brand": np.where(random.random(n_rows) < 0.1, None, brand),
            "date": pd.date_range("2024-01-01", periods=n_rows).strftime("%d.%m.%Y"),
            "is_cheap": price < 40,
            "is_acme": brand == "acme",
            "is_hat": nouns == "hat",
        }
    ).assign(**columns)
    labels = ["is_cheap", "is_acme", "is_hat"]
    frame[labels] = frame[labels].astype(float).mask(random.random((n_rows, 3)) < 0.05)
    frame.to_csv(path, index=False)
    return path


pytestmark = pytest.mark.filterwarnings("always::labelweave.exceptions.LabelweaveWarning")
TREES = ("-m", "boosted-trees", "-s", "max_iter=20", "-s", "min_samples_leaf=3")


@pytest.fixture
def products(workdir):
    return write_products(workdir / "products.csv")


@pytest.fixture
def trained(run, products):
    return run("train", products, "--labels", "is_*", *TREES, "--out", "model")


def test_all_columns_are_used_and_said(run, trained, products):
    table = trained.stdout.partition("column  kind")[2].partition("training")[0]
    rows = [" ".join(line.split()) for line in table.splitlines()[1:]]
    assert rows == [
        "title text 32 dimensions of its words",
        "price number the number",
        "brand category a code, 3 values",
        "date date numbers of the date",
        "id left out: the name of the row",
    ]
    metrics = json.loads((products.parent / "model/metrics.json").read_text())
    assert metrics["scores"]["test"]["map"] > 0.9


def test_other_commands_take_the_model_and_the_file(run, trained, products):
    scores = json.loads(run("evaluate", "model", products, "--json", "-q").stdout)
    assert scores["rows_seen_in_training"] == 0
    assert scores["scores"]["map"] > 0.9
    run("predict", "model", products, "--out", "all.jsonl", "--proba", "all", "-q")
    rows = [json.loads(line) for line in (products.parent / "all.jsonl").read_text().splitlines()]
    model = lw.load("model")
    expected = model.predict_proba(pd.read_csv(products))
    names = list(model.label_names_)
    predicted = [[row["probabilities"][name] for name in names] for row in rows]
    np.testing.assert_allclose(predicted, expected, atol=1e-5)
    assert rows[3]["id"] == "p3"
    run("report", "model", "--out", "report.html", "-q")
    run("audit", products, "--labels", "is_*", "--out", "audit.csv", "-q")
    assert "title: one" in (products.parent / "audit.csv").read_text()
    own = ("--data", products, "--labels", "is_*", "--methods", "br")
    shown = run("bench", "run", *own, "--seeds", 1, "-j", 1).stdout
    assert "1 cells run, 0 existed, 0 failed" in shown


def test_other_files_at_prediction(run, trained, products):
    frame = pd.read_csv(products)
    other = frame[["price", "title", "id"]].assign(price=3, mass=1.0)
    other.to_csv("other.csv", index=False)
    warned = run("predict", "model", "other.csv", "--out", "other.jsonl", "-q").stderr
    assert "warning: the columns 'brand', 'date' are missing: their cells count as blank" in warned
    assert "warning: the column 'mass' was not in the training table: it is ignored" in warned
    frame.assign(price="cheap").to_csv("wrong.csv", index=False)
    failed = run("predict", "model", "wrong.csv", "--out", "wrong.jsonl", status=2)
    assert "row 0 of the column 'price' is 'cheap', which is not a number" in failed.stderr


def test_new_values_of_all_parts_are_said_once(run, trained, products):
    frame = pd.read_csv(products)
    frame.assign(brand=[f"new {i}" for i in range(len(frame))]).to_csv("other.csv", index=False)
    options = ("--out", "other.jsonl", "--batch-rows", 7, "-q")
    warned = run("predict", "model", "other.csv", *options).stderr
    assert warned.splitlines() == [
        f"warning: the column 'brand' has {len(frame)} values that no training row had ('new 0', "
        "'new 1', 'new 2')"
    ]


def test_columns_named_as_the_labels_of_a_model_saved_from_python(run, products):
    frame = pd.read_csv(products)
    labels = frame.filter(like="is_")
    lw.save(lw.BoostedTrees(max_iter=10).fit(frame[["title", "price"]], labels), "saved")
    scores = json.loads(run("evaluate", "saved", products, "--json", "-q").stdout)
    assert scores["rows"] == len(frame)
    assert scores["scores"]["map"] > 0.7
    run("report", "saved", "--data", products, "--out", "report.html", "-q")
    explained = json.loads(run("explain", "saved", products, "--json", "-q").stdout)
    assert [one["label"] for one in explained["labels"]] == list(labels)
    frame.drop(columns="is_hat").to_csv("fewer.csv", index=False)
    failed = run("evaluate", "saved", "fewer.csv", status=2)
    assert "it is not known which columns are labels" in failed.stderr


def test_several_files_that_the_shell_has_listed(run, products):
    failed = run("train", products, products, "--labels", "is_*", status=2)
    assert "several files are one argument, a pattern in quotes" in failed.stderr
    failed = run("train", products, "no-file.csv", "--labels", "is_*", status=2)
    assert "pattern" not in failed.stderr


def test_kinds_that_are_given(run, products):
    shown = run(
        "train", products, "--labels", "is_*", *TREES, "--kind", "price=category,brand=id"
    ).stdout
    assert "price   category  a code" in shown
    assert "brand   id        left out: as asked" in shown
    failed = run("train", products, "--labels", "is_*", "--kind", "price=nmber", status=2)
    assert "(option --kind)" in failed.stderr
    failed = run("train", products, "--labels", "is_*", "--kind", "price", status=2)
    assert "'price' is not column=kind" in failed.stderr


def test_tune_writes_the_kinds(run, products):
    options = ("--labels", "is_*", "--kind", "price=number", "--groups", "brand")
    search = ("-m", "mlknn", "--trials", 1, "--search-only", "--out", "tuned")
    run("tune", products, *options, *search)
    shown = run("train", "--config", "tuned/best.toml").stdout
    assert "price   number" in shown
    assert "left out: the group of the row" in shown


def test_one_column_of_label_names(run, products):
    frame = pd.read_csv(products)
    frame["tags"] = np.where(frame["is_hat"] == 1, "hat;thing", "thing")
    frame.drop(columns=["is_cheap", "is_acme", "is_hat"]).to_csv("tags.csv", index=False)
    shown = run("train", "tags.csv", "--label-column", "tags", *TREES).stdout
    assert "price   number    the number" in shown


def test_a_method_of_texts_takes_the_texts_and_says_so(run, products):
    arguments = ("--labels", "is_*", "-m", "tf-idf", "--out", "model")
    shown = run("train", products, *arguments).stdout
    left_out = "'title' is used, and 'price', 'brand', 'date' are left out"
    assert f"tf-idf takes texts only: {left_out}" in shown
    evaluated = run("evaluate", "model", products)
    assert f"warning: the model takes texts only: {left_out}" in evaluated.stderr
    assert "test part, as in its training" in evaluated.stdout
    assert "120 rows predicted" in run("predict", "model", products, "--out", "p.csv").stdout


def test_numbers_with_blanks(run, workdir):
    """A model of a table takes a file without blanks, whatever the order of its columns."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.random((90, 2)), columns=["a", "b"])
    labels = (frame > 0.5).astype(int).add_prefix("is_")
    whole = pd.concat([frame[["b", "a"]], labels], axis=1)
    whole.to_csv("whole.csv", index=False)
    pd.concat([frame.mask(random.random((90, 2)) < 0.1), labels], axis=1).to_csv(
        "x.csv", index=False
    )
    run("train", "x.csv", "--labels", "is_*", "-m", "br", "--out", "model")
    scores = json.loads(run("evaluate", "model", "whole.csv", "--json", "-q").stdout)["scores"]
    assert scores["map"] > 0.95


def test_weights_of_rows(run, workdir):
    """Each row is there twice, with contradictory labels; the heavier one decides."""
    frame = pd.DataFrame({"a": np.tile(np.linspace(-1, 1, 60), 2), "w": np.repeat([1, 9], 60)})
    is_high = frame["a"] > 0
    frame["is_high"] = np.where(frame["w"] == 9, is_high, ~is_high).astype(int)
    frame["is_low"] = 1 - frame["is_high"]
    frame.to_csv("x.csv", index=False)
    options = ("--labels", "is_*", "--weight", "w", "--threshold", 0.5)
    run("train", "x.csv", *options, "-m", "br", "--out", "model")
    assert lw.load("model").predict([[0.9], [-0.9]]).tolist() == [[1, 0], [0, 1]]
    network = ("-m", "mlp", "-s", "hidden=[8]", "-s", "lr=0.05", "-s", "weight_decay=0")
    run("train", "x.csv", *options, *network, "--out", "network")
    assert lw.load("network").predict([[0.9], [-0.9]]).tolist() == [[1, 0], [0, 1]]
    failed = run("train", "x.csv", *options, "-m", "mlknn", status=2)
    assert "MLkNN takes no weights of rows" in failed.stderr
    assert "(option --weight)" in failed.stderr
    frame.assign(w=-1).to_csv("x.csv", index=False)
    failed = run("train", "x.csv", *options, "-m", "br", status=2)
    assert "x.csv, line 2: the column 'w' cannot be weights: -1 is none" in failed.stderr


def test_groups_stay_in_one_part(run, products):
    shown = run("train", products, "--labels", "is_*", "--groups", "brand", *TREES).stdout
    assert "groups of rows: the split keeps each in one part" in shown
    data = lw.load_dataset(products, labels="is_*", group_column="brand")
    parts = data.split(validation=0.2)
    brands = [{group for group in part.groups if group is not None} for part in parts]
    assert sum(map(len, brands)) == len(set.union(*brands)) == 3


def test_a_column_of_images_beside_numbers(run, workdir, tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")  # relative paths start here, not where `run` is
    rng = np.random.default_rng(0)
    is_red, price = np.arange(60) % 2, rng.normal(size=60)
    for k, red in enumerate(is_red):
        pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
        pixels[..., 0 if red else 2] += 180
        Image.fromarray(pixels).save(folder / f"{k}.png")
    names = [f"{k}.png" for k in range(60)]
    frame = pd.DataFrame({"price": price, "photo": names, "is_red": is_red, "is_dear": price > 0})
    frame.astype({"is_dear": int}).to_csv(folder / "products.csv", index=False)
    file = folder / "products.csv"
    options = ("--labels", "is_*", "--kind", "photo=image", *TREES)
    shown = run("train", file, *options, "--out", "model").stdout
    assert "32 dimensions of the features of an untrained network" in " ".join(shown.split())
    scores = json.loads((workdir / "model/metrics.json").read_text())["scores"]["test"]
    assert scores["map"] > 0.9
    assert "0.png" not in (workdir / "model/reference.json").read_text()
    run("evaluate", "model", file, "-q")
    frame[["photo", "price"]].to_csv(folder / "new.csv", index=False)
    run("predict", "model", folder / "new.csv", "--out", "new.jsonl", "--proba", "all", "-q")
    rows = [json.loads(line) for line in (workdir / "new.jsonl").read_text().splitlines()]
    red = [row["probabilities"]["is_red"] > 0.5 for row in rows]
    assert np.mean(red == (is_red == 1)) > 0.9
    (folder / "7.png").unlink()
    batches = ("--batch-rows", 4)  # the row is that of the file, not of the batch
    command = ("predict", "model", folder / "new.csv", "--out", "new.jsonl", *batches)
    failed = run(*command, status=2)
    assert "row 7 of the column 'photo'" in failed.stderr
    assert "7.png" in failed.stderr
