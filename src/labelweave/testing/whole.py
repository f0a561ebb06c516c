"""Methods whose rows are whole texts or images and no features: what all of them do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from labelweave.labels import as_labels
from labelweave.testing.common import fresh, learns, mean_ap, same
from labelweave.testing.data import NAMES
from labelweave.testing.images import pictures
from labelweave.testing.texts import documents, takes_texts


def _examples(estimator: Any, n_rows: int = 50) -> tuple[Any, np.ndarray]:
    """Rows that the estimator takes, and their labels."""
    return (documents if takes_texts(estimator) else pictures)(n_rows)


def check_probabilities(estimator: Any) -> None:
    """predict_proba: floats strictly between 0 and 1; predict: 0/1 by the threshold."""
    rows, Y = _examples(estimator)
    model = fresh(estimator, threshold=0.4)
    assert model.fit(rows, as_labels(Y, names=NAMES)) is model, "fit must return self"
    probabilities = model.predict_proba(rows[:7])
    assert probabilities.shape == (7, 3)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    same(model.predict(rows[:7]), probabilities >= 0.4, "predict by the threshold", exact=True)
    assert list(model.label_names_) == list(NAMES)


@learns
def check_learns(estimator: Any) -> None:
    """It ranks new rows much better than chance."""
    rows, Y = _examples(estimator, 160)
    model = fresh(estimator).fit(rows[:120], as_labels(Y[:120], names=NAMES))
    reached, chance = mean_ap(Y[120:], model.predict_proba(rows[120:])), Y[120:].mean()
    assert reached > chance + 0.15, f"mean average precision {reached:.3f}, chance {chance:.3f}"


def check_each_row_is_predicted_by_itself(estimator: Any) -> None:
    rows, Y = _examples(estimator)
    model = fresh(estimator).fit(rows, as_labels(Y, names=NAMES))
    together = model.predict_proba(rows[:5])
    alone = np.vstack([model.predict_proba(rows[k : k + 1]) for k in range(5)])
    same(alone, together, "row by row against all at once")


def check_same_seed_same_result(estimator: Any) -> None:
    rows, Y = _examples(estimator)
    labels = as_labels(Y, names=NAMES)
    found = [fresh(estimator).fit(rows, labels).predict_proba(rows[:9]) for _ in range(2)]
    same(found[0], found[1], "two fits with one seed", exact=True)


def check_saved_and_loaded(estimator: Any) -> None:
    """A folder gives the same model, with the labels that were added, and takes more of them."""
    from labelweave.persistence import load

    rows, Y = _examples(estimator)
    model = fresh(estimator).fit(rows, as_labels(Y, names=NAMES))
    grows = hasattr(model, "add_labels")
    if grows:
        model.add_labels(["storm", "light"], {"storm": "rain and wind"})
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
        same(loaded.predict_proba(rows), model.predict_proba(rows), "loaded", exact=True)
        assert list(loaded.label_names_) == list(model.label_names_)
        if grows:
            again = [m.add_labels("cloud").predict_proba(rows[:3]) for m in (loaded, model)]
            same(again[0], again[1], "a label added after loading", exact=True)
