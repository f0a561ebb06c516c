"""Pipelines that end in a classifier of the library: labels, thresholds, messages, capabilities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.label_pipeline import as_label_pipeline
from labelweave.pipeline.model_input import input_of_model
from product_table import product_columns, product_table

FRAME, LABELS = product_table()


@pytest.fixture(scope="module")
def plain():
    return make_pipeline(product_columns(), lw.BinaryRelevance(random_state=0)).fit(FRAME, LABELS)


@pytest.fixture
def pipeline(plain):
    return as_label_pipeline(plain)


def test_labels_and_predictions_are_those_of_the_last_step(plain, pipeline):
    assert pipeline.label_names_.tolist() == ["light", "cheap"]
    assert pipeline.n_labels_ == 2
    assert pipeline.threshold_ is plain[-1].threshold_
    np.testing.assert_array_equal(pipeline.predict_proba(FRAME), plain.predict_proba(FRAME))
    np.testing.assert_array_equal(pipeline.predict(FRAME), plain.predict(FRAME))
    assert pipeline.predict_labels(FRAME[:9]) == plain[-1].predict_labels(
        plain[:-1].transform(FRAME[:9])
    )
    assert pipeline.score(FRAME, LABELS) == plain.score(FRAME, LABELS)


def test_it_is_scikit_learns_pipeline(pipeline):
    assert isinstance(pipeline, Pipeline)
    copy = clone(pipeline)
    assert type(copy) is lw.LabelPipeline
    again = copy.set_params(binaryrelevance__threshold=0.3).fit(lw.Table(FRAME), LABELS)
    assert again.threshold_.value == 0.3
    assert as_label_pipeline(pipeline) is pipeline
    other = make_pipeline(StandardScaler(), LogisticRegression())
    assert as_label_pipeline(other) is other


def test_a_threshold_is_tuned_behind_the_transformers(plain):
    pipeline = as_label_pipeline(clone(plain).fit(FRAME, LABELS))
    pipeline.tune_threshold(FRAME, LABELS, "per-label")
    assert len(pipeline.threshold_.applied_threshold) == 2
    assert pipeline[-1].threshold_ is pipeline.threshold_


def test_rows_of_a_table_and_of_an_array(pipeline):
    expected = pipeline.predict_proba(FRAME[:5])
    np.testing.assert_array_equal(pipeline.predict_proba(lw.Table(FRAME[:5])), expected)
    numbers = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [4.0, 3.0, 2.0, 1.0]})
    named = lw.LabelPipeline([("scale", StandardScaler()), ("classifier", lw.MLkNN(k=1))])
    named.fit(numbers, [["x"], ["x"], ["y"], ["y"]])
    expected = named.predict_proba(numbers)
    np.testing.assert_array_equal(named.predict_proba(numbers.to_numpy()), expected)
    with pytest.raises(InputError, match="X has 1 columns, but the pipeline expects 2"):
        named.predict(numbers.to_numpy()[:, :1])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (FRAME.drop(columns="brand"), "'columntransformer' .* cannot use these rows: .*brand"),
        (FRAME.assign(price="cheap"), "'columntransformer' .* cannot use these rows: .*cheap"),
    ],
)
def test_a_step_that_cannot_use_rows_is_named(pipeline, rows, words):
    with pytest.raises(InputError, match=words) as caught:
        pipeline.predict_proba(rows)
    assert "\n" not in str(caught.value)


def test_a_pipeline_that_ends_in_another_classifier():
    pipeline = lw.LabelPipeline([("classifier", LogisticRegression())])
    pipeline.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="the last step of the pipeline is LogisticRegression"):
        pipeline.label_names_  # noqa: B018


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (TfidfVectorizer(), True),
        (make_pipeline(CountVectorizer(), OneHotEncoder()), True),
        (FeatureUnion([("words", TfidfVectorizer()), ("others", "passthrough")]), True),
        (lw.TfidfEmbedder(), True),
        (StandardScaler(), False),
        (lw.TableEncoder(), False),
        ("passthrough", False),
    ],
)
def test_the_first_step_decides_whether_texts_are_accepted(first, expected):
    able = capabilities(lw.LabelPipeline([("first", first), ("last", lw.ClassifierChain())]))
    assert able.texts is expected
    assert able.vectors is not expected
    assert able.known_labels


def test_known_labels_reach_the_last_step():
    pipeline = lw.LabelPipeline([("scale", StandardScaler()), ("chain", lw.ClassifierChain())])
    X = np.random.default_rng(0).normal(size=(40, 3))
    pipeline.fit(X, (X[:, :2] > 0).astype(int))
    known = np.array([[1, np.nan], [0, np.nan]])
    assert pipeline.predict_proba(X[:2], known=known)[:, 0].tolist() == [1, 0]


@pytest.mark.parametrize("form", [lambda model: model, as_label_pipeline], ids=["plain", "ours"])
@pytest.mark.parametrize("rows", [FRAME, lw.Table(FRAME)], ids=["frame", "table"])
def test_it_is_evaluated_reported_on_and_audited(plain, form, rows, tmp_path, quick_plots):
    data = lw.Dataset(rows, LABELS, name="products")
    model = form(plain)
    assert lw.evaluate(model, data)["f1_macro"] > 0.8
    text = lw.report(model, data, tmp_path / "report.html").read_text()
    assert "<h1>BinaryRelevance on products</h1>" in text
    changed = LABELS.copy()
    row = int(np.argmax(LABELS["light"]))
    changed.loc[row, "light"] = 0
    result = lw.audit(lw.Dataset(rows, changed, name="products"), method=model, top=5)
    assert (row, "light") in {(finding.row, finding.label) for finding in result.findings}


def test_columns_of_a_file_are_matched_by_name():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    columns = make_column_transformer((StandardScaler(), ["a", "b"]))
    model = as_label_pipeline(make_pipeline(columns, lw.BinaryRelevance()).fit(frame, frame > 0))
    turned = frame[["b", "a"]]
    data = lw.Dataset(turned.to_numpy(), (frame > 0).astype(int), feature_names=["b", "a"])
    rows = input_of_model(model, data).X
    np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(frame))
