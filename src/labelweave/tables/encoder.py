"""The transformer of mixed tables into features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from labelweave.exceptions import InputError
from labelweave.input_checks import as_single_target
from labelweave.labels import LabelMatrix, as_labels
from labelweave.tables import column_warnings
from labelweave.tables.columns import (
    TEXT_PARTS,
    CategoryColumn,
    NumberColumn,
    TextColumn,
    learn_texts,
)
from labelweave.tables.image_column import UNTRAINED, ImageColumn, learn_images
from labelweave.tables.kinds import LEFT_OUT, check_kinds, find_kind
from labelweave.tables.table import Table, as_frame, column_names, is_reported

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableEncoder"]

MAX_LABELS = 50  # with more labels, the means of labels would be too many features
_NOTHING = {"text": "no text has a word of two letters or digits", "image": LEFT_OUT["all blank"]}
_CLASSES = {cls.__name__: cls for cls in (CategoryColumn, NumberColumn, TextColumn, ImageColumn)}
_WHOLE = ("text", "image")  # kinds whose features are computed for all rows at once


class TableEncoder(TransformerMixin, BaseEstimator):
    """Features of a table of numbers, categories, yes/no, dates, texts and images with blanks.

    Every method of the library uses one when it is fitted to such a table, with the `output` that
    suits the method. Columns that are an id, constant or all blank are left out; `kinds_` lists
    what is made of each column.

    Parameters
    ----------
    kinds : mapping of column to kind, optional
        The kinds of columns for which they are not to be found by themselves: "number",
        "category", "yes/no", "date", "text", "image" (paths to image files, or arrays of
        pixels, never found by itself), or "id" to leave the column out.
    output : {"one-hot", "codes"}, default="one-hot"
        ``"one-hot"``: numbers are scaled, blanks are filled in and marked by a column of their
        own, and each frequent category is a column. ``"codes"``: blanks are NaN, a category is a
        code (see `categorical_`), and texts and images are reduced to few dimensions, for trees.
    text : {"tfidf", "fast", "minilm"} or transformer of texts, default="tfidf"
        Computes the features of texts; see :mod:`labelweave.text`.
    text_dimensions : int, default=32
        Number of dimensions of each column of texts or images with ``output="codes"``.
    image : {"untrained"} or transformer of images, default="untrained"
        Computes the features of images, such as ``ImageEncoder()``. By default a small network with
        random weights, a baseline.
    max_categories : int, default=50
        Number of categories of a column that are one-hot. Of a column with more, the mean of each
        label per category is added, if there are at most 50 labels. These means are smoothed, they
        ignore unknown labels, and those of the training rows come from other rows.
    sparse_output : bool or "auto", default="auto"
        Whether the features are a CSR matrix; ``"auto"`` takes the form that needs less memory,
        and the dense one after ``set_output(transform="pandas")``.
    random_state : int, default=0
        Seed of the reduction of texts and images and of the folds of the means of labels.

    Attributes
    ----------
    kinds_ : DataFrame
        One row per column of the table: its name, its kind, what is made of it, the number of
        features, and why it is left out.
    feature_columns_ : ndarray of int
        The column of the table that each feature is made of.
    categorical_ : ndarray of bool
        Whether a feature is the code of a category. These features come first.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"price": [2.5, None, 4.0, 1.0], "brand": ["a", "b", "a", "b"]})
    >>> encoder = TableEncoder(sparse_output=False).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'price is blank', 'brand=a', 'brand=b']
    >>> encoder.transform(table)[1]
    array([0., 1., 0., 1.], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kinds": [Mapping, None],
        "output": [StrOptions({"one-hot", "codes"})],
        "text": [StrOptions(set(TEXT_PARTS)), HasMethods(["fit_transform", "transform"])],
        "text_dimensions": [Interval(Integral, 1, None, closed="left")],
        "image": [StrOptions({UNTRAINED}), HasMethods(["fit", "transform"])],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "sparse_output": ["boolean", StrOptions({"auto"})],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        kinds: Mapping[str, str] | None = None,
        *,
        output: str = "one-hot",
        text: Any = "tfidf",
        text_dimensions: int = 32,
        image: Any = UNTRAINED,
        max_categories: int = 50,
        sparse_output: Any = "auto",
        random_state: int = 0,
    ) -> None:
        self.kinds = kinds
        self.output = output
        self.text = text
        self.text_dimensions = text_dimensions
        self.image = image
        self.max_categories = max_categories
        self.sparse_output = sparse_output
        self.random_state = random_state

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the kinds of the columns, and learn what is made of them.

        Parameters
        ----------
        X : DataFrame or Table
        y : labels of the rows, optional
            Used for the means of labels of columns with many categories.
        """
        self._learn(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to a table, and return its features.

        The means of labels are those of other rows: ``fit(X, y).transform(X)`` is not the same.
        """
        return self._assembled(self._learn(X, y), len(as_frame(X)))

    def _learn(self, X: Any, y: Any) -> list[Any]:
        """Fit, and return the cells of each column, or the features of texts and images."""
        self._validate_params()
        frame = as_frame(X)
        names = self._checked_names(frame)
        labels = _as_target(y)
        check_consistent_length(frame, labels)
        learnt, rows = [], []
        for position, name in enumerate(names):
            column = frame.iloc[:, position].rename(name)
            kind, words = self._kind(column)
            row = {"column": name, "kind": kind, "made": "", "features": 0}
            is_asked = kind == "id" and name in (self.kinds or {})
            reason = "as asked" if is_asked else LEFT_OUT.get(kind, "")
            rows.append(row | {"left_out": reason})
            if kind in LEFT_OUT:
                continue
            part, cells = self._learn_column(column, kind, words, labels)
            if part is None:
                rows[-1]["left_out"] = _NOTHING[kind]
                continue
            rows[-1] |= {"made": part.made, "features": len(part.names)}
            learnt.append((position, part, cells))
        import pandas as pd

        self.kinds_ = pd.DataFrame(rows, columns=["column", "kind", "made", "features", "left_out"])
        self.n_features_in_, self.feature_names_in_ = len(names), np.asarray(names, dtype=object)
        if not learnt:
            reasons = ", ".join(f"{row['column']!r} ({row['left_out']})" for row in rows[:5])
            raise InputError(
                f"no column of the table (n_samples = {len(frame)}) can be learnt from: {reasons}"
            )
        # codes of categories come first, texts and images last; the others keep their order
        first = "category" if self.output == "codes" else None
        learnt.sort(key=lambda item: (item[1].kind != first, item[1].kind in _WHOLE, item[0]))
        if not is_reported(X):
            column_warnings.report_left_out(self.kinds_)
        self.columns_ = [part for _, part, _ in learnt]
        self._set_layout(learnt, len(frame))
        return [cells for _, _, cells in learnt]

    def _checked_names(self, frame: pd.DataFrame) -> list[str]:
        names = column_names(frame)
        if not len(frame) or not names:
            raise InputError(
                f"the table has {len(frame)} rows and {len(names)} columns, and nothing can be "
                f"learnt from it: {len(frame)} sample(s), {len(names)} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required."
            )
        check_kinds(self.kinds or {}, names)
        return names

    def _kind(self, column: pd.Series) -> tuple[str, Any]:
        kind = (self.kinds or {}).get(str(column.name))
        if kind is None:
            return find_kind(column)
        if column.isna().all():
            return "all blank", None
        return kind, None

    def _learn_column(
        self, column: pd.Series, kind: str, words: Any, labels: LabelMatrix | None
    ) -> tuple[Any, Any]:
        native = self.output == "codes"
        n_dimensions = self.text_dimensions if native else None
        if kind == "text":
            return learn_texts(column, words, self.text, n_dimensions, self.random_state)
        if kind == "image":
            return learn_images(column, self.image, native, n_dimensions, self.random_state)
        if kind != "category":
            number = NumberColumn(str(column.name), kind, native)
            return number, number.learn(column, words)
        category = CategoryColumn(str(column.name), native, self.max_categories)
        cells: Any = category.learn(column, words)
        means = None
        many = len(category.values) > self.max_categories
        if many and labels is not None and labels.n_labels <= MAX_LABELS:
            means = category.learn_means(cells, labels, self.random_state)
        return category, (cells, means)

    def _set_layout(self, learnt: Sequence[tuple[int, Any, Any]], n_rows: int) -> None:
        """Where the features of each column are, and whether the result is sparse."""
        widths = [len(part.names) for _, part, _ in learnt]
        positions = [position for position, _, _ in learnt]
        self.feature_columns_ = np.repeat(positions, widths)
        is_code = [
            self.output == "codes" and part.kind == "category" and k == 0
            for _, part, _ in learnt
            for k in range(len(part.names))
        ]
        self.categorical_ = np.asarray(is_code, dtype=bool)
        stored = 0.0  # values per row
        for _, part, cells in learnt:
            if part.kind not in _WHOLE:
                stored += part.slots
            elif sp.issparse(cells):
                stored += cells.nnz / max(n_rows, 1)
            else:
                stored += cells.shape[1]
        is_array = _get_output_config("transform", self)["dense"] == "default"  # no DataFrame
        # a stored value needs its number and its column
        smaller = is_array and self.output == "one-hot" and 2 * stored < sum(widths)
        self.sparse_ = bool(smaller if self.sparse_output == "auto" else self.sparse_output)

    # -- transforming ------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Return the features of a table, one row per row of the table.

        Columns are matched by name. A column that is missing counts as blank, a category that was
        not in the training rows as another value, and further columns are ignored; all three are
        said in a warning.
        """
        check_is_fitted(self)
        frame = self._completed(X)
        return self._assembled(self._cells(frame, report=not is_reported(X)), len(frame))

    def passed_on(self, X: Any) -> Table:
        """Return a table for classifiers that encode it themselves, with the kinds found here."""
        frame = self._completed(X)
        if not is_reported(X):
            for part in self.columns_:
                if part.kind == "category":
                    column_warnings.report_new_values(part, part.read(frame[part.name]))
        kinds = dict.fromkeys(self.feature_names_in_, "id")
        kinds |= {part.name: part.kind for part in self.columns_}
        return Table(frame, clone(self).set_params(kinds=kinds)).as_reported()

    def _cells(self, frame: pd.DataFrame, *, report: bool) -> Iterator[Any]:
        for part in self.columns_:
            cells = part.read(frame[part.name])
            if report and part.kind == "category":
                column_warnings.report_new_values(part, cells)
            yield part.encode(cells) if part.kind in _WHOLE else cells

    def _completed(self, X: Any) -> pd.DataFrame:
        """Return a table with the columns of the training table, and say what was different."""
        frame = as_frame(X, list(self.feature_names_in_))
        names = column_names(frame)
        frame = frame.set_axis(names, axis=1)
        wanted = [part.name for part in self.columns_]
        missing = [name for name in wanted if name not in set(names)]
        if len(missing) == len(wanted):
            raise InputError(
                f"the table has none of the columns that the model learnt from, such as "
                f"{wanted[0]!r}: pass a table with the same names of columns"
            )
        known = set(self.feature_names_in_)
        if not is_reported(X):
            column_warnings.report_missing(missing)
            column_warnings.report_ignored([name for name in names if name not in known])
        return frame.reindex(columns=list(self.feature_names_in_))

    def _assembled(self, cells_of_columns: Iterable[Any], n_rows: int) -> Any:
        fixed = [part for part in self.columns_ if part.kind not in _WHOLE]
        n_slots, n_fixed = sum(p.slots for p in fixed), sum(len(p.names) for p in fixed)
        n_features = len(self.feature_columns_)
        dtype = np.float64 if self.output == "codes" else np.float32
        if self.sparse_:
            indices = np.empty((n_rows, n_slots), dtype=np.int32)
            data = np.empty((n_rows, n_slots), dtype=dtype)
        else:
            dense = np.zeros((n_rows, n_features), dtype=dtype)
        slot = start = 0
        whole = []
        for part, cells in zip(self.columns_, cells_of_columns, strict=True):
            stop = start + len(part.names)
            if part.kind in _WHOLE:
                if self.sparse_:
                    whole.append(sp.csr_array(cells, dtype=dtype))
                else:
                    dense[:, start:stop] = cells.toarray() if sp.issparse(cells) else cells
                start = stop
                continue
            positions, values = self._encoded(part, cells)
            if self.sparse_:
                taken = slice(slot, slot + part.slots)
                indices[:, taken] = start + (
                    np.arange(part.slots) if positions is None else positions
                )
                data[:, taken] = values
                slot += part.slots
            elif positions is None:
                dense[:, start:stop] = values
            else:
                np.put_along_axis(dense[:, start:stop], positions, values, axis=1)
            start = stop
        if not self.sparse_:
            return dense
        ends = np.arange(0, data.size + 1, max(n_slots, 1), dtype=np.int64)
        if n_slots == 0:
            ends = np.zeros(n_rows + 1, dtype=np.int64)
        if indices.size and not 0 <= indices.min() <= indices.max() < n_fixed:
            raise InputError("the columns of the encoder do not fit its features")
        matrix = sp.csr_array((data.reshape(-1), indices.reshape(-1), ends), (n_rows, n_fixed))
        matrix.eliminate_zeros()
        return sp.hstack([matrix, *whole], format="csr") if whole else matrix

    def _encoded(self, part: Any, cells: Any) -> Any:
        if part.kind != "category":
            return part.encode(cells)
        return part.encode(*cells) if isinstance(cells, tuple) else part.encode(cells)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features."""
        check_is_fitted(self)
        return np.asarray([name for part in self.columns_ for name in part.names], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []  # the output decides
        return tags

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "columns": [{"class": type(part).__name__, **vars(part)} for part in self.columns_],
            "kinds": self.kinds_,
            "feature_columns": self.feature_columns_,
            "categorical": self.categorical_,
            "sparse": self.sparse_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.columns_ = [
            _CLASSES[stored["class"]](**{k: v for k, v in stored.items() if k != "class"})
            for stored in state["columns"]
        ]
        self.kinds_ = state["kinds"]
        self.feature_columns_ = state["feature_columns"]
        self.categorical_, self.sparse_ = state["categorical"], state["sparse"]


def _as_target(y: Any) -> LabelMatrix | None:
    """The labels of the rows; one label per class of a one-dimensional target."""
    if y is None or isinstance(y, LabelMatrix):
        return y
    flat = as_single_target(y)
    if flat is None:
        return as_labels(y)
    classes, codes = np.unique(flat, return_inverse=True)
    return as_labels(codes[:, None] == np.arange(len(classes)))
