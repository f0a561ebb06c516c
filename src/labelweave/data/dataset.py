"""A data set: features, labels, and what is known about both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.images.collection import Images
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.tables.table import Table

__all__ = ["Dataset", "no_labels"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features `X`, labels `Y` and, where the source has them, the official parts.

    Parameters
    ----------
    X : ndarray, csr_array, DataFrame, Table, sequence of str or Images
        One row per sample. A :class:`~labelweave.tables.Table` has columns of any kind. Texts are
        a sequence of strings; images are a collection
        (:class:`labelweave.images.Images`) or an array of bytes.
    Y : LabelMatrix or anything that :func:`labelweave.labels.as_labels` reads
    name : str
        Name of the data set in tables and messages.
    feature_names : sequence of str, optional
    row_ids : sequence, optional
        Names of the rows. They are kept by splits and written by `labelweave predict`.
    groups : sequence, optional
        Group of each row. Splits keep the rows of a group in one part.
    part : sequence of {"train", "validation", "test"}, optional
        Official part of each row.
    weights : sequence of float, optional
        Weight of each row in training.
    facts : mapping, optional
        Source, licence and known problems of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.data import Dataset
    >>> data = Dataset(np.eye(4), [["a"], ["b"], ["a", "b"], []], name="toy")
    >>> data
    <Dataset toy: 4 rows x 4 features, 2 labels, 1.000 labels per row>
    >>> len(data[:2])
    2
    """

    X: Any
    Y: LabelMatrix
    name: str = "data"
    feature_names: Sequence[str] | None = None
    row_ids: Sequence[Any] | None = None
    groups: Sequence[Any] | None = None
    part: Sequence[str] | None = None
    weights: Sequence[float] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "Y", as_labels(self.Y))
        if sp.issparse(self.X):
            object.__setattr__(self, "X", sp.csr_array(self.X))
        n_rows = len(self)
        for attribute in ("Y", "row_ids", "groups", "part", "weights"):
            values = getattr(self, attribute)
            if values is not None and len(values) != n_rows:
                raise InputError(
                    f"data set {self.name}: X has {n_rows} rows but {attribute} has {len(values)}"
                )
        if self.part is not None:
            object.__setattr__(self, "part", np.asarray(self.part, dtype=object))

    def __len__(self) -> int:
        return self.X.shape[0] if sp.issparse(self.X) else len(self.X)

    @property
    def is_text(self) -> bool:
        """Whether X is a sequence of texts."""
        return isinstance(self.X, Sequence)

    @property
    def is_table(self) -> bool:
        """Whether X is a table of columns of any kind, with blanks."""
        return isinstance(self.X, Table)

    @property
    def is_image(self) -> bool:
        """Whether X holds images: a collection of images, or an array of more than two axes."""
        return isinstance(self.X, Images) or (isinstance(self.X, np.ndarray) and self.X.ndim > 2)

    @property
    def n_features(self) -> int | None:
        """Number of columns of X; None for texts."""
        return None if self.is_text else int(np.prod(self.X.shape[1:]))

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the columns of Y."""
        return self.Y.names

    def __getitem__(self, rows: Any) -> Dataset:
        """Return the data set of these rows (a slice, a mask or an index array)."""
        index = np.arange(len(self))[rows].reshape(-1)
        return replace(
            self,
            X=_take(self.X, index),
            Y=self.Y[index],
            row_ids=_take(self.row_ids, index),
            groups=_take(self.groups, index),
            part=_take(self.part, index),
            weights=_take(self.weights, index),
        )

    def select_labels(self, names: Sequence[str]) -> Dataset:
        """Return the same rows with only these labels, in this order."""
        return replace(self, Y=self.Y.select(names))

    def split(self, **options: Any) -> tuple[Dataset, ...]:
        """Split into train and test parts; with `validation=0.2` into train, validation and test.

        The official split is used where there is one, otherwise a stratified one. See
        :func:`labelweave.data.splits.split_dataset` for the options.
        """
        from labelweave.data.splits import split_dataset

        return split_dataset(self, **options)

    def summary(self) -> dict[str, Any]:
        """Return counts that describe the data set, as plain numbers."""
        positives, known = self.Y.counts()
        positives_per_row = np.asarray(self.Y.positive().sum(axis=1)).ravel()
        return {
            "name": self.name,
            "rows": len(self),
            "features": self.n_features,
            "labels": self.Y.n_labels,
            "cardinality": float(positives_per_row.mean()) if len(self) else 0.0,
            "density": float(positives.sum() / max(known.sum(), 1)),
            "unknown": self.Y.n_unknown,
            "rows_without_label": int((positives_per_row == 0).sum()),
            "labels_never_positive": int((positives == 0).sum()),
            "sparse": bool(sp.issparse(self.X)),
            "official_parts": None if self.part is None else dict(Counter(map(str, self.part))),
        }

    def __repr__(self) -> str:
        counts = self.summary()
        unit = "columns" if self.is_table else "features"
        features = "texts" if self.is_text else f"{counts['features']} {unit}"
        if isinstance(self.X, Images):
            features = f"images of {self.X.size} pixels"
        return (
            f"<Dataset {self.name}: {counts['rows']} rows x {features}, "
            f"{counts['labels']} labels, {counts['cardinality']:.3f} labels per row>"
        )


def _take(values: Any, index: np.ndarray) -> Any:
    if values is None:
        return None
    if isinstance(values, Sequence):
        return [values[i] for i in index]
    # DataFrames and Series are indexed by position; they are recognised without importing pandas.
    return values.iloc[index] if hasattr(values, "iloc") else values[index]


def no_labels(n_rows: int) -> LabelMatrix:
    """Return a label matrix without columns, for rows whose labels are to be predicted.

    >>> no_labels(3).shape
    (3, 0)
    """
    return LabelMatrix(np.zeros((n_rows, 0), dtype=np.float32), ())
