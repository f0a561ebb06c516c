"""Reports on models of every kind."""

import re
import sys

import numpy as np
import pytest

import labelweave as lw
from labelweave.exceptions import InputError, MissingExtraError
from labelweave.methods import method_of

EVIL = "<img src=x onerror=alert(1)>"


def plots_of(page):
    return re.findall(r'id="plot-([a-z-]+)"', page)


def fitted(data, method="mlknn", **parameters):
    return lw.make(method, **parameters).fit(data.X, data.Y)


def test_a_model_in_memory(make_data, page):
    model = fitted(make_data(), k=3)
    text = page(model, make_data(seed=1))
    assert "<h1>MLkNN on shapes</h1>" in text
    assert "it is not known whether the model was trained on them" in text
    assert plots_of(text) == [
        "label-scores",
        "precision-recall",
        "reliability",
        "threshold",
        "important-columns",
        "co-occurrence",
        "confusion",
    ]
    assert "MLkNN does not train in epochs" in text


def test_scores_are_those_of_evaluate(make_data, page, quick_plots):
    data = make_data(seed=1)
    model = fitted(make_data(), k=3)
    text = page(model, (data.X, data.Y))
    for name, value in lw.evaluate(model, data).items():
        assert re.search(rf">{value:.4f}</td><td[^>]*>\w+</td><td[^>]*>{re.escape(name)}<", text)


def test_embeddings_and_learning_curves_of_a_neural_method(make_data, page):
    small = {"epochs": 2, "encoder": (8,), "label_encoder": (8,), "decoder": (8,)}
    model = fitted(make_data(), "c-gmvae", embedding_size=4, latent_size=2, random_state=0, **small)
    text = page(model, make_data(seed=1))
    assert {"learning-curves", "label-embeddings"} <= set(plots_of(text))
    assert "2 epochs" in text


def test_the_method_inside_a_text_classifier(page, quick_plots):
    texts = ["the sea is blue", "a hot sun", "hot sun over the blue sea"] * 20
    labels = lw.as_labels([["sea"], ["sun"], ["sea", "sun"]] * 20)
    inner = lw.MLP(epochs=2, hidden=(4,), random_state=0)
    model = lw.TextClassifier(inner, random_state=0).fit(texts, labels)
    text = page(model, lw.Dataset(texts[:6], labels[:6], name="news"))
    assert "<h1>MLP on news</h1>" in text
    assert "learning-curves" in plots_of(text)
    assert "hot sun over the blue sea" in text


def test_names_are_never_markup(make_data, page):
    names = (EVIL, "</title><script>alert(1)</script>", "$a$")
    text = page(fitted(make_data(names=names), k=3), make_data(names=names, seed=1))
    assert "<img" not in text
    assert text.count("<script>") == 1
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_scores_ignore_unknown_labels(make_data, page, quick_plots):
    def hide(Y):
        Y[::3, 0] = np.nan
        return Y

    text = page(fitted(make_data(), k=3), make_data(seed=1, change=hide))
    assert "27 entries of the labels are unknown" in text
    assert "predicted, truth unknown" in text


def test_the_same_input_gives_the_same_bytes_also_with_sparse_labels(make_data, page):
    model = fitted(make_data(), k=3)
    text = page(model, make_data(seed=1))
    assert page(model, make_data(seed=1)) == text
    assert page(model, make_data(seed=1, sparse=True)) == text
    assert not re.search(r"https?://|//cdn|@import|url\((?!#)", text)  # it needs no other file


def test_a_single_label(make_data, page, quick_plots):
    model = fitted(make_data(names=("red",)), k=3)
    text = page(model, make_data(names=("red",), seed=1))
    assert "Fewer than two labels occur in the scored rows." in text
    assert "precision-recall" in plots_of(text)
    assert "co-occurrence" not in plots_of(text)


def test_a_label_without_a_positive(make_data, page):
    def without(Y):
        Y[:, 1] = 0
        return Y

    text = page(fitted(make_data(), k=3), make_data(seed=1, change=without))
    assert "1 of 3 labels have no positive among the scored rows" in text


def test_no_positive_at_all(make_data, page, quick_plots):
    text = page(fitted(make_data(), k=3), make_data(seed=1, change=np.zeros_like))
    assert "there are no precision-recall curves" in text
    assert "No two labels occur in the same row." in text


