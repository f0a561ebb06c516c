"""Mixed tables and pipelines through a model folder, without pickle and into a fresh process."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection

import labelweave as lw
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence import load, model_info, save
from labelweave.persistence.native_checks import check_loaded
from product_table import product_columns, product_table

pytestmark = pytest.mark.filterwarnings("ignore:the column 'brand' has a value that no training")
FRAME, LABELS = product_table()
NEW = FRAME[:6].assign(brand=["acme", "unseen", None, "bolt", "core", "acme"])


def br():
    return lw.BinaryRelevance(random_state=0)


def assert_same_through_disk(model, folder, rows=NEW):
    save(model, folder)
    again = load(folder)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    return again


FRESH = """
import sys, warnings
import numpy as np, pandas as pd
import labelweave as lw
warnings.simplefilter("ignore")
folder, trusted, *names = sys.argv[1:]
rows = pd.read_json(folder + "/rows.json", dtype=False)
for name in names:
    model = lw.load(f"{folder}/{name}", trusted=[trusted])
    expected = np.load(f"{folder}/{name}.npy")
    assert np.array_equal(model.predict_proba(rows), expected), name
    assert len(model.predict_labels(rows)) == len(rows)
"""


def test_equal_predictions_in_a_fresh_process(tmp_path, tiny_encoder):
    sentences = lw.SentenceEmbedder(str(tiny_encoder), cache=False)
    with_sentences = lw.Table(FRAME, lw.TableEncoder(text=sentences))
    models = {
        "linear": br().fit(FRAME, LABELS),
        "trees": lw.BoostedTrees(max_iter=5, random_state=0).fit(FRAME, LABELS),
        "network": lw.MLP(epochs=2, random_state=0).fit(FRAME, LABELS),
        "sentences": br().fit(with_sentences, LABELS),
        "calibrated": lw.CalibratedMultiLabel(br(), cv=2, random_state=0).fit(FRAME, LABELS),
        "pipeline": make_pipeline(product_columns(sentences), br()).fit(FRAME, LABELS),
        "encoder": make_pipeline(lw.TableEncoder(), lw.MLkNN(k=3)).fit(FRAME, LABELS),
    }
    NEW.to_json(tmp_path / "rows.json", orient="records")
    rows = pd.read_json(tmp_path / "rows.json", dtype=False)
    for name, model in models.items():
        save(model, tmp_path / name)
        np.save(tmp_path / f"{name}.npy", model.predict_proba(rows))
    endings = {path.suffix for path in tmp_path.rglob("*/*") if path.is_file()}
    assert endings <= {".json", ".md", ".safetensors", ".skops", ".txt"}
    command = [sys.executable, "-c", FRESH, str(tmp_path), str(tiny_encoder), *models]
    ended = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    "first",
    [
        product_columns(CountVectorizer()),
        product_columns(HashingVectorizer(n_features=64)),
        product_columns(lw.TfidfEmbedder()),
        make_pipeline(product_columns(), TruncatedSVD(4, random_state=0)),
        make_pipeline(product_columns(), SparseRandomProjection(8, random_state=0)),
        FeatureUnion([("hand", product_columns()), ("found", lw.TableEncoder())]),
        make_column_transformer(
            (KNNImputer(), make_column_selector(dtype_include=np.number)),
            (
                OrdinalEncoder(
                    handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
                ),
                ["brand"],
            ),
            (make_pipeline(OneHotEncoder(), SelectKBest(chi2, k=1)), make_column_selector("new")),
        ),
        make_column_transformer(
            (make_pipeline(SimpleImputer(), KBinsDiscretizer(3)), ["price"]),
            (make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p)), ["price"]),
            (OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist"), ["brand"]),
            ("drop", ["title"]),
        ),
        make_column_transformer(
            (make_pipeline(SimpleImputer(), QuantileTransformer(n_quantiles=5)), ["price"])
        ).set_output(transform="pandas"),
    ],
    ids=["counts", "hashes", "ours", "svd", "projection", "union", "selector", "bins", "pandas"],
)
def test_transformers(first, tmp_path):
    model = make_pipeline(first, br()).fit(FRAME, LABELS)
    again = assert_same_through_disk(model, tmp_path / "model")
    assert type(again) is lw.LabelPipeline
    assert again.label_names_.tolist() == ["light", "cheap"]
    assert model_info(tmp_path / "model").label_names == ["light", "cheap"]
    again.fit(FRAME, LABELS)


@pytest.mark.parametrize("cv", [2, "prefit"])
def test_a_calibrated_pipeline(cv, tmp_path):
    pipeline = make_pipeline(product_columns(lw.TfidfEmbedder()), br())
    pipeline = pipeline.fit(FRAME, LABELS) if cv == "prefit" else pipeline
    model = lw.CalibratedMultiLabel(pipeline, cv=cv, random_state=0).fit(FRAME, LABELS)
    again = assert_same_through_disk(model, tmp_path / "model")
    assert again.predict_labels(NEW) == model.predict_labels(NEW)


def test_texts(tmp_path):
    texts = FRAME["title"].tolist()
    model = make_pipeline(CountVectorizer(), br()).fit(texts, LABELS)
    assert_same_through_disk(model, tmp_path / "model", texts)


def test_a_pipeline_is_saved_without_its_cache(tmp_path):
    cached = make_pipeline(product_columns(), br(), memory=str(tmp_path / "cache"))
    again = assert_same_through_disk(cached.fit(FRAME, LABELS), tmp_path / "model")
    assert again.memory is None


def test_the_tuned_threshold_is_that_of_the_last_step(tmp_path):
    classifier = lw.BinaryRelevance(threshold="per-label", random_state=0)
    model = make_pipeline(product_columns(), classifier).fit(FRAME, LABELS)
    again = assert_same_through_disk(model, tmp_path / "model")
    assert again.threshold_.to_dict() == model[-1].threshold_.to_dict()


def double(X):
    return 2 * X


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (FunctionTransformer(lambda X: X), r"'steps\.0\.functiontransformer' .*\.<lambda>, "),
        (FunctionTransformer(double), r"contains test_saved_pipelines\.double, "),
        (make_column_transformer((FunctionTransformer(double), ["a"])), "double"),
    ],
)
def test_what_is_not_trusted_is_named(first, words, tmp_path):
    rows = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    model = make_pipeline(first, lw.MLkNN(k=1)).fit(rows, [["x"], ["x"], ["y"], ["y"]])
    with pytest.raises(InputError, match=words) as caught:
        save(model, tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_pipelines_that_cannot_be_saved(tmp_path):
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="the last step of the pipeline is LogisticRegression"):
        save(other, tmp_path / "model")
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(make_pipeline(product_columns(), br()), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# -- crafted folders -------------------------------------------------------------------


@pytest.mark.parametrize("number", [5, -1, "0", None])
def test_a_number_that_is_no_model(number):
    with pytest.raises(InputError, match="a model whose parts do not fit together"):
        check_loaded([{"labelweave model": number}], models=[br()])


def test_a_data_type_that_needs_much_memory():
    assert check_loaded([np.dtype("U10"), np.dtype(object)])
    with pytest.raises(InputError, match="a data type whose parts do not fit together"):
        check_loaded([np.dtype("U100000000")])


def rewritten(folder, change):
    """Change the steps in config.json, with hashes that fit."""
    from labelweave.persistence.manifest import _config_hash

    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config["parameters"]["steps"])
    path.write_text(json.dumps(config | {"sha256": _config_hash(config)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda steps: steps.pop(),
        lambda steps: steps.clear(),
        lambda steps: steps.reverse(),
        lambda steps: steps.__setitem__(0, 3),
    ],
    ids=["no classifier", "no steps", "reversed", "no step"],
)
def test_steps_that_are_no_pipeline(change, tmp_path):
    save(make_pipeline(product_columns(), br()).fit(FRAME, LABELS), tmp_path / "model")
    rewritten(tmp_path / "model", change)
    with pytest.raises(ModelFolderError):
        load(tmp_path / "model")


def test_files_of_a_pipeline_are_not_compressed(tmp_path):
    save(make_pipeline(product_columns(), br()).fit(FRAME, LABELS), tmp_path / "model")
    files = list((tmp_path / "model").rglob("*.skops"))
    assert files
    for file in files:
        with zipfile.ZipFile(file) as archive:
            assert {part.compress_type for part in archive.infolist()} == {zipfile.ZIP_STORED}
