"""Small models and a small folder of results to report on."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.data import Dataset
from labelweave.labels import LabelMatrix, as_labels


@pytest.fixture(autouse=True)
def fixed_date(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def make_data():
    """Rows whose labels follow from the features; options change the labels."""

    def make(n_rows=80, names=("red", "blue", "round"), *, seed=0, change=None, sparse=False):
        X = np.random.default_rng(seed).random((n_rows, len(names)))
        Y = (X + X[:, ::-1] > 1).astype(np.float32)
        if change is not None:
            Y = change(Y)
        labels = lw.as_labels(Y, names=names)
        return Dataset(X, labels.to_sparse() if sparse else labels, name="shapes")

    return make


@pytest.fixture
def page(tmp_path):
    """The page that a report writes."""

    def write(*arguments, **options):
        return lw.report(*arguments, out=tmp_path / "report.html", **options).read_text("utf-8")

    return write


@pytest.fixture(params=["known", "unknown", "sparse", "sparse, absent unknown"])
def labels(request):
    """Sixty rows of five dependent labels, one never positive; some entries unknown."""
    rng = np.random.default_rng(3)
    Y = (rng.random((60, 5)) < [0.6, 0.3, 0.2, 0.1, 0.0]).astype(float)
    Y[:, 1] = np.where(rng.random(60) < 0.7, Y[:, 0], Y[:, 1])
    if request.param == "known":
        return as_labels(Y)
    if request.param == "sparse":
        return as_labels(sp.csr_array(Y))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[7] = np.nan  # a row of which nothing is known
    if request.param == "unknown":
        return as_labels(Y)
    stored = sp.coo_array(np.ones_like(Y))
    known = ~np.isnan(Y[stored.row, stored.col])
    rows, columns = stored.row[known], stored.col[known]
    matrix = sp.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
    return LabelMatrix(matrix.astype(np.float32), [f"l{j}" for j in range(5)], absent=np.nan)


@pytest.fixture
def scores(labels):
    """Probabilities that know something of the labels, with ties."""
    rng = np.random.default_rng(4)
    truth = np.nan_to_num(labels.to_numpy(), nan=0.5)
    return (0.6 * rng.random(labels.shape) + 0.4 * truth).round(2)


SUITE = """
title = "Two methods on three sets"
kind = "supervised"
paper = "C-GMVAE"
table = "1"
setting = "80/10/10 split"
data = ["emotions", "scene", "yeast"]
metrics = ["f1_micro", "hamming_loss"]
seeds = [0, 1]

[methods]
BR = "br"
MLP = "mlp"
MLkNN = "mlknn"
"<b>bold</b>" = "no-such-method"

[protocols.honest]

[protocols.as-published]
threshold = "test"
"""


@pytest.fixture
def suite(tmp_path):
    from labelweave.bench.suite import load_suite

    path = tmp_path / "two.toml"
    path.write_text(SUITE)
    return load_suite(path)


@pytest.fixture
def results(tmp_path, suite):
    """A folder of results with made-up scores; the last cell failed."""
    from labelweave.bench.running.plan import make_plan
    from labelweave.bench.storing.store import Store

    store = Store(tmp_path / "results")
    store.create()
    store.write_suite(suite)
    cells = [cell for cell in make_plan(suite).cells if cell.method != "no-such-method"]
    for k, cell in enumerate(cells):
        failed = k == len(cells) - 1
        store.write(made_up_record(cell, k, failed=failed))
    return store.folder


def made_up_record(cell, k, *, failed=False):
    from labelweave.bench.running.worker import failed_record

    level = {"br": 0.5, "mlp": 0.7, "mlknn": 0.6}[cell.method]
    score = level + 0.01 * cell.seed + (0.1 if cell.protocol.name == "as-published" else 0.0)
    similarity = {"names": ["a<i>", "b"], "values": [[1, 0.3], [0.3, 1]]}
    record = failed_record(cell, "ValueError", "<u>too few</u>") | {
        "cell": f"cell-{k:03d}",
        "dataset_facts": {"rows": 10, "features": 2, "labels": 3, "cardinality": 1.5},
        "seconds": {"fit": 1.0 + k, "wall": 2.0 + k, "cpu": 1.0},
        "memory": {"peak": 100.0 + k, "before": 50.0, "how": "per cell"},
        "finished": "2026-01-01T00:00:00+00:00",
    }
    if not failed:
        record |= {"error": None, "scores": {"f1_micro": score, "hamming_loss": 1 - score}}
    if cell.method == "mlp":
        losses = {"loss": [2.0, 1.0], "val_loss": [2.0, 1.5]}
        record["history"] = {"epoch": [1, 2], **losses, "test_map": [0.1, None]}
        record["artifacts"] = {"label_similarity": similarity}
    return record
