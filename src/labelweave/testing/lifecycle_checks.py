"""Checks of parameters, refitting, copying, pickling, saving and loading."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _is_fitted

from labelweave.labels import as_labels
from labelweave.persistence import load, model_info
from labelweave.testing.check_tools import NAMES, Check, blobs, fresh, linear, refused, same


def check_parameters(estimator: Any) -> None:
    """Every estimator has the common parameters; wrong ones are refused by fit, not before."""
    X, Y = linear()
    parameters = estimator.get_params(deep=False)
    assert {"threshold", "validation_fraction", "random_state"} <= set(parameters)
    model = fresh(estimator, threshold=0.3)
    copy = clone(model.fit(X, Y))
    assert not _is_fitted(copy), "a clone must not be fitted"
    assert copy.get_params(deep=False).keys() == parameters.keys()
    assert copy.threshold == 0.3
    for name, value in (("threshold", "nonsense"), ("validation_fraction", 1.5)):
        wrong = clone(estimator).set_params(**{name: value})
        with refused(f"{name}={value!r}", name):
            wrong.fit(X, Y)


def check_refit_forgets(estimator: Any) -> None:
    """A second fit, to other features and labels, keeps nothing of the first."""
    X, Y = linear()
    other_X, other_Y = blobs()
    expected = fresh(estimator).fit(X, Y)
    again = fresh(estimator, threshold="per-label")
    again.fit(other_X, as_labels(np.hstack([other_Y, other_Y]), names=list("abcdef")))
    again.set_params(threshold=0.5).fit(X, Y)
    same(again.predict_proba(X), expected.predict_proba(X), "after a refit", exact=True)
    same(again.predict(X), expected.predict(X), "label sets after a refit", exact=True)
    assert list(again.label_names_) == list(expected.label_names_)
    assert set(vars(again)) == set(vars(expected)), "attributes of an earlier fit stay"


def check_pickle(estimator: Any) -> None:
    """Copies to other processes (joblib, GridSearchCV with n_jobs) predict the same."""
    X, Y = linear()
    model = fresh(estimator, threshold="per-label").fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    same(copy.predict_proba(X), model.predict_proba(X), "an unpickled copy", exact=True)
    same(copy.predict(X), model.predict(X), "label sets of an unpickled copy", exact=True)


def check_save_and_load(estimator: Any) -> None:
    """A loaded model predicts the same bits: with names, unknowns and sparse X."""
    import scipy.sparse as sp

    X, Y = linear()
    unknown = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    labels = as_labels(unknown, names=NAMES, descriptions={"sea": "salt water"})
    for form in (np.asarray, sp.csr_array):
        model = fresh(estimator, threshold="per-label").fit(form(X), labels)
        again = _through_disk(model)
        same(again.predict_proba(X), model.predict_proba(X), "a loaded model", exact=True)
        same(again.predict(X), model.predict(X), "label sets of a loaded model", exact=True)
        assert again.predict_labels(X) == model.predict_labels(X)
        assert list(again.label_names_) == list(NAMES)
        assert again.label_descriptions_ == {"sea": "salt water"}
        assert again.threshold_.to_dict() == model.threshold_.to_dict()
        assert again.score(X, unknown) == model.score(X, unknown)
    same(again.fit(X, Y).predict_proba(X),
         fresh(estimator, threshold="per-label").fit(X, Y).predict_proba(X),
         "a loaded model fitted again", exact=True)  # fmt: skip


def check_save_and_load_of_classes(estimator: Any) -> None:
    """The classes of a one-dimensional target are the same after loading."""
    X, Y = linear()
    y = np.array(["no", "yes"])[Y[:, 0]]
    model = fresh(estimator).fit(X, y)
    again = _through_disk(model)
    assert (again.predict(X) == model.predict(X)).all()
    assert again.predict(X).dtype == model.predict(X).dtype


def _through_disk(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        assert model_info(path).label_names == [str(name) for name in model.label_names_]
        return load(path)


def check_documentation(estimator: Any) -> None:
    """The docstring of the class has a list of parameters and an example."""
    text = type(estimator).__doc__ or ""
    assert "Parameters\n" in text, "the docstring has no section Parameters"
    assert "Examples\n" in text, "the docstring has no section Examples"


CHECKS = (
    Check(check_parameters, of_variants=True),
    Check(check_refit_forgets, of_variants=True),
    Check(check_pickle, of_variants=True),
    Check(check_save_and_load, of_variants=True),
    Check(check_save_and_load_of_classes),
    Check(check_documentation, of_variants=True),
)