def test_one_class_per_row(make_data, page, quick_plots):
    data = make_data()
    classes = np.array(["a", "b", "c"])[data.Y.to_numpy().argmax(axis=1)]
    model = lw.make("mlknn", k=3).fit(data.X, classes)
    labels = lw.as_labels([[name] for name in classes], names=["a", "b", "c"])
    assert "label-scores" in plots_of(page(model, (data.X, labels)))


def test_many_labels_are_reduced_to_the_most_frequent(make_data, page):
    names = [f"l{j}" for j in range(120)]
    model = fitted(make_data(names=names), k=3)
    text = page(model, make_data(names=names, seed=1), n_shown=5)
    assert "The 5 most frequent of 120 labels" in text
    assert "Scores of the 100 most frequent labels" in text
    assert len(text) < 2_000_000


def test_thresholds_per_label_are_not_one_line(make_data, page, quick_plots):
    data = make_data()
    model = fitted(data, k=3, threshold="per-label", random_state=0)
    text = page(model, make_data(seed=1))
    assert "This is not one threshold for all labels" in text
    assert "threshold of the model," not in text


def test_the_method_at_the_end_of_a_pipeline(make_data, page, quick_plots):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = make_data()
    model = make_pipeline(StandardScaler(), lw.MLP(epochs=2, hidden=(4,), random_state=0))
    text = page(model.fit(data.X, data.Y), make_data(seed=1))
    assert "<h1>MLP on shapes</h1>" in text
    assert "The model makes label sets by: label sets by FixedThreshold" in text


def test_anything_with_probabilities(make_data, page, quick_plots):
    class Own:
        def predict_proba(self, X):
            return (X + X[:, ::-1]) / 2

        def predict(self, X):
            return self.predict_proba(X) > 0.5

    text = page(Own(), make_data())
    assert "<h1>Own on shapes</h1>" in text
    assert "The model makes label sets by" not in text


def test_markdown(make_data, tmp_path):
    model = fitted(make_data(), k=3)
    path = lw.report(model, make_data(seed=1), tmp_path / "shapes.md")
    text = path.read_text()
    for name in re.findall(r"\((shapes-plots/[^)]+)\)", text):
        assert (tmp_path / name).read_text().startswith("<?xml")
    assert text.count("](shapes-plots/") == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-folder",), "does not exist"),
        ((__file__,), "is a file"),
        ((".",), "neither the folder of a model nor that of a benchmark run"),
        ((lw.make("mlknn"),), "pass data="),
        ((lw.make("mlknn"), 3), "data must be a Dataset"),
        ((lw.make("mlknn"), "scene", "report.html"), "part and reading"),
    ],
)
def test_wrong_input_in_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        lw.report(*arguments, part="test" if len(arguments) == 3 else None)


def test_a_model_without_probabilities_or_label_sets(make_data, page):
    class SetsOnly:
        def predict(self, X):
            return (X > 0.5).astype(int)

    class ScoresOnly:
        def predict_proba(self, X):
            return X

    with pytest.raises(InputError, match="predicts no probabilities"):
        page(SetsOnly(), make_data())
    with pytest.raises(InputError, match="predicts no label sets"):
        page(ScoresOnly(), make_data())


def test_scores_that_are_no_probabilities(make_data, page, quick_plots):
    from sklearn.linear_model import RidgeClassifier

    data = make_data()
    model = RidgeClassifier().fit(data.X, data.Y.to_numpy())
    text = page(model, make_data(seed=1))
    assert "there is no reliability diagram" in text
    assert "no thresholds are compared" in text


def test_the_error_without_matplotlib_names_the_extra(make_data, page, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"labelweave\[report\]"):
        page(fitted(make_data(), k=3), make_data(seed=1))


def test_validation_rows_are_left_out_if_the_method_learned_from_them(make_data):
    from labelweave.reporting.evaluated_model import EvaluatedModel
    from labelweave.reporting.model_sections.threshold_effect import threshold_section

    rows, validation = make_data(), make_data(seed=1)
    text = {}
    for model in (lw.make("br"), lw.Weave(members=["br"], n_folds=2)):
        model.fit(rows.X, rows.Y, validation=validation)
        evaluated = EvaluatedModel(model, rows, "all rows", "", validation=validation)
        text[method_of(model).id] = str(threshold_section(evaluated))
    assert "validation rows (for choosing)" in text["br"]
    assert "validation rows (for choosing)" not in text["weave"]
    assert "trained on the validation rows too" in text["weave"]
