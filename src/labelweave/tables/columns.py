"""What is made of one column: numbers of numbers and dates, one-hot columns or codes of categories,
weights of words of texts.

A column is read into cells (`read`), from which its features are computed. Numbers and categories
fill a fixed number of slots per row, which is what both a dense array and a sparse matrix are made
of: `encode` returns for each row the features of the slots (None: the features in their order) and
their values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from labelweave.exceptions import InputError
from labelweave.input_checks import LARGEST
from labelweave.methods import make_part
from labelweave.tables.kinds import (
    Words,
    date_format,
    is_dates,
    read_dates,
    read_numbers,
    read_words,
)

if TYPE_CHECKING:
    import pandas as pd

    from labelweave.labels import LabelMatrix

__all__ = ["TEXT_PARTS", "CategoryColumn", "NumberColumn", "TextColumn", "learn_texts"]

Encoded = tuple[np.ndarray | None, np.ndarray]
TEXT_PARTS = {"tfidf": "tfidf-embedder", "fast": "fast-embedder", "minilm": "sentence-embedder"}
MAX_CODES = 254  # histograms of boosted trees have at most 255 bins
MAX_STORED = 10_000  # values of a column that are all stored
_SOFT_LIMIT = 3.0  # of scaled numbers
_LARGEST_CENTRE = 1e300  # differences of two such numbers are finite
_DAY = 86_400.0
_SMOOTHING = 10.0  # rows with the mean of the label that are added to those of each category
_N_FOLDS = 5


@dataclass
class NumberColumn:
    """A column of numbers, of yes and no, or of dates.

    Numbers are centred at their median, divided by the distance of their quartiles, and softly
    limited to the range from -3 to 3 (D. Holzmüller et al., Better by default, NeurIPS 2024), so
    that outliers do no harm; a blank is 0, and a column of its own is 1 for blanks. With `native`
    the numbers stay as they are up to 2**64, the largest that methods take, and blanks are NaN.
    """

    name: str
    kind: str
    native: bool
    parts: list[str] = field(default_factory=list)
    centre: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scale: np.ndarray = field(default_factory=lambda: np.ones(0))
    has_blank: bool = False
    format: str | None = None  # of dates that are strings
    origin: float = 0.0  # the earliest date, in seconds

    def learn(self, column: pd.Series, words: Words | None) -> np.ndarray:
        """Fit to a column, and return its cells."""
        if self.kind == "date" and not is_dates(column.dtype):
            words = words or read_words(column)
            self.format = date_format(words.values)
        cells = self.read(column, words)
        self.has_blank = bool(np.isnan(cells).any())
        self.parts = [self.name]
        if self.kind == "date":
            self.origin = float(np.nanmin(cells)) if len(cells) else 0.0
            self.parts = [f"{self.name}: {part}" for part in ("days", "year", "month", "weekday")]
            if np.nanmax(cells % _DAY) > 0:
                self.parts.append(f"{self.name}: hour")
        self.centre, self.scale = np.zeros(len(self.parts)), np.ones(len(self.parts))
        if self.kind == "yes/no":
            self.centre[:], self.scale[:] = 0.5, 0.5
        elif not self.native:
            for k, part in enumerate(self._numbers(cells)):
                self.centre[k], self.scale[k] = _centre_and_scale(part)
        return cells

    def read(self, column: pd.Series, words: Words | None = None) -> np.ndarray:
        """Return numbers, or dates in seconds; NaN for blanks."""
        if self.kind == "date":
            return read_dates(column, self.format, words)
        return read_numbers(column, words, yes_no=self.kind == "yes/no")

    @property
    def slots(self) -> int:
        return len(self.parts) + (self.has_blank and not self.native)

    @property
    def names(self) -> list[str]:
        return [*self.parts, *([f"{self.name} is blank"] * (self.slots - len(self.parts)))]

    @property
    def made(self) -> str:
        what = {"number": "the number", "yes/no": "1 or 0", "date": "numbers of the date"}[
            self.kind
        ]
        return what + (", and whether it is blank" if self.slots > len(self.parts) else "")

    def encode(self, cells: np.ndarray) -> Encoded:
        """Return the values of all features."""
        values = np.empty((len(cells), self.slots), dtype=np.float64 if self.native else np.float32)
        for k, part in enumerate(self._numbers(cells)):
            if self.native:
                values[:, k] = np.clip(part, -LARGEST, LARGEST)
            else:
                with np.errstate(over="ignore"):  # infinity is limited too
                    values[:, k] = _softly_limited((part - self.centre[k]) / self.scale[k])
        if not self.native:
            blank = np.isnan(cells)
            values[blank] = 0
            if self.has_blank:
                values[:, -1] = blank
        return None, values

    def _numbers(self, cells: np.ndarray) -> Any:
        """Yield the numbers of each part."""
        if self.kind != "date":
            yield cells
            return
        import pandas as pd

        yield (cells - self.origin) / _DAY
        moments = pd.to_datetime(cells, unit="s")
        yield moments.year.to_numpy(dtype=np.float64)
        yield moments.month.to_numpy(dtype=np.float64)
        yield moments.day_of_week.to_numpy(dtype=np.float64)
        if len(self.parts) > 4:
            yield cells % _DAY / 3600


@dataclass
class CategoryColumn:
    """A column of categories: one-hot columns of the frequent ones, or codes with `native`.

    Further columns are those of all other values together, of blanks, and, for many categories,
    the mean of each label among the rows of a category.
    """

    name: str
    native: bool
    max_kept: int
    values: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))
    n_kept: int = 0
    has_other: bool = False
    has_blank: bool = False
    complete: bool = True  # whether all values of the training rows are stored
    labels: list[str] = field(default_factory=list)
    means: np.ndarray | None = None  # one row per value and one for all others

    kind = "category"

    def learn(self, column: pd.Series, words: Words | None) -> Words:
        """Fit to a column, and return its cells."""
        words = words or read_words(column)
        counts = np.bincount(words.codes[words.codes >= 0], minlength=len(words.values))
        order = np.argsort(-counts, kind="stable")
        limit = MAX_CODES if self.native else self.max_kept
        repeated = int((counts > 1).sum())
        few = min(len(order), limit)
        # values of a single row teach nothing, unless there are only such values
        self.n_kept = min(repeated, limit) or few
        self.has_other = self.n_kept < len(order)
        self.complete = len(order) <= MAX_STORED
        stored = order if self.complete else order[: max(repeated, self.n_kept)]
        self.values = words.values[stored]
        self.has_blank = bool((words.codes < 0).any())
        return words

    def learn_means(self, words: Words, labels: LabelMatrix, seed: int) -> np.ndarray:
        """Fit the means of the labels; return those of the rows, each from the other folds.

        Unknown entries are ignored. A mean is that of the rows of a category and of ten more with
        the mean of all rows.
        """
        import scipy.sparse as sp

        codes = self._codes(words)
        targets = labels.to_numpy(np.float32)  # few labels
        n_rows, n_groups = len(codes), len(self.values) + 1
        fold = np.random.RandomState(seed).permutation(n_rows) % _N_FOLDS
        group = fold * n_groups + codes % n_groups  # -1, all others, is the last group
        member = sp.csr_array(
            (np.ones(n_rows, np.float32), group, np.arange(n_rows + 1)),
            shape=(n_rows, _N_FOLDS * n_groups),
        )
        shape = (_N_FOLDS, n_groups, labels.n_labels)
        sums, counts = (
            (member.T @ part.astype(np.float32)).astype(np.float64).reshape(shape)
            for part in (np.nan_to_num(targets), ~np.isnan(targets))
        )
        self.labels, self.means = (
            list(labels.names),
            _smoothed(sums.sum(axis=0), counts.sum(axis=0)),
        )
        of_fold = [
            _smoothed(sums.sum(axis=0) - sums[k], counts.sum(axis=0) - counts[k])
            for k in range(_N_FOLDS)
        ]
        return np.stack(of_fold)[fold, codes % n_groups]

    def read(self, column: pd.Series, words: Words | None = None) -> Words:
        """Return the distinct values, and which of them each row has."""
        return words or read_words(column)

    @property
    def slots(self) -> int:
        return 1 + len(self.labels)

    @property
    def names(self) -> list[str]:
        if self.native:
            own = [self.name]
        else:
            own = [f"{self.name}={value}" for value in self.values[: self.n_kept]]
            own += [f"{self.name}: other"] * self.has_other
            own += [f"{self.name} is blank"] * self.has_blank
        return [*own, *(f"{self.name}: mean of {label}" for label in self.labels)]

    @property
    def made(self) -> str:
        n_values = f"{len(self.values)} values" if self.complete else "many values"
        what = f"a code, {n_values}" if self.native else f"one-hot, {self.n_kept} of {n_values}"
        return what + (", and the mean of each label" if self.labels else "")

    def new_values(self, words: Words) -> list[str]:
        """Return the values that no training row had."""
        if not self.complete:
            return []
        return words.values[self._positions(words.values) < 0].tolist()

    def encode(self, words: Words, means: np.ndarray | None = None) -> Encoded:
        """Return the one-hot feature of each row, or its code, and the means of the labels."""
        codes = self._codes(words)
        blank = words.codes < 0
        if self.native:
            own = np.where(codes < self.n_kept, codes, self.n_kept).astype(np.float64)
            own[blank | ((codes < 0) & (not self.has_other))] = np.nan
            own[(codes < 0) & ~blank & self.has_other] = self.n_kept
            positions = None
            first = 1
        else:
            width = self.n_kept + self.has_other + self.has_blank
            at = np.where((codes >= 0) & (codes < self.n_kept), codes, self.n_kept)
            own = np.ones(len(codes), dtype=np.float32)
            if self.has_blank:
                at[blank] = width - 1
            else:
                own[blank] = 0
            if not self.has_other:
                own[~blank & (at == self.n_kept)] = 0
            at = np.minimum(at, max(width - 1, 0))
            positions = at[:, None]
            first = width
        if self.means is None:
            return positions, own[:, None]
        if means is None:
            means = self.means[codes]
        if positions is not None:
            after = np.arange(first, first + len(self.labels))
            positions = np.hstack([positions, np.broadcast_to(after, means.shape)])
        return positions, np.hstack([own[:, None], means]).astype(own.dtype)

    def _positions(self, values: np.ndarray) -> np.ndarray:
        """The number of each value among the stored ones, or -1."""
        import pandas as pd

        stored, asked = (pd.Index(part, dtype=object) for part in (self.values, values))
        return stored.get_indexer(asked)

    def _codes(self, words: Words) -> np.ndarray:
        """The number of the value of each row among the stored ones; -1 for others and blanks."""
        return np.append(self._positions(words.values), -1).astype(np.int32)[words.codes]


@dataclass
class TextColumn:
    """A column of texts: the features of an embedder, reduced to few dimensions with `native`."""

    name: str
    embedder: Any
    reduction: Any = None
    names: list[str] = field(default_factory=list)

    kind = "text"

    def learn(self, texts: list[str], n_dimensions: int | None, seed: int) -> Any:
        """Fit to texts, and return their features."""
        features = self.embedder.fit_transform(texts)
        if n_dimensions is not None and features.shape[1] > n_dimensions:
            from sklearn.decomposition import TruncatedSVD

            self.reduction = TruncatedSVD(n_dimensions, random_state=seed)
            with np.errstate(invalid="ignore"):  # its share of variance is 0 / 0 for empty texts
                features = self.reduction.fit_transform(features)
        width = features.shape[1]
        words = [f"dimension {k}" for k in range(width)]
        if self.reduction is None and hasattr(self.embedder, "get_feature_names_out"):
            words = list(self.embedder.get_feature_names_out())
        self.names = [f"{self.name}: {word}" for word in words]
        return features

    def read(self, column: pd.Series, words: Words | None = None) -> list[str]:
        """Return the texts; a blank is an empty text."""
        words = words or read_words(column)
        return np.append(words.values, "").astype(object)[words.codes].tolist()

    @property
    def made(self) -> str:
        if self.reduction is not None:
            return f"{len(self.names)} dimensions of its words"
        is_words = hasattr(self.embedder, "vocabulary_")
        return "weights of words" if is_words else f"features of {type(self.embedder).__name__}"

    def encode(self, texts: list[str]) -> Any:
        """Return the features of texts, dense or sparse."""
        features = self.embedder.transform(texts)
        return features if self.reduction is None else self.reduction.transform(features)


def learn_texts(
    column: pd.Series, words: Words | None, embedder: Any, n_dimensions: int | None, seed: int
) -> tuple[TextColumn | None, Any]:
    """Return a fitted column of texts and its features; None if there is nothing to learn from."""
    if isinstance(embedder, str):
        embedder = make_part(TEXT_PARTS[embedder])
    else:
        embedder = clone(embedder, safe=False)  # one per column
    text = TextColumn(str(column.name), embedder)
    try:
        return text, text.learn(text.read(column, words), n_dimensions, seed)
    except InputError:
        return None, None


def _centre_and_scale(numbers: np.ndarray) -> tuple[float, float]:
    """The median and the distance of the quartiles, or the standard deviation if that is 0."""
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return 0.0, 1.0
    known = np.clip(known, -_LARGEST_CENTRE, _LARGEST_CENTRE)
    low, centre, high = np.quantile(known, [0.25, 0.5, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        scale = high - low or known.std()
    return float(centre), float(scale) if np.isfinite(scale) and scale > 0 else 1.0


def _softly_limited(scaled: np.ndarray) -> np.ndarray:
    """Numbers between -3 and 3, almost unchanged near 0.

    >>> _softly_limited(np.array([0.1, np.inf])).round(2)
    array([0.1, 3. ])
    """
    scaled = np.clip(scaled, -1e9, 1e9)  # beyond, the result is the limit
    return scaled / np.hypot(1, scaled / _SOFT_LIMIT)


def _smoothed(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    prior = (sums.sum(axis=0) + 1) / (counts.sum(axis=0) + 2)
    means = (sums + _SMOOTHING * prior) / (counts + _SMOOTHING)
    means[-1] = prior
    return means
