"""Checks of tables with mixed columns: numbers, categories, dates and texts with blanks."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import as_labels
from labelweave.tables import Table
from labelweave.testing.check_tools import NAMES, Check, fresh, refused, same

if TYPE_CHECKING:
    import pandas as pd

_WORDS = ("red", "blue", "warm", "light", "old", "new")


def products(n_rows: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw a table with an id, a number with blanks, a category, a date and a text.

    Each of the three labels depends on one of the columns in the middle.

    >>> frame, Y = products(20)
    >>> list(frame), Y.shape
    (['id', 'price', 'brand', 'date', 'title'], (20, 3))
    """
    import pandas as pd

    random = np.random.default_rng(seed)
    price, brand = random.normal(size=n_rows), random.integers(0, 4, n_rows)
    day = random.integers(0, 700, n_rows)
    title = [" ".join(random.permutation(_WORDS)[:4]) for _ in range(n_rows)]
    Y = np.column_stack([price > 0, brand < 2, day > 350]).astype(np.int64)
    names = np.array(["acme", "bolt", "core", None], dtype=object)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
    columns = {
        "id": [f"p{k}" for k in range(n_rows)],
        "price": np.where(random.random(n_rows) < 0.1, np.nan, price),
        "brand": names[brand],
        "date": dates.strftime("%Y-%m-%d"),
        "title": title,
    }
    return pd.DataFrame(columns), Y


def check_mixed_tables(estimator: Any) -> None:
    """A table is fitted, saved and predicted, by the names of its columns; what is new is said."""
    from labelweave.persistence import load

    frame, Y = products()
    targets = np.where(np.random.default_rng(0).random(Y.shape) < 0.1, np.nan, Y)
    labels = as_labels(targets, names=NAMES)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = fresh(estimator).fit(frame, labels)
    said = [str(w.message) for w in warned if issubclass(w.category, LabelweaveWarning)]
    assert sum("'id' is left out" in sentence for sentence in said) == 1, f"said at fit: {said}"
    assert list(model.feature_names_in_) == list(frame), "names of the columns"
    assert model.n_features_in_ == 5
    rows = frame[:9]
    expected = model.predict_proba(rows)
    assert expected.shape == (9, 3)
    assert np.isfinite(expected).all()
    same(model.predict_proba(rows[rows.columns[::-1]]), expected, "other order", exact=True)
    same(model.predict_proba(Table(rows)), expected, "a Table", exact=True)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    same(loaded.predict_proba(rows), expected, "loaded", exact=True)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        new = loaded.predict_proba(rows.assign(brand="dune", price=np.nan, date=None))
    assert np.isfinite(new).all()
    said = [str(w.message) for w in warned if issubclass(w.category, LabelweaveWarning)]
    assert len(said) == 1, f"one sentence about the new value: {said}"
    assert "'brand'" in said[0], said
    assert "'dune'" in said[0], said
    with refused("a word in place of a number", "row 1", "'price'", "'cheap'", error=InputError):
        model.predict_proba(rows[:3].assign(price=["1", "cheap", "2"]))


CHECKS = (Check(check_mixed_tables, of_variants=True),)
