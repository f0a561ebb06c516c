"""A data set: features, labels, and what is known about both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features `X`, labels `Y` and, where the source has them, the official parts.

    Parameters
    ----------
    X : ndarray, csr_array, DataFrame, sequence of str or Images
        One row a sample; texts are a sequence of strings, images a collection
        (:class:`labelweave.images.Images`) or an array of bytes.
    Y : LabelMatrix or anything that :func:`labelweave.labels.as_labels` reads
    name : str
        How to call it in tables.
    feature_names : sequence of str, optional
    row_ids : sequence, optional
        Names of the rows, kept through splits and written by `labelweave predict`.
    groups : sequence, optional
        Rows of one group never stand on both sides of a split.
    part : sequence of {"train", "validation", "test"}, optional
        The official part of each row.
    facts : mapping, optional
        Where it comes from, its licence, its traps.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.data import Dataset
    >>> data = Dataset(np.eye(4), [["a"], ["b"], ["a", "b"], []], name="toy")
    >>> data
    <Dataset toy: 4 rows x 4 features, 2 labels, 1.000 labels a row>
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
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "Y", as_labels(self.Y))
        if sp.issparse(self.X):
            object.__setattr__(self, "X", sp.csr_array(self.X))
        n_rows = len(self)
        for what in ("Y", "row_ids", "groups", "part"):
            values = getattr(self, what)
            if values is not None and len(values) != n_rows:
                raise InputError(
                    f"data set {self.name}: X has {n_rows} rows but {what} has {len(values)}"
                )
        if self.part is not None:
            object.__setattr__(self, "part", np.asarray(self.part, dtype=object))

    def __len__(self) -> int:
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)

    @property
    def is_text(self) -> bool:
        """Whether X is a sequence of texts."""
        return not hasattr(self.X, "shape")

    @property
    def is_image(self) -> bool:
        """Whether X holds images: a collection of them, or an array with more than two axes."""
        return hasattr(self.X, "pixels") or getattr(self.X, "ndim", 2) > 2

    @property
    def n_features(self) -> int | None:
        """Number of columns of X; None for texts."""
        return None if self.is_text else int(np.prod(self.X.shape[1:]))

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the columns of Y."""
        return self.Y.names

    def __getitem__(self, rows: Any) -> Dataset:
        """The data set of these rows (slice, mask or index array)."""
        index = np.arange(len(self))[rows].reshape(-1)

        def take(values: Any) -> Any:
            if values is None:
                return None
            if hasattr(values, "iloc"):
                return values.iloc[index]
            if hasattr(values, "shape"):
                return values[index]
            return [values[i] for i in index]

        return replace(
            self,
            X=take(self.X),
            Y=self.Y[index],
            row_ids=take(self.row_ids),
            groups=take(self.groups),
            part=take(self.part),
        )

    def select_labels(self, names: Sequence[str]) -> Dataset:
        """The same rows with only these labels, in this order."""
        return replace(self, Y=self.Y.select(names))

    def split(self, **how: Any) -> tuple[Dataset, ...]:
        """Train and test parts; with `validation=0.2` train, validation and test.

        The official split where there is one, else a stratified one. See
        :func:`labelweave.data.splits.split_dataset` for the options.
        """
        from labelweave.data.splits import split_dataset

        return split_dataset(self, **how)

    def summary(self) -> dict[str, Any]:
        """Counts that describe the data set, as plain numbers."""
        positives, known = self.Y.counts()
        per_row = np.asarray(self.Y.positive().sum(axis=1)).ravel()
        return {
            "name": self.name,
            "rows": len(self),
            "features": self.n_features,
            "labels": self.Y.n_labels,
            "cardinality": float(per_row.mean()) if len(self) else 0.0,
            "density": float(positives.sum() / max(known.sum(), 1)),
            "unknown": self.Y.n_unknown,
            "rows_without_label": int((per_row == 0).sum()),
            "labels_never_positive": int((positives == 0).sum()),
            "sparse": bool(sp.issparse(self.X)),
            "official_parts": None if self.part is None else dict(Counter(map(str, self.part))),
        }

    def __repr__(self) -> str:
        facts = self.summary()
        features = "texts" if self.is_text else f"{facts['features']} features"
        if hasattr(self.X, "pixels"):
            features = f"images of {self.X.size} pixels"
        return (
            f"<Dataset {self.name}: {facts['rows']} rows x {features}, {facts['labels']} labels, "
            f"{facts['cardinality']:.3f} labels a row>"
        )
