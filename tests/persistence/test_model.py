"""A loaded model equals the saved one: predictions to the last bit, parameters, labels."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from crafted_folders import edit_json, with_arrays
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import labelweave as lw
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.labels import as_labels
from labelweave.persistence import load, model_info, save
from labelweave.thresholds import FixedThreshold, TopK


def through_disk(model, tmp_path):
    save(model, tmp_path / "model")
    return load(tmp_path / "model")


def test_predictions_come_back_to_the_bit(frequency, rows, labels, tmp_path):
    model = frequency(random_state=3, threshold=0.45).fit(rows, labels)
    again = through_disk(model, tmp_path)
    assert type(again) is frequency
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again.predict(rows).dtype == model.predict(rows).dtype
    assert again.get_params() == model.get_params()
    assert again.score(rows, labels) == model.score(rows, labels)


def test_every_fitted_attribute_comes_back(frequency, rows, labels, tmp_path):
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    model = frequency(random_state=3).fit(frame, labels)
    again = through_disk(model, tmp_path)
    fitted = {name for name in vars(model) if name.endswith("_")} | {"_single_label"}
    assert fitted <= set(vars(again))
    assert again.facts_ == model.facts_
    assert type(again.memory_) is type(model.memory_)
    assert (again.memory_ != model.memory_).nnz == 0
    assert again.direction_.flags.f_contiguous == model.direction_.flags.f_contiguous
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(again.label_names_, model.label_names_)
    np.testing.assert_array_equal(again.classes_, model.classes_)


@pytest.mark.parametrize(
    "classes", [["b", "a", "c"], [3, 1, 2], [5.0, 2.0, 1.0], [True, False, True]]
)
def test_classes_of_a_one_dimensional_target(frequency, rows, tmp_path, classes):
    y = np.array(classes)[np.arange(40) % 3]
    model = frequency(random_state=3).fit(rows, y)
    again = through_disk(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        {"a": [1, 2.5, True, None], "$": "a key that means something to the format"},
        {1: "one", (2, 3): "two"},
        (1, (2, [3])),
        float("nan"),
        np.float32(0.1),
        np.int64(7),
        np.bool_(True),
        np.dtype("float32"),
        Path("some") / "path",
        np.arange(6, dtype=">i4").reshape(2, 3)[:, ::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3)),
        np.array(2.5),
        np.array([["x", "y"], ["zz", ""]]),
        np.array(["a", None, 1.5], dtype=object),
        "half a \ud800 pair",
    ],
    ids=repr,
)
def test_values_of_many_kinds(frequency, rows, labels, tmp_path, value):
    again = through_disk(frequency(extra=value).fit(rows, labels), tmp_path)
    for loaded in (again.extra, again.held_):
        assert type(loaded) is type(value)
        if isinstance(value, np.ndarray):
            assert loaded.dtype == value.dtype.newbyteorder("=")
        np.testing.assert_equal(loaded, value)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_values(frequency, rows, labels, tmp_path, form):
    value = form(np.where(rows > 1, rows, 0))
    again = through_disk(frequency(extra=value).fit(rows, labels), tmp_path).extra
    assert type(again) is form
    np.testing.assert_array_equal(again.toarray(), value.toarray())


def test_label_matrices(frequency, rows, labels, tmp_path):
    value = as_labels(
        sp.csr_array(labels), names=["a", "b", "c"], descriptions={"b": "x"}, absent="unknown"
    )
    again = through_disk(frequency(extra=value).fit(rows, labels), tmp_path).extra
    assert (again.names, again.descriptions) == (value.names, value.descriptions)
    np.testing.assert_array_equal(again.to_numpy(), value.to_numpy())


def test_frames(frequency, rows, labels, tmp_path):
    value = pd.DataFrame({"epoch": [1, 2], "loss": [0.5, np.nan], "best": [False, True]})
    again = through_disk(frequency(extra=value).fit(rows, labels), tmp_path).extra
    pd.testing.assert_frame_equal(again, value, check_index_type=False)


def test_tensors_and_state_dicts(frequency, rows, labels, tmp_path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(3, 2)
    tied = {"a": layer.weight, "b": layer.weight, "half": torch.ones(2, dtype=torch.bfloat16)}
    value = {"net": layer.state_dict(), "tied": tied, "one": layer.bias[0], "empty": {}}
    again = through_disk(frequency(extra=value).fit(rows, labels), tmp_path).extra
    assert list(again["net"]) == ["weight", "bias"]
    assert torch.equal(again["net"]["weight"], layer.weight)
    assert torch.equal(again["tied"]["b"], layer.weight)
    assert again["tied"]["half"].dtype == torch.bfloat16
    assert torch.equal(again["one"], layer.bias[0])
    assert again["empty"] == {}


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=2.0),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2, random_state=0)),
        KNeighborsClassifier(3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn_estimators(frequency, rows, labels, tmp_path, estimator):
    parts = [estimator.fit(rows, labels[:, 0]), None]
    again = through_disk(frequency(extra=parts).fit(rows, labels), tmp_path).extra
    np.testing.assert_array_equal(again[0].predict_proba(rows), parts[0].predict_proba(rows))
    assert again[1] is None
    assert again[0].get_params().keys() == estimator.get_params().keys()


def test_unfitted_scikit_learn_parameter(frequency, rows, labels, tmp_path):
    again = through_disk(frequency(extra=LogisticRegression(C=2.0)).fit(rows, labels), tmp_path)
    assert again.extra.C == 2.0
    assert not hasattr(again.extra, "coef_")


def test_models_inside_a_model(frequency, rows, labels, tmp_path):
    teachers = [frequency(random_state=k).fit(rows, labels) for k in (1, 2)]
    model = frequency(extra={"teachers": teachers, "student": frequency(extra=(1, 2))})
    model.fit(rows, labels)
    again = through_disk(model, tmp_path).extra
    for loaded, teacher in zip(again["teachers"], teachers, strict=True):
        np.testing.assert_array_equal(loaded.predict_proba(rows), teacher.predict_proba(rows))
    assert again["student"].extra == (1, 2)
    assert not hasattr(again["student"], "threshold_")
    inner = next(path for path in (tmp_path / "model").iterdir() if path.is_dir())
    assert load(inner).n_labels_ == 3


@pytest.mark.parametrize("threshold", [0.3, "top-2", FixedThreshold(0.6), TopK(1)])
def test_thresholds(frequency, rows, labels, tmp_path, threshold):
    model = frequency(threshold=threshold, random_state=0).fit(rows, labels)
    again = through_disk(model, tmp_path)
    assert repr(again.threshold) == repr(threshold)
    assert repr(again.threshold_) == repr(model.threshold_)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_a_loaded_model_can_be_fitted_and_saved_again(saved, rows, labels, frequency):
    model = load(saved)
    model.fit(rows[:30], labels[:30]).save(saved)
    expected = frequency(random_state=1).fit(rows[:30], labels[:30]).predict_proba(rows)
    np.testing.assert_array_equal(load(saved).predict_proba(rows), expected)


def test_custom_state_is_used(frequency, rows, labels, tmp_path, monkeypatch):
    monkeypatch.setattr(
        frequency, "_state", lambda self: {"half": self.frequency_ / 2}, raising=False
    )

    def set_state(self, state):
        self.frequency_ = state["half"] * 2
        self.direction_ = np.zeros((6, 3))
        self.memory_ = sp.csr_array((1, 1))

    monkeypatch.setattr(frequency, "_set_state", set_state, raising=False)
    model = frequency(random_state=0).fit(rows, labels)
    again = through_disk(model, tmp_path)
    np.testing.assert_array_equal(again.frequency_, model.frequency_)
    assert not hasattr(again, "facts_")


def test_parameters_of_the_run_are_not_saved(frequency, rows, labels, tmp_path, monkeypatch):
    monkeypatch.setattr(frequency, "_unsaved_parameters", ("extra",), raising=False)
    monkeypatch.setattr(frequency, "_state", lambda self: {}, raising=False)
    monkeypatch.setattr(frequency, "_set_state", lambda self, state: None, raising=False)
    again = through_disk(frequency(extra=print, random_state=4).fit(rows, labels), tmp_path)
    assert again.extra is None
    assert again.random_state == 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.random.RandomState(0), "RandomState"),
        (len, "code cannot be saved"),
        ([1, {"deep": lambda: None}], "extra.1.deep"),
        (object(), "type object"),
        (np.array([1 + 2j]), "complex128"),
        (np.ma.array([1.0]), "MaskedArray"),
        (sp.coo_array(np.eye(2)), "coo_array"),
        ({1, 2}, "type set"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_cannot_be_saved_are_named(frequency, rows, labels, tmp_path, value, words):
    model = frequency(extra=value).fit(rows, labels)
    with pytest.raises(InputError, match="parameter 'extra") as caught:
        save(model, tmp_path / "model")
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_values_that_contain_themselves_are_not_saved(frequency, rows, labels, tmp_path):
    endless = []
    endless.append({"again": endless})
    model = frequency().fit(rows, labels)
    model.facts_ = endless
    with pytest.raises(InputError, match="attribute 'facts_' cannot be saved: it contains itself"):
        save(model, tmp_path / "model")


def test_estimators_of_unknown_packages_are_not_saved(frequency, rows, labels, tmp_path):
    class Own(LogisticRegression):
        pass

    with pytest.raises(InputError, match=r"parameter 'extra' cannot be saved: it contains .*Own"):
        save(frequency(extra=Own()).fit(rows, labels), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_subclasses_unfitted_and_foreign_models_are_not_saved(frequency, rows, labels, tmp_path):
    class Own(frequency):
        pass

    with pytest.raises(InputError, match="not a registered method"):
        save(Own().fit(rows, labels), tmp_path / "model")
    with pytest.raises(InputError, match="not a registered method"):
        save(LogisticRegression().fit(rows, labels[:, 0]), tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(frequency(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_info_and_card_describe_the_model(frequency, rows, labels, tmp_path):
    Y = as_labels(labels, names=["sea", "sun | moon", "rain"], descriptions={"sea": "salt water"})
    model = frequency(extra=(512, 256), random_state=1).fit(rows, Y)
    save(model, tmp_path / "m", scores={"f1_micro": np.float64(0.5)}, data={"rows": 40})
    info = model_info(tmp_path / "m")
    assert info.method == "frequency"
    assert info.label_names == ["sea", "sun | moon", "rain"]
    assert info.label_descriptions == load(tmp_path / "m").label_descriptions_
    assert info.label_descriptions == {"sea": "salt water"}
    assert info.n_features == 6
    assert info.scores == {"f1_micro": 0.5}
    assert info.data == {"rows": 40}
    assert info.parameters["random_state"] == 1
    assert {"python", "labelweave", "numpy", "scikit-learn", "torch"} <= set(info.versions)
    assert json.loads(json.dumps(info.to_dict())) == info.to_dict()
    assert json.loads((tmp_path / "m" / "metrics.json").read_text()) == {"f1_micro": 0.5}
    card = (tmp_path / "m" / "README.md").read_text()
    for words in ("`frequency`", "f1_micro | 0.5", "- sea", "sun \\| moon", "Licence", "lw.load"):
        assert words in card
    assert "| extra | [512, 256] |" in card
    with pytest.raises(InputError, match=r"data\.source has the type object"):
        save(model, tmp_path / "m", data={"source": object()})


def test_package_level_names(saved, rows):
    assert lw.load(saved).predict_proba(rows).shape == (40, 3)
    assert lw.save is save


def test_a_model_of_a_method_that_is_not_installed(saved, monkeypatch):
    from labelweave import methods

    monkeypatch.setattr(methods.metadata, "entry_points", lambda group: ())
    methods._methods.cache_clear()
    with pytest.raises(ModelFolderError, match="'frequency', which is not installed here"):
        load(saved)
    monkeypatch.undo()
    methods._methods.cache_clear()


@pytest.mark.parametrize("method", ["extra-trees", "boosted-trees"])
def test_trees_that_would_not_end_are_refused(rows, labels, tmp_path, method):
    lw.make(method, random_state=0).fit(rows, labels).save(tmp_path / "model")
    n_nodes = len(load(tmp_path / "model").node_feature_)
    circle = np.roll(np.arange(n_nodes, dtype=np.int32), 1)
    with_arrays(tmp_path / "model", node_children_=np.stack([circle, circle], axis=1))
    with pytest.raises(ModelFolderError, match="nodes of its trees do not fit together"):
        load(tmp_path / "model")


def test_neighbours_beyond_the_labels_are_refused(rows, labels, tmp_path):
    lw.make("mlknn", neighbors="matrix").fit(rows, labels).save(tmp_path / "model")
    with_arrays(tmp_path / "model", train_positive_=np.ones((2, 3), np.int32))
    with pytest.raises(InputError, match="not among the training rows"):
        load(tmp_path / "model").predict_proba(rows)


@pytest.mark.parametrize(
    ("method", "arrays"),
    [
        ("ls-svm", {"weights_": np.ones((2, 2))}),  # an error of the arithmetic
        ("mlknn", {"posterior_": np.full((3, 12), np.nan)}),
    ],
)
def test_a_crafted_model_that_cannot_predict_says_so(rows, labels, tmp_path, method, arrays):
    lw.make(method).fit(rows, labels).save(tmp_path / "model")
    with_arrays(tmp_path / "model", **arrays)
    again = load(tmp_path / "model")
    with pytest.raises(ModelFolderError, match="cannot predict"):
        again.predict_proba(rows)
    again.fit(rows, labels).predict_proba(rows)


@pytest.mark.parametrize("name", ["n_features_in_", "n_labels_", "label_prevalence_"])
def test_numbers_of_labels_and_features_must_fit(rows, labels, tmp_path, name):
    lw.make("mlknn").fit(rows, labels).save(tmp_path / "model")
    change = {name: -3}
    edit_json(tmp_path / "model", "state.json", lambda state: state["common"].update(change))
    with pytest.raises(ModelFolderError, match="do not fit together"):
        load(tmp_path / "model")
