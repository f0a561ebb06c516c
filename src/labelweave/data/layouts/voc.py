"""PASCAL VOC: an XML file of objects for each image, and lists of the images of each part."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from labelweave.data.dataset import Dataset
from labelweave.data.images.decoding import ENDINGS
from labelweave.data.layouts.base import (
    ImageLayout,
    Reading,
    find_file,
    label_values,
    make_images,
)
from labelweave.exceptions import DataFileError, InputError

__all__ = ["LAYOUT", "read_voc"]

_PARTS = {"train": "train", "val": "validation", "trainval": "train", "test": "test"}
_DIFFICULT = ("unknown", "positive", "negative")


def read_voc(
    path: Path,
    *,
    difficult: str = "unknown",
    year: str | None = None,
    **reading: Any,
) -> Dataset:
    """Read ``Annotations/*.xml``, ``JPEGImages/`` and ``ImageSets/Main/*.txt``.

    Parameters
    ----------
    path : path
        Such a folder, or one like ``VOCdevkit`` that holds one (or, with `year`, several).
    difficult : {"unknown", "positive", "negative"}, default="unknown"
        What a label is whose objects in an image are all marked as difficult. The official
        scores leave them out, as unknown entries are left out.
    year : str, optional
        ``"2007"`` for the folder ``VOC2007``.
    **reading
        Options of :class:`labelweave.data.layouts.base.Reading`.

    Returns
    -------
    Dataset
        A part for each row where the lists tell; without lists, all annotated images.
    """
    if difficult not in _DIFFICULT:
        raise InputError(f"difficult is one of {', '.join(_DIFFICULT)}, not {difficult!r}")
    root = _root(Path(path), year)
    part_of = _parts(root)
    annotations = root / "Annotations"
    ids = list(part_of) or sorted(file.stem for file in annotations.glob("*.xml"))
    sure, doubtful = [], []
    files = []
    for id in ids:
        found, named = _objects(annotations / f"{id}.xml")
        clear = {name for name, is_difficult in found if not is_difficult}
        sure.append(clear)
        doubtful.append({name for name, _ in found} - clear)
        names = [named] if named else []
        files.append(
            find_file([root / "JPEGImages"], [*names, *(id + ending for ending in ENDINGS)])
        )
    names = sorted(set().union(*sure, *doubtful))
    if difficult == "positive":
        sure = [a | b for a, b in zip(sure, doubtful, strict=True)]
    unknown = doubtful if difficult == "unknown" else None
    return make_images(
        root,
        files,
        label_values(sure, names, unknown=unknown),
        Reading(**reading),
        row_ids=ids,
        part=[part_of[id] for id in ids] if part_of else None,
    )


def _root(path: Path, year: str | None) -> Path:
    found = [path] if (path / "Annotations").is_dir() else sorted(_inner(path))
    if year is not None:
        found = [folder for folder in found if folder.name.endswith(str(year))]
    if not found:
        raise DataFileError("there is no folder Annotations in it", path=path)
    if len(found) > 1:
        years = ", ".join(folder.name for folder in found)
        raise DataFileError(f"it holds several sets ({years}): choose one with year=", path=path)
    return found[0]


def _inner(path: Path) -> list[Path]:
    return [
        folder.parent
        for pattern in ("*/Annotations", "VOCdevkit/*/Annotations")
        for folder in path.glob(pattern)
    ]


def _parts(root: Path) -> dict[str, str]:
    """Image id to part, by the lists; train and val are more exact than trainval."""
    part_of: dict[str, str] = {}
    for name in ("train", "val", "trainval", "test"):
        file = root / "ImageSets" / "Main" / f"{name}.txt"
        if file.is_file():
            for line in file.read_text("utf-8").splitlines():
                if line.strip():
                    part_of.setdefault(line.split()[0], _PARTS[name])
    return part_of


def _objects(file: Path) -> tuple[list[tuple[str, bool]], str | None]:
    """The objects of an image with whether each is difficult, and the file name of the image."""
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(
            "the lists name this image, but its annotation is not there", path=file
        ) from None
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise DataFileError("an annotation declares no document type or entities", path=file)
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataFileError(f"this is not well-formed XML ({error})", path=file) from None
    objects = []
    for element in root.findall("object"):  # not the parts of a person, which have names too
        name = (element.findtext("name") or "").strip()
        if not name:
            raise DataFileError("an object has no name", path=file)
        objects.append((name, (element.findtext("difficult") or "0").strip() == "1"))
    named = (root.findtext("filename") or "").strip()
    return objects, Path(named).name or None


def _recognise(path: Path) -> int:
    return 5 if path.is_dir() and ((path / "Annotations").is_dir() or _inner(path)) else 0


LAYOUT = ImageLayout("voc", "PASCAL VOC folder with Annotations/*.xml", _recognise, read_voc)
