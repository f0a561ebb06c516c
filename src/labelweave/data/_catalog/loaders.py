"""How the files of a catalog data set become a Dataset.

A loader gets the catalog entry, the files and the choices of the caller. Most data sets use
`tables`; the others keep fields, parts or descriptions in files of their own formats.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelweave.data._catalog.locations import Files
from labelweave.data.compressed_files import iter_json_objects
from labelweave.data.dataset import Dataset
from labelweave.data.label_files import read_label_file
from labelweave.data.readers.reader import LABELS_LISTED
from labelweave.data.reading import read_dataset
from labelweave.data.splits import concatenate_parts, train_rows_first
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import as_labels

if TYPE_CHECKING:
    from labelweave.data.catalog import CatalogEntry

Choices = Mapping[str, Any]
Loader = Callable[["CatalogEntry", Files, Choices], Dataset]


def _load_tables(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Files that a reader reads: one per part, or a single file whose parts follow each other."""
    parts = {
        part: read_dataset(files[name], **entry.reader_options)
        for part, name in entry.files.items()
    }
    if "all" not in parts:
        return concatenate_parts(parts)
    return parts["all"] if entry.parts is None else _with_parts(parts["all"], entry.parts)


def _load_sider(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Fingerprint bits or, with `smiles=True`, the SMILES strings of the same rows."""
    if choices["smiles"]:
        return read_dataset(files["sider.csv"], text_column="smiles", labels=entry.labels)
    return read_dataset(files["sider.arff"])


def _load_icons(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Images with their names and groups, or rows of numbers from 0 to 1."""
    data = read_dataset(files["mdi-icons-32x32.npz"], flatten=not choices["images"])
    records = list(_records(files["names.jsonl"], "name", "base"))
    return train_rows_first(
        replace(
            data,
            X=data.X if choices["images"] else data.X / 255,
            row_ids=[record["name"] for record in records],
            groups=[record["base"] for record in records],
        )
    )


def _load_digit_scenes(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Scenes made of scikit-learn's digits: images, or rows of numbers from 0 to 1."""
    from labelweave.data._catalog.digit_scenes import digit_scenes

    data = digit_scenes()
    if choices["images"]:
        return data
    return replace(data, X=data.X.reshape(len(data), -1).astype(np.float32) / 255)


def _load_photographs(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """The images that a table names."""
    return train_rows_first(read_dataset(files["labels.csv"], format="images"))


def _load_reuters(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """The documents of a split that have a label which occurs in both of its parts."""
    field = choices["field"]
    fields = ("topics", "places", "people", "orgs", "exchanges")
    if field not in fields:
        raise InputError(f"field must be one of {', '.join(fields)}, not {field!r}")
    # ModApte uses the documents that were indexed for topics, ModLewis also those without any
    # topic. Both leave out the documents that were not indexed.
    has_topics = {"YES"} if field == "topics" else {"YES", "NO"}
    documents = [
        document
        for document in _records(
            files["reuters21578.jsonl"], "id", "split", "has_topics", "title", "text", field
        )
        if document["has_topics"] in has_topics and document["split"] in ("TRAIN", "TEST")
    ]
    train_labels, test_labels = (
        {label for document in documents if document["split"] == split for label in document[field]}
        for split in ("TRAIN", "TEST")
    )
    names = train_labels & test_labels
    documents = [document for document in documents if names.intersection(document[field])]
    descriptions = {
        label: text
        for label, text in read_label_file(files["labels.json"], field=field).items()
        if label in names - {text} and text
    }
    data = Dataset(
        [_text_of(document) for document in documents],
        as_labels(
            [[label for label in document[field] if label in names] for document in documents],
            names=sorted(names),
            descriptions=descriptions,
        ),
        row_ids=[document["id"] for document in documents],
        part=[document["split"].lower() for document in documents],
    )
    return train_rows_first(data)


def _load_debtags(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Package descriptions, grouped by source package."""
    data = read_dataset(files["documents.jsonl"], text_only=True)
    groups = [record["source"] for record in _records(files["documents.jsonl"], "source")]
    return train_rows_first(replace(data, groups=groups))


def _load_headings(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Titles and abstracts with their subject headings, record by record into a sparse matrix."""
    texts_of_labels = read_label_file(files["labels.jsonl"])
    position = {name: j for j, name in enumerate(texts_of_labels)}
    texts: list[str] = []
    part: list[str] = []
    columns, ends = array("i"), array("q", [0])
    for record in _records(files["documents.jsonl"], "text", "labels", "split"):
        texts.append(record["text"])
        part.append(sys.intern(record["split"]))
        try:
            columns.extend(sorted({position[name] for name in record["labels"]}))
        except KeyError as error:
            raise DataFileError(
                f"the label {error.args[0]!r} is not in labels.jsonl",
                path=files["documents.jsonl"],
            ) from None
        ends.append(len(columns))
    matrix = sp.csr_array(
        (np.ones(len(columns), np.float32), np.array(columns), np.array(ends)),
        shape=(len(texts), len(position)),
    )
    descriptions = {name: text for name, text in texts_of_labels.items() if text not in ("", name)}
    data = Dataset(texts, as_labels(matrix, names=list(position), descriptions=descriptions))
    return train_rows_first(replace(data, part=part, facts=LABELS_LISTED))


def _load_mesh(entry: CatalogEntry, files: Files, choices: Choices) -> Dataset:
    """Abstracts with their major and minor headings, or the major ones only."""
    documents = list(_records(files["cfc.jsonl"], "id", "title", "text", "major", "minor"))
    kinds = ("major",) if choices["major"] else ("major", "minor")
    return Dataset(
        [_text_of(document) for document in documents],
        as_labels(
            [[label for kind in kinds for label in document[kind]] for document in documents]
        ),
        row_ids=[document["id"] for document in documents],
    )


LOADERS: dict[str, Loader] = {
    "tables": _load_tables,
    "sider": _load_sider,
    "icons": _load_icons,
    "digit-scenes": _load_digit_scenes,
    "photographs": _load_photographs,
    "reuters": _load_reuters,
    "debtags": _load_debtags,
    "headings": _load_headings,
    "mesh": _load_mesh,
}


def load_from_package(entry: CatalogEntry, path: Path) -> Dataset:
    """Load the rows from a file of an installed package, in the order of the official files."""
    assert entry.package is not None
    data = read_dataset(path, labels=entry.package["labels"])
    return train_rows_first(_with_parts(data, entry.package["parts"]))


def _with_parts(data: Dataset, parts: Mapping[str, int]) -> Dataset:
    """Name the official parts, whose rows follow each other."""
    if len(data) != sum(parts.values()):
        return data  # the catalog refuses the number of rows, together with other wrong counts
    return replace(data, part=[part for part, n_rows in parts.items() for _ in range(n_rows)])


def _records(path: Path, *fields: str) -> Iterator[dict[str, Any]]:
    """Iterate over the objects of a JSONL file, each of which must have these fields."""
    for line, record in iter_json_objects(path):
        if not record.keys() >= set(fields):
            raise DataFileError(
                f"expected a JSON object with {', '.join(fields)}", path=path, line=line
            )
        yield record


def _text_of(document: Mapping[str, Any]) -> str:
    return "\n".join(part for part in (document["title"], document["text"]) if part)
