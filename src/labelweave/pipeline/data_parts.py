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
from labelweave.top_labels import MANY_LABELS

__all__ = [
    "Parts",
    "Source",
    "SplitSettings",
    "TrainingData",
    "about_rows_together",
    "check_finite",
    "check_width",
    "with_labels",
]


_LABEL_OPTIONS = frozenset(("labels", "label_column"))
_VALIDATION_ROWS = 5_000


class Source(NamedTuple):
    """Where data come from: a name of the catalog or a file, how to read it, and what to correct.

    `corrections` is a file of verdicts, see :mod:`labelweave.data.corrections`, and `hierarchy` a
    file of labels with their broader ones, see :class:`labelweave.hierarchy.LabelHierarchy`.
    """

    name: str
    reading: Mapping[str, Any]
    corrections: str | None = None
    hierarchy: str | None = None

    def load(self) -> Dataset:
        """The data set, with labels."""
        return self.load_corrected()[0]

    def load_corrected(self) -> tuple[Dataset, LabelMatrix]:
        """The data set, and its labels as they were before corrections and hierarchy.

        Rows are divided by the latter, so that the parts are the same with and without them.
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
        before = data.Y
        if self.corrections is not None:
            from labelweave.data.corrections import apply_corrections

            data = apply_corrections(data, self.corrections)
        return replace(data, Y=self.completed(data.Y)), before

    def completed(self, Y: LabelMatrix) -> LabelMatrix:
        """The labels with what follows from the hierarchy, if there is one."""
        if self.hierarchy is None:
            return Y
        from labelweave.hierarchy import LabelHierarchy

        return LabelHierarchy.read(self.hierarchy).complete(Y)

    def load_for(self, model: Any) -> tuple[Dataset, LabelMatrix]:
        """As `load_corrected`, for a fitted model.

        Where it is not known which columns are labels, these are the ones that are named as the
        labels of the model, if there are columns for all of them.
        """
        try:
            return self.load_corrected()
        except InputError as error:
            if not _LABEL_OPTIONS & {*error.parameters} or _LABEL_OPTIONS & {*self.reading}:
                raise
            reading = {**self.reading, "labels": [str(name) for name in model.label_names_]}
            try:
                return self._replace(reading=reading).load_corrected()
            except InputError:
                raise error from None


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

    def for_many_labels(self, data: Dataset) -> SplitSettings:
        """The same settings but, with many labels, a number of validation rows, not a share.

        They only tune a threshold then, for which 5,000 rows are enough.
        """
        enough = data.Y.n_labels < MANY_LABELS or len(data) * self.validation <= _VALIDATION_ROWS
        return self if enough else replace(self, validation=_VALIDATION_ROWS)

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
        if not (data.is_table or test.is_table):
            check_width(test, data.n_features)
        method = "random" if self.split == "random" else "stratified"
        train, validation = self._divide(
            replace(data, part=None), divide_by, method=method, test_size=self.validation
        )
        return Parts(train, validation, test)

    def _divide(self, data: Dataset, labels: LabelMatrix | None, **sizes: Any) -> list[Dataset]:
        """The parts of a data set, made as if these were its labels."""
        from labelweave.data.splits import split_rows

        by = data if labels is None else replace(data, Y=labels)
        parts = split_rows(by, random_state=self.seed, **sizes)
        return [replace(data[rows], part=None) for rows in parts]

    def describe(self, data: Dataset) -> str:
        """Where the test rows come from, in a few words."""
        if self.test is not None:
            return f"test rows from {self.test}"
        if self.split in ("stratified", "random"):
            return f"{self.split} split, seed {self.seed}"
        official = data.part is not None and "test" in set(data.part)
        if official and self.test_size is None:
            return "official split"
        kind = "random" if data.Y.n_labels >= MANY_LABELS else "stratified"
        return f"{kind} split, seed {self.seed}"


class TrainingData(NamedTuple):
    """The data of one training, where they come from, and how they were divided.

    Without `parts` all rows are training rows.
    """

    data: Dataset
    source: Source
    protocol: SplitSettings
    parts: Parts | None


def about_rows_together(data: Dataset, parts: Parts) -> list[str]:
    """Sentences about equal rows and groups: how many there are, and where the parts divide them.

    Only parts that were given divide them: the official ones, or a file of test rows.
    """
    from labelweave.data.equal_rows import count_equal_rows, row_hashes, rows_together

    notes = []
    if n_equal := count_equal_rows(data.X):
        notes.append(f"{n_equal:,} rows are equal to another row: the split keeps them in one part")
    if data.groups is not None:
        n_groups = int(rows_together(groups=data.groups).max(initial=-1)) + 1
        notes.append(f"{n_groups:,} groups of rows: the split keeps each in one part")
    learnt = np.concatenate([row_hashes(part.X) for part in parts[:2]])
    shared = {"are equal to": int(np.isin(row_hashes(parts.test.X), learnt).sum())}
    if all(part.groups is not None for part in parts):
        groups = {group for part in parts[:2] for group in part.groups or ()}
        n_in_groups = sum(group in groups for group in parts.test.groups or ())
        shared["share a group with"] = n_in_groups
    notes += [
        f"but {n_rows:,} of the {len(parts.test):,} test rows {relation} rows for training or "
        "validation, so the scores are too good"
        for relation, n_rows in shared.items()
        if n_rows
    ]
    return notes


def check_finite(
    data: Dataset, shown: str, *, first_row: int = 0, names: Sequence[str] | None = None
) -> None:
    """Refuse missing, infinite and too large features while their row in the file is known.

    `first_row` is the place of the first row in the file, `names` those of the features where
    the data do not have them.
    """
    from labelweave.input_checks import LARGEST, first_out_of_range

    if data.is_text or data.is_image or data.is_table:
        return  # the cells of a table are checked when it is encoded
    wrong = first_out_of_range(data.X, largest=LARGEST)
    if wrong is None:
        return
    value, row, column = wrong
    names, ids = names or data.feature_names, data.row_ids
    feature = f"number {column}" if names is None else repr(str(names[column]))
    which = f"{first_row + row} (the first is 0)" if ids is None else repr(str(ids[row]))
    cure = "put a number there, or leave that row or column out"
    if np.isnan(value):
        is_what = "missing"
    elif np.isinf(value):
        is_what = "infinite"
    else:
        is_what = f"{value:.4g}, beyond 2**64 (about 1.8e19) and too large to compute with"
        cure = "scale or clip that column"
    raise InputError(f"{shown}: feature {feature} of row {which} is {is_what}: {cure}")


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
