"""What all readers share: their interface, the choice of label columns, joining of pieces."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any

import numpy as np

from labelweave.data.compression import inner_stem
from labelweave.data.dataset import Dataset
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.rows import concatenate_features

__all__ = [
    "FeatureSpec",
    "Piece",
    "Reader",
    "choose_columns",
    "feature_dtype",
    "join_pieces",
    "make_dataset",
    "regroup",
    "MAX_DENSE_LABELS",
]

FilePath = str | PathLike[str]

MAX_DENSE_LABELS = 64
"""Labels of sparse formats are kept dense up to this many; wider label matrices stay sparse."""


LISTED = {"labels_listed": True}
"""Facts of a data set whose file lists the labels of a row: one it never lists is negative."""


@dataclass(frozen=True)
class Reader:
    """One file format.

    Parameters
    ----------
    name : str
        How `format=` calls it.
    summary : str
        What the format looks like, in a few words.
    score : callable
        `score(file_name, head)` with the name without compression endings and the first
        bytes, unpacked: 0 for "not mine", higher for surer.
    read : callable
        `read(path, **options)` gives a :class:`~labelweave.data.Dataset`.
    pieces : callable
        `pieces(path, features, **options)` yields :class:`Piece` objects of features only, in
        the columns that `features` asks for.
    """

    name: str
    summary: str
    score: Callable[[str, bytes], int]
    read: Callable[..., Dataset]
    pieces: Callable[..., Iterator[Piece]]


@dataclass
class Piece:
    """Some rows of a file: features, labels, ids and parts, each where the file has it."""

    X: Any
    Y: Any = None
    row_ids: list[Any] | None = None
    part: list[str] | None = None

    def __len__(self) -> int:
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)

    def rows(self, start: int, stop: int) -> Piece:
        def cut(values: Any) -> Any:
            return None if values is None else values[start:stop]

        return Piece(cut(self.X), cut(self.Y), cut(self.row_ids), cut(self.part))


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """One piece with all rows, in order."""

    def join(values: list[Any]) -> Any:
        return None if values[0] is None else concatenate_features(values)

    return Piece(
        join([piece.X for piece in pieces]),
        join([piece.Y for piece in pieces]),
        join([piece.row_ids for piece in pieces]),
        join([piece.part for piece in pieces]),
    )


def regroup(pieces: Iterable[Piece], batch_rows: int) -> Iterator[Piece]:
    """The same rows in pieces of exactly `batch_rows` (the last one may be shorter)."""
    waiting: list[Piece] = []
    n_waiting = 0
    for piece in pieces:
        waiting.append(piece)
        n_waiting += len(piece)
        if n_waiting < batch_rows:
            continue
        joined = join_pieces(waiting)
        start = 0
        for start in range(0, n_waiting - batch_rows + 1, batch_rows):
            yield joined.rows(start, start + batch_rows)
        waiting = [joined.rows(start + batch_rows, n_waiting)]
        n_waiting = len(waiting[0])
    if n_waiting:
        yield join_pieces(waiting)


@dataclass(frozen=True)
class FeatureSpec:
    """The feature columns that a caller (a fitted model) wants, by name or by number."""

    names: Sequence[str] | None = None
    n_features: int | None = None

    def columns(self, found: Sequence[str], path: FilePath) -> np.ndarray | None:
        """Which of the columns found in a file to take; None for all as they are."""
        if self.names is not None and tuple(self.names) != tuple(found):
            position = {name: j for j, name in enumerate(found)}
            missing = [name for name in self.names if name not in position]
            if missing:
                raise DataFileError(
                    f"the feature {missing[0]!r} is missing ({len(missing)} of "
                    f"{len(self.names)} features are not among the {len(found)} columns)",
                    path=path,
                )
            return np.array([position[name] for name in self.names], dtype=np.intp)
        self.check_width(len(found), path)
        return None

    @property
    def width(self) -> int | None:
        """How many columns are wanted, where that is known."""
        return len(self.names) if self.names is not None else self.n_features

    def check_width(self, width: int, path: FilePath) -> None:
        if self.n_features is not None and self.n_features != width:
            raise DataFileError(
                f"the file has {width} feature columns, but {self.n_features} are wanted: "
                "name its label columns with labels=, or the columns to leave out with drop=",
                path=path,
            )


def choose_columns(wanted: Any, names: Sequence[str], path: FilePath) -> list[int]:
    """Positions of the label columns that a `labels=` option means.

    Parameters
    ----------
    wanted : int, str or sequence of str
        A positive number k means the last k columns, a negative one the first k; a text is a
        pattern such as ``"Class*"``; a sequence names the columns.
    names : sequence of str
        All columns of the file.
    path : path-like
        For the error message.

    Examples
    --------
    >>> choose_columns(2, ["a", "b", "c"], "f")
    [1, 2]
    >>> choose_columns(-1, ["a", "b", "c"], "f")
    [0]
    >>> choose_columns("tag_*", ["x", "tag_1", "tag_2"], "f")
    [1, 2]
    """
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
        count = int(wanted)
        if not 0 < abs(count) <= len(names):
            raise DataFileError(
                f"labels={count} asks for {abs(count)} of the {len(names)} columns", path=path
            )
        every = list(range(len(names)))
        return every[-count:] if count > 0 else every[:-count]
    if isinstance(wanted, str):
        chosen = [j for j, name in enumerate(names) if fnmatchcase(name, wanted)]
        if not chosen:
            raise DataFileError(
                f"no column is named {wanted!r} (labels=); {_instead_of(wanted, names)}", path=path
            )
        return chosen
    if not isinstance(wanted, Sequence) or not all(isinstance(name, str) for name in wanted):
        raise InputError(
            f"labels= is a number of columns, a pattern or a list of names, not {wanted!r}"
        )
    return find_columns(wanted, names, path)


def find_columns(wanted: Sequence[str], names: Sequence[str], path: FilePath) -> list[int]:
    """Positions of the columns of these names, each of which there must be once."""
    position = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in position:
            hint = _instead_of(name, names)
            raise DataFileError(f"there is no column {name!r}; {hint}", path=path)
    if len(position) < len(names):
        for name in wanted:
            if names.count(name) > 1:
                raise DataFileError(f"more than one column is named {name!r}", path=path)
    return [position[name] for name in wanted]


def _instead_of(name: str, names: Sequence[str]) -> str:
    """What a message adds on a name or pattern that no column has.

    >>> _instead_of("bleu", ["red", "blue"]), _instead_of("kind_*", list("abcdefgh"))
    ("did you mean 'blue'?", "the columns are 'a', 'b', 'c', 'd', 'e', ..., 'h'")
    """
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    if near and "*" not in name:
        return f"did you mean {near[0]!r}?"
    shown = [repr(other) for other in names]
    if len(shown) > 7:
        shown = [*shown[:5], "...", shown[-1]]
    return f"the columns are {', '.join(shown)}"


def feature_dtype(values: np.ndarray) -> type[np.floating]:
    """float32, or float64 where float32 would lose what the numbers say.

    That is the case for values beyond the range of float32 and for whole numbers (counts,
    identifiers, seconds) above 2**24 that float32 cannot tell from their neighbours.

    >>> feature_dtype(np.array([0.1, 3.0])), feature_dtype(np.array([2.0**24 + 1]))
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    if values.dtype == np.float32:
        return np.float32
    sizes = np.abs(values)
    if not (sizes > 2**24).any():
        return np.float32
    large = values[(sizes > 2**24) & np.isfinite(values)]
    with np.errstate(over="ignore"):
        kept = large.astype(np.float32)
    damaged = ~np.isfinite(kept) | ((large == np.rint(large)) & (kept != large))
    return np.float64 if damaged.any() else np.float32


def make_dataset(
    path: FilePath,
    X: Any,
    Y: Any,
    label_names: Sequence[str] | None,
    *,
    descriptions: Mapping[str, str] | None = None,
    **more: Any,
) -> Dataset:
    """A data set named after its file; label errors name the file."""
    try:
        labels = (
            no_labels(len(X) if not hasattr(X, "shape") else X.shape[0])
            if Y is None
            else as_labels(Y, names=label_names, descriptions=descriptions)
        )
        more.setdefault("name", inner_stem(path))
        return Dataset(X, labels, **more)
    except DataFileError:
        raise
    except InputError as error:
        raise DataFileError(str(error), path=path) from None


def no_labels(n_rows: int) -> LabelMatrix:
    """A label matrix without labels, for rows that are to be predicted."""
    return LabelMatrix(np.zeros((n_rows, 0), dtype=np.float32), ())
