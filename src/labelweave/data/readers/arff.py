"""ARFF files of Weka, also with the XML file of Mulan or the option `-C n` of MEKA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from labelweave.data.compressed_files import (
    COMPRESSED_ENDINGS,
    iter_line_chunks,
    open_binary,
    parse_xml,
    read_small_file,
    uncompressed_stem,
)
from labelweave.data.dataset import Dataset
from labelweave.data.readers._arff.column_encoder import ColumnEncoder, ColumnRoles
from labelweave.data.readers._arff.header import Header, read_header
from labelweave.data.readers._arff.row_parser import RowParser
from labelweave.data.readers._shared.columns import choose_columns, find_columns
from labelweave.data.readers.reader import (
    FeatureSpec,
    FilePath,
    Reader,
    RowChunk,
    concatenate_chunks,
    make_dataset,
)
from labelweave.exceptions import DataFileError, InputError


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

    The labels are, in this order of precedence: the attributes that `labels` names; those of
    Mulan's XML file with the same stem in the same folder (for ``scene-train.arff`` also
    ``scene.xml``), in its order; those of MEKA's ``-C n`` in the name of the relation. MEKA's
    ``-split-number`` sets the official parts.

    Parameters
    ----------
    path : path-like
        The file may be compressed. Its text is UTF-8 or, as in many old files that are not valid
        UTF-8, Latin-1.
    labels : int, str or sequence of str, optional
        k for the last k attributes, -k for the first k, a pattern (``"Class*"``), a list of names,
        or the path of an XML file of Mulan (ending in ``.xml``).
    require_labels : bool, default=True
        False accepts a file without labels; Y then has no columns.
    id_column : str, optional
        Attribute that names the rows.
    text_column : str, optional
        String attribute that alone becomes X. It need not be named if it is the only attribute
        besides the labels.
    drop : sequence of str
        Attributes to leave out.
    nominal : {"one-hot", "codes"}
        Encoding of a nominal attribute of more than two values: one 0/1 column per value
        (``attribute=value``), or one column of positions 0, 1, 2, ...

    Returns
    -------
    Dataset
        `?` is NaN in X and unknown in Y; dates are seconds since 1970. X is float32, or float64
        where float32 would round large whole numbers.

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
    source, path = path, Path(path)
    with open_binary(source) as file:
        header = read_header(file, path)
        label_columns = _label_columns(header, labels, path)
        if label_columns is None and require_labels:
            raise DataFileError(
                "it is not known which attributes are labels: put the XML file of Mulan into the "
                "same folder, or use labels= (a list of names, or a number k for the last k "
                "attributes)",
                path=path,
                parameter="labels",
            )
        roles = _column_roles(header, label_columns or [], id_column, text_column, drop, path)
        encoder = ColumnEncoder(header.attributes, roles, path, one_hot=_is_one_hot(nominal))
        chunks = list(_row_chunks(file, header, encoder, path))
    if not chunks:
        raise DataFileError("the file has no data rows", path=path)
    rows = concatenate_chunks(chunks)
    del chunks
    part = None
    if (n_train := header.meka_split) is not None and n_train < len(rows):
        part = ["train"] * n_train + ["test"] * (len(rows) - n_train)
    return make_dataset(
        path,
        rows.X,
        rows.Y,
        encoder.label_names,
        feature_names=encoder.feature_names if roles.text is None else None,
        row_ids=rows.row_ids,
        part=part,
    )


def _iter_features(
    path: FilePath,
    features: FeatureSpec,
    *,
    labels: Any = None,
    id_column: str | None = None,
    text_column: str | None = None,
    drop: Sequence[str] = (),
    nominal: str = "one-hot",
) -> Iterator[RowChunk]:
    source, path = path, Path(path)
    with open_binary(source) as file:
        header = read_header(file, path)
        label_columns = _label_columns(header, labels, path, may_be_missing=True) or []
        if features.names is not None:
            names, wanted = header.names, set(features.names)
            label_columns = [j for j in label_columns if names[j] not in wanted]
            strings = [a.name for a in header.attributes if a.kind == "string"]
            drop = [*drop, *(name for name in strings if name not in (id_column, text_column))]
        roles = _column_roles(header, label_columns, id_column, text_column, drop, path)
        encoder = ColumnEncoder(header.attributes, roles, path, one_hot=_is_one_hot(nominal))
        columns = None
        if roles.text is None:
            columns = features.columns(encoder.feature_names, path)
        for rows in _row_chunks(file, header, encoder, path):
            yield RowChunk(rows.X if columns is None else rows.X[:, columns], row_ids=rows.row_ids)


def _row_chunks(
    file: BinaryIO, header: Header, encoder: ColumnEncoder, path: Path
) -> Iterator[RowChunk]:
    parser = RowParser(header.attributes, path)
    for first_line, lines in iter_line_chunks(file, path, first_line=header.first_data_line):
        rows = parser.parse(lines, first_line)
        if rows is not None:
            yield encoder.encode(rows)


def _is_one_hot(nominal: str) -> bool:
    if nominal not in ("one-hot", "codes"):
        raise InputError(f"nominal= must be 'one-hot' or 'codes', not {nominal!r}")
    return nominal == "one-hot"


def _label_columns(
    header: Header, labels: Any, path: Path, *, may_be_missing: bool = False
) -> list[int] | None:
    """Positions of the label attributes; None if nothing names them.

    A file to predict on may lack some or all of them, with `may_be_missing`.
    """
    xml_file = find_mulan_xml(path) if labels is None else None
    if isinstance(labels, str) and labels.lower().endswith(".xml"):
        xml_file = Path(labels)
    if xml_file is not None:
        labels = read_mulan_xml(xml_file)
    if labels is None and (count := header.meka_labels):
        labels = -count  # MEKA counts from the start
    if labels is None:
        return None
    if may_be_missing and isinstance(labels, list | tuple):
        available = set(header.names)
        labels = [name for name in labels if name in available]
    return choose_columns(labels, header.names, path)


def _column_roles(
    header: Header,
    label_columns: list[int],
    id_column: str | None,
    text_column: str | None,
    drop: Sequence[str],
    path: Path,
) -> ColumnRoles:
    names = header.names
    dropped = set(find_columns(drop, names, path))
    row_id = None if id_column is None else find_columns([id_column], names, path)[0]
    text = None if text_column is None else find_columns([text_column], names, path)[0]
    others = set(range(len(names))) - dropped - set(label_columns) - {row_id}
    if text is None and len(others) == 1 and header.attributes[min(others)].kind == "string":
        text = min(others)
    if text is not None and header.attributes[text].kind != "string":
        raise DataFileError(f"the attribute {names[text]!r} does not hold strings", path=path)
    if len(set(label_columns)) < len(label_columns):
        raise DataFileError("labels= names an attribute twice", path=path, parameter="labels")
    return ColumnRoles(label_columns, row_id, text, dropped)


_PART_ENDING = re.compile(r"[-_.](train|test|validation|valid|val|dev|fold\d*|\d+)$", re.IGNORECASE)


def find_mulan_xml(path: Path) -> Path | None:
    """Find the XML file of an ARFF file: for `scene-train.arff` also `scene.xml`."""
    stem = uncompressed_stem(path)
    while True:
        for ending in ("", *COMPRESSED_ENDINGS):
            xml_file = path.with_name(f"{stem}.xml{ending}")
            if xml_file.is_file():
                return xml_file
        shorter = _PART_ENDING.sub("", stem)
        if shorter in ("", stem):
            return None
        stem = shorter


def read_mulan_xml(path: Path) -> list[str]:
    """Read the label names of Mulan's XML file in order, including labels nested in others."""
    root = parse_xml(read_small_file(path), path)
    names = [
        element.get("name", "")
        for element in root.iter()
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] == "label"
    ]
    if not names or "" in names:
        raise DataFileError(
            'expected elements <label name="..."> that name the label attributes', path=path
        )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataFileError(f"the label {repeated!r} is listed twice", path=path)
    return names


READER = Reader(read_arff, _iter_features)
