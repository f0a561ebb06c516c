"""Reading data, and its division into training, validation and test rows.

Models are trained on the first, choices are made on the second, and the third are scored once.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import LabelMatrix

__all__ = [
    "Parts",
    "Source",
    "SplitSettings",
    "TrainingData",
    "check_finite",
    "check_width",
    "with_labels",
]


class Source(NamedTuple):
    """Where data come from: a name of the catalog or a file, how to read it, and what to correct.

    `corrections` is a file of verdicts, see :mod:`labelweave.data.corrections`.
    """

    name: str
    reading: Mapping[str, Any]
    corrections: str | None = None

    def load(self) -> Dataset:
        """The data set, with labels."""
        return self.load_corrected()[0]

    def load_corrected(self) -> tuple[Dataset, LabelMatrix]:
        """The data set, and its labels as they were before corrections.

        Rows are divided by the latter, so that the parts are the same with and without verdicts.
        """
        from labelweave.data.catalog import load_dataset

        data = load_dataset(self.name, **self.reading)
        if data.Y.n_labels == 0:
            raise InputError(
                f"{self.name} has no labels that could be recognised: name the label columns, or "
                "the column that lists them",
                parameter=("labels", "label_column"),
            )
        check_finite(data, self.name)
        if self.corrections is None:
            return data, data.Y
        from labelweave.data.corrections import apply_corrections

        return apply_corrections(data, self.corrections), data.Y


class Parts(NamedTuple):
    """The three parts of a data set."""

    train: Dataset
    validation: Dataset
    test: Dataset

    def sizes(self) -> dict[str, int]:
        return {name: len(part) for name, part in zip(self._fields, self, strict=True)}


@dataclass(frozen=True)
class SplitSettings:
    """How the parts are made; the same protocol makes the same parts of the same data."""

    split: str = "auto"
    test_size: float | None = None
    validation: float = 0.2
    seed: int = 0
    test: str | None = None

    def parts(
        self, data: Dataset, reading: Mapping[str, Any], divide_by: LabelMatrix | None = None
    ) -> Parts:
        """Train, validation and test rows of a data set.

        `divide_by` are the labels that each part gets its share of: those before corrections,
        so that verdicts do not move a row to another part. Default: the labels of the data.
        """
        if self.test is None:
            sizes = {"test_size": self.test_size, "validation": self.validation}
            return Parts(*self._divide(data, divide_by, method=self.split, **sizes))
        if self.test_size is not None or self.split == "official":
            raise InputError(
                "--test names the test rows: leave out --test-size and --split official"
            )
        test = with_labels(Source(self.test, reading).load(), data.label_names)
        check_width(test, data.n_features)
        method = "random" if self.split == "random" else "stratified"
        train, validation = self._divide(
            replace(data, part=None), divide_by, method=method, test_size=self.validation
        )
        return Parts(train, validation, test)

    def _divide(self, data: Dataset, labels: LabelMatrix | None, **sizes: Any) -> list[Dataset]:
        """The parts of a data set, made as if these were its labels."""
        numbers = np.arange(len(data)).reshape(-1, 1)
        Y = data.Y if labels is None else labels
        bare = Dataset(numbers, Y, data.name, groups=data.groups, part=data.part)
        parts = bare.split(random_state=self.seed, **sizes)
        return [replace(data[part.X[:, 0]], part=None) for part in parts]

    def describe(self, data: Dataset) -> str:
        """Where the test rows come from, in a few words."""
        if self.test is not None:
            return f"test rows from {self.test}"
        if self.split in ("stratified", "random"):
            return f"{self.split} split, seed {self.seed}"
        official = data.part is not None and "test" in set(data.part)
        if official and self.test_size is None:
            return "official split"
        return f"stratified split, seed {self.seed}"


class TrainingData(NamedTuple):
    """The data of one training, where they come from, and how they were divided.

    Without `parts` all rows are training rows.
    """

    data: Dataset
    source: Source
    protocol: SplitSettings
    parts: Parts | None


def check_finite(
    data: Dataset, shown: str, *, first_row: int = 0, names: Sequence[str] | None = None
) -> None:
    """Refuse missing and infinite features while their row in the file is still known.

    `first_row` is the place of the first row in the file, `names` those of the features where
    the data do not have them.
    """
    from labelweave.input_checks import first_not_finite

    if data.is_text or data.is_image:
        return
    not_finite = first_not_finite(data.X)
    if not_finite is None:
        return
    kind, row, column = not_finite
    names, ids = names or data.feature_names, data.row_ids
    feature = f"number {column}" if names is None else repr(str(names[column]))
    which = f"{first_row + row} (the first is 0)" if ids is None else repr(str(ids[row]))
    is_what = "missing" if kind == "NaN" else "infinite"
    raise InputError(
        f"{shown}: feature {feature} of row {which} is {is_what}: put a number there, or leave "
        "that row or column out"
    )


def check_width(data: Dataset, n_features: int | None) -> None:
    """Refuse features that a model cannot take; None stands for texts.

    Images are brought to the size that the model wants.
    """
    if data.is_image:
        return
    if data.n_features != n_features:
        width, needed = (
            "texts" if number is None else f"{number:,} features"
            for number in (data.n_features, n_features)
        )
        raise InputError(f"{data.name} has {width}, but the model takes {needed}")


def with_labels(data: Dataset, names: Sequence[str]) -> Dataset:
    """The same rows with labels of a model: in its order, and none that it does not know.

    Where the file lists the labels that a row has, one that it never lists is negative. A
    file with one column per label does not tell anything about a label without a column: it
    is left out.
    """
    if data.label_names == tuple(names):
        return data
    here = set(data.label_names)
    shared = [name for name in names if name in here]
    if not shared:
        raise InputError(
            f"{data.name} has none of the labels that the model knows ({', '.join(names[:3])}, ...)"
        )
    strange = sorted(here - set(names))
    if strange:
        _note(
            f"{len(strange)} labels of {data.name} are unknown to the model and not scored "
            f"({strange[0]!r}, ...)"
        )
    if len(shared) == len(names) or not data.facts.get("labels_listed"):
        if len(shared) < len(names):
            _note(
                f"{data.name} has {len(shared)} of the {len(names)} labels of the model; only "
                "these are scored"
            )
        return data.select_labels(shared)
    return replace(data, Y=_with_absent_labels(data.Y, names))


def _note(text: str) -> None:
    warnings.warn(text, LabelweaveWarning, stacklevel=3)


def _with_absent_labels(Y: LabelMatrix, names: Sequence[str]) -> LabelMatrix:
    """The labels of these names; one that Y has not is negative where its row is known."""
    position = {name: j for j, name in enumerate(names)}
    column = np.array([position.get(name, -1) for name in Y.names])
    stored = sp.coo_array(Y.to_sparse().values)
    kept = column[stored.col] >= 0
    blank = np.flatnonzero(
        np.bincount(stored.row[np.isnan(stored.data)], minlength=len(Y)) == Y.n_labels
    )
    kept &= ~np.isin(stored.row, blank)
    rows = np.concatenate([stored.row[kept], np.repeat(blank, len(names))])
    columns = np.concatenate([column[stored.col[kept]], np.tile(np.arange(len(names)), len(blank))])
    values = np.concatenate([stored.data[kept], np.full(len(blank) * len(names), np.nan)])
    matrix = sp.csr_array((values, (rows, columns)), shape=(len(Y), len(names)))
    return LabelMatrix(matrix.astype(np.float32), names, Y.descriptions)
