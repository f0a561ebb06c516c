"""How the files of a named data set become a Dataset.

A recipe takes the catalog entry, the files found and the caller's choices. Most sets need
`table` alone; the others have their fields, parts or descriptions in places of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.data.compression import iter_lines
from labelweave.data.dataset import Dataset
from labelweave.data.readers.label_lists import read_label_file
from labelweave.data.reading import read_dataset
from labelweave.data.sources import Files
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import as_labels
from labelweave.rows import concatenate_features, concatenate_labels

if TYPE_CHECKING:
    from labelweave.data.catalog import CatalogEntry

__all__ = ["RECIPES", "from_package", "join_parts", "train_first"]

Choices = Mapping[str, Any]
Recipe = Callable[["CatalogEntry", Files, Choices], Dataset]


def table(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Files that a reader understands, one a part; a single file may be cut into parts."""
    loaded = {
        part: read_dataset(files[name], **entry.options) for part, name in entry.files.items()
    }
    if "all" not in loaded:
        return join_parts(loaded)
    return loaded["all"] if entry.parts is None else _cut(loaded["all"], entry.parts)


def sider(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Fingerprint bits or, with `smiles=True`, the SMILES strings of the same rows."""
    if choices["smiles"]:
        return read_dataset(files["sider.csv"], text_column="smiles", labels=entry.labels)
    return read_dataset(files["sider.arff"])


def icons(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Images with their names and groups; flat rows are scaled to the range from 0 to 1."""
    data = read_dataset(files["mdi-icons-32x32.npz"], flatten=not choices["images"])
    about = list(_json_lines(files["names.jsonl"], "name", "base"))
    return train_first(
        replace(
            data,
            X=data.X if choices["images"] else data.X / 255,
            row_ids=[fields["name"] for fields in about],
            groups=[fields["base"] for fields in about],
        )
    )


def digits(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Scenes composed of scikit-learn's digits; flat rows are scaled to the range from 0 to 1."""
    from labelweave.data.digit_scenes import digit_scenes

    data = digit_scenes()
    if choices["images"]:
        return data
    return replace(data, X=data.X.reshape(len(data), -1).astype(np.float32) / 255)


def reuters(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """The documents of a split with a label that occurs on both of its sides."""
    field = choices["field"]
    fields = ("topics", "places", "people", "orgs", "exchanges")
    if field not in fields:
        raise InputError(f"field is one of {', '.join(fields)}, not {field!r}")
    # ModApte takes the documents that were indexed for topics; ModLewis also those found to
    # have none. Both leave out the documents that the indexers passed over.
    usable = {"YES"} if field == "topics" else {"YES", "NO"}
    documents = [
        document
        for document in _json_lines(
            files["reuters21578.jsonl"], "id", "split", "has_topics", "title", "text", field
        )
        if document["has_topics"] in usable and document["split"] in ("TRAIN", "TEST")
    ]
    sides = [
        {label for document in documents if document["split"] == split for label in document[field]}
        for split in ("TRAIN", "TEST")
    ]
    both = sides[0] & sides[1]
    kept = [document for document in documents if both.intersection(document[field])]
    long_names = read_label_file(files["labels.json"], field_name=field).descriptions
    data = Dataset(
        [_text_of(document) for document in kept],
        as_labels(
            [[label for label in document[field] if label in both] for document in kept],
            names=sorted(both),
            descriptions={
                label: text for label, text in long_names.items() if label in both - {text}
            },
        ),
        row_ids=[document["id"] for document in kept],
        part=[document["split"].lower() for document in kept],
    )
    return train_first(data)


def debtags(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Package descriptions, grouped by source package."""
    data = read_dataset(files["documents.jsonl"])
    groups = [fields["source"] for fields in _json_lines(files["documents.jsonl"], "source")]
    return train_first(replace(data, groups=groups))


def mesh(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Abstracts with their major and minor headings, or the major ones alone."""
    documents = list(_json_lines(files["cfc.jsonl"], "id", "title", "text", "major", "minor"))
    kinds = ("major",) if choices["major"] else ("major", "minor")
    return Dataset(
        [_text_of(document) for document in documents],
        as_labels(
            [[label for kind in kinds for label in document[kind]] for document in documents]
        ),
        row_ids=[document["id"] for document in documents],
    )


RECIPES: dict[str, Recipe] = {
    function.__name__: function
    for function in (table, sider, icons, digits, reuters, debtags, mesh)
}


def from_package(entry: CatalogEntry, path: Path) -> Dataset:
    """The rows as an installed package carries them, in the order of the official files."""
    assert entry.package is not None
    data = read_dataset(path, labels=entry.package["labels"])
    return train_first(_cut(data, entry.package["parts"]))


def join_parts(parts: Mapping[str, Dataset]) -> Dataset:
    """One data set of several with the same features and labels; `part` says which.

    >>> a = Dataset(np.eye(2), [["x"], ["x"]])
    >>> list(join_parts({"train": a, "test": a[:1]}).part)
    ['train', 'train', 'test']
    """
    first = next(iter(parts.values()))
    for part, data in parts.items():
        for what in ("label_names", "feature_names"):
            if list(getattr(data, what) or ()) != list(getattr(first, what) or ()):
                raise InputError(
                    f"data set {first.name}: the {part} part has other "
                    f"{what.replace('_', ' ')} than the first part"
                )
    pieces = list(parts.values())
    return replace(
        first,
        X=concatenate_features([data.X for data in pieces]),
        Y=concatenate_labels([data.Y for data in pieces]),
        row_ids=_chain(data.row_ids for data in pieces),
        groups=_chain(data.groups for data in pieces),
        part=[part for part, data in parts.items() for _ in range(len(data))],
    )


def _chain(columns: Iterable[Sequence[Any] | None]) -> list[Any] | None:
    held = list(columns)
    if any(column is None for column in held):
        return None
    return [value for column in held for value in column or ()]


def _cut(data: Dataset, parts: Mapping[str, int]) -> Dataset:
    """The data set with its official parts, which follow one another."""
    if len(data) != sum(parts.values()):
        return data  # the count of the rows is refused later, together with the other counts
    return replace(data, part=[part for part, n_rows in parts.items() for _ in range(n_rows)])


def train_first(data: Dataset) -> Dataset:
    """The same rows, those of the train part before the others."""
    if data.part is None:
        return data
    order = {"train": 0, "validation": 1, "test": 2}
    return data[np.argsort([order.get(part, 3) for part in data.part], kind="stable")]


def _json_lines(path: Path, *fields: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file, each of which must have these fields."""
    for number, line in iter_lines(path):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not record.keys() >= set(fields):
            raise DataFileError(
                f"expected a JSON object with {', '.join(fields)}", path=path, line=number
            )
        yield record


def _text_of(document: Mapping[str, Any]) -> str:
    return "\n".join(part for part in (document["title"], document["text"]) if part)
