"""ARFF files: Weka's, with Mulan's XML beside them or MEKA's `-C n` inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labelweave.data.compression import iter_blocks, open_binary
from labelweave.data.dataset import Dataset
from labelweave.data.readers.arff_columns import ArffColumns, Roles
from labelweave.data.readers.arff_header import Header, read_header
from labelweave.data.readers.arff_rows import RowParser
from labelweave.data.readers.base import (
    FeatureSpec,
    FilePath,
    Piece,
    Reader,
    choose_columns,
    find_columns,
    join_pieces,
    make_dataset,
)
from labelweave.data.readers.mulan_xml import find_mulan_xml, read_mulan_xml
from labelweave.exceptions import DataFileError, InputError

__all__ = ["READER", "read_arff"]


def read_arff(
    path: FilePath,
    *,
    labels: Any = None,
    require_labels: bool = True,
    id_column: str | None = None,
    text_column: str | None = None,
    drop: Sequence[str] = (),
    nominal: str = "one-hot",
) -> Dataset:
    r"""Read an ARFF file, dense or sparse.

    The labels are, in this order: those of `labels`; those of Mulan's XML file of the same
    stem beside it (for ``scene-train.arff`` also ``scene.xml``), in its order; those of MEKA's
    ``-C n`` in the relation's name. MEKA's ``-split-number`` becomes the official parts.

    Parameters
    ----------
    path : path-like
        May be compressed. The text is UTF-8, or Latin-1 where it is not valid UTF-8, as in
        many old files.
    labels : int, str or sequence of str, optional
        k for the last k attributes, -k for the first k, a pattern (``"Class*"``), a list of
        names, or the path of a Mulan XML file (ending in ``.xml``).
    require_labels : bool, default=True
        False allows a file without labels; Y then has no columns.
    id_column : str, optional
        An attribute that names the rows.
    text_column : str, optional
        A string attribute to be X, alone. Found by itself if it is the only attribute besides
        the labels.
    drop : sequence of str
        Attributes to leave out.
    nominal : {"one-hot", "codes"}
        What a nominal attribute of more than two values becomes: a 0/1 column for each value
        (``attribute=value``), or one column of their positions, 0, 1, 2, ...

    Returns
    -------
    Dataset
        `?` is NaN in X and unknown in Y; dates are seconds since 1970. X is float32, or
        float64 where float32 would damage large whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "weather.arff"
    ...     _ = path.write_text(
    ...         "@relation weather\n@attribute degrees numeric\n"
    ...         "@attribute sunny {0,1}\n@attribute windy {0,1}\n@data\n21.5,1,0\n14,?,1\n"
    ...     )
    ...     data = read_arff(path, labels=2)
    >>> data.label_names, data.X.tolist()
    (('sunny', 'windy'), [[21.5], [14.0]])
    >>> data.Y.to_numpy()
    array([[ 1.,  0.],
           [nan,  1.]], dtype=float32)
    """
    path = Path(path)
    with open_binary(path) as file:
        header = read_header(file, path)
        label_columns = _label_columns(header, labels, path)
        if label_columns is None and require_labels:
            raise DataFileError(
                "nothing says which attributes are labels: put Mulan's XML file beside it, or give "
                "labels= (a list of names, or a number k for the last k attributes)",
                path=path,
            )
        roles = _roles(header, label_columns or [], id_column, text_column, drop, path)
        columns = ArffColumns(header.attributes, roles, path, one_hot=_is_one_hot(nominal))
        pieces = list(_pieces(file, header, columns, path))
    if not pieces:
        raise DataFileError("the file has no data rows", path=path)
    whole = join_pieces(pieces)
    del pieces
    part = None
    if (n_train := header.meka_split) is not None and n_train < len(whole):
        part = ["train"] * n_train + ["test"] * (len(whole) - n_train)
    return make_dataset(
        path,
        whole.X,
        whole.Y,
        columns.label_names,
        feature_names=columns.feature_names if roles.text is None else None,
        row_ids=whole.row_ids,
        part=part,
    )


def _feature_pieces(
    path: FilePath,
    features: FeatureSpec,
    *,
    labels: Any = None,
    id_column: str | None = None,
    text_column: str | None = None,
    drop: Sequence[str] = (),
    nominal: str = "one-hot",
) -> Iterator[Piece]:
    """Features of a file whose labels do not matter."""
    path = Path(path)
    with open_binary(path) as file:
        header = read_header(file, path)
        label_columns = _label_columns(header, labels, path, all_there=False) or []
        if features.names is not None:
            wanted = set(features.names)
            label_columns = [j for j in label_columns if header.names[j] not in wanted]
            unwanted_strings = [
                attribute.name
                for attribute in header.attributes
                if attribute.kind == "string" and attribute.name not in (id_column, text_column)
            ]
            drop = [*drop, *unwanted_strings]
        roles = _roles(header, label_columns, id_column, text_column, drop, path)
        columns = ArffColumns(header.attributes, roles, path, one_hot=_is_one_hot(nominal))
        chosen = None
        if roles.text is None:
            chosen = features.columns(columns.feature_names, path)
        for piece in _pieces(file, header, columns, path):
            yield Piece(piece.X if chosen is None else piece.X[:, chosen], row_ids=piece.row_ids)


def _pieces(file: Any, header: Header, columns: ArffColumns, path: Path) -> Iterator[Piece]:
    parser = RowParser(header.attributes, path)
    for first_line, block in iter_blocks(file, path, first_line=header.first_data_line):
        rows = parser.parse(block, first_line)
        if rows is not None:
            yield columns.encode(rows)


def _is_one_hot(nominal: str) -> bool:
    if nominal not in ("one-hot", "codes"):
        raise InputError(f"nominal= is 'one-hot' or 'codes', not {nominal!r}")
    return nominal == "one-hot"


def _label_columns(
    header: Header, labels: Any, path: Path, *, all_there: bool = True
) -> list[int] | None:
    """Positions of the label attributes, None if nothing names them.

    A file to predict on may lack some or all of them: `all_there` is then False.
    """
    beside = find_mulan_xml(path) if labels is None else None
    if isinstance(labels, str) and labels.lower().endswith(".xml"):
        beside = Path(labels)
    if beside is not None:
        labels = read_mulan_xml(beside)
    if labels is None and (count := header.meka_labels):
        labels = -count  # MEKA counts from the start
    if labels is None:
        return None
    if not all_there and isinstance(labels, list | tuple):
        there = set(header.names)
        labels = [name for name in labels if name in there]
    return choose_columns(labels, header.names, path)


def _roles(
    header: Header,
    label_columns: list[int],
    id_column: str | None,
    text_column: str | None,
    drop: Sequence[str],
    path: Path,
) -> Roles:
    names = header.names
    dropped = set(find_columns(drop, names, path))
    row_id = None if id_column is None else find_columns([id_column], names, path)[0]
    text = None if text_column is None else find_columns([text_column], names, path)[0]
    left = set(range(len(names))) - dropped - set(label_columns) - {row_id}
    if text is None and len(left) == 1 and header.attributes[min(left)].kind == "string":
        text = min(left)
    if text is not None and header.attributes[text].kind != "string":
        raise DataFileError(f"the attribute {names[text]!r} holds no strings", path=path)
    if len(set(label_columns)) < len(label_columns):
        raise DataFileError("labels= names an attribute twice", path=path)
    return Roles(label_columns, row_id, text, dropped)


def _score(name: str, head: bytes) -> int:
    if name.lower().endswith(".arff"):
        return 3
    lines = [line.strip().lower() for line in head.removeprefix(b"\xef\xbb\xbf").splitlines()]
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return 3 if first.startswith((b"@relation", b"@attribute")) else 0


READER = Reader(
    "arff", "ARFF, dense or sparse (Weka, Mulan, MEKA)", _score, read_arff, _feature_pieces
)
