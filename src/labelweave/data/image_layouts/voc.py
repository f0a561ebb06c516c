"""PASCAL VOC: one XML file of objects per image, and lists of the images of each part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelweave.data.compressed_files import parse_xml
from labelweave.data.dataset import Dataset
from labelweave.data.image_layouts.layout import (
    ImageLayout,
    ImageOptions,
    labels_from_lists,
    locate_file,
    make_image_dataset,
)
from labelweave.data.images.decoding import ENDINGS
from labelweave.exceptions import DataFileError, InputError

_PARTS = {"train": "train", "val": "validation", "trainval": "train", "test": "test"}
_DIFFICULT = ("unknown", "positive", "negative")


def read_voc(
    path: Path,
    *,
    difficult: str = "unknown",
    year: str | None = None,
    **image_options: Any,
) -> Dataset:
    """Read ``Annotations/*.xml``, ``JPEGImages/`` and ``ImageSets/Main/*.txt``.

    The path is such a folder, or a folder like ``VOCdevkit`` that holds one, or several, of which
    `year` chooses one: ``"2007"`` for the folder ``VOC2007``. The lists name the part of each row;
    without lists, all annotated images are read.

    `difficult` ("unknown", "positive" or "negative") is the value of a label whose objects in an
    image are all marked as difficult. The official evaluation ignores them, as unknown entries are
    ignored here. `image_options` are those of
    :class:`labelweave.data.image_layouts.layout.ImageOptions`.
    """
    if difficult not in _DIFFICULT:
        raise InputError(f"difficult must be one of {', '.join(_DIFFICULT)}, not {difficult!r}")
    root = _root(Path(path), year)
    part_of = _parts(root)
    annotations = root / "Annotations"
    ids = list(part_of) or sorted(file.stem for file in annotations.glob("*.xml"))
    present, only_difficult = [], []
    files = []
    for id in ids:
        objects, file_name = _objects(annotations / f"{id}.xml")
        clear = {name for name, is_difficult in objects if not is_difficult}
        present.append(clear)
        only_difficult.append({name for name, _ in objects} - clear)
        names = [file_name] if file_name else []
        files.append(
            locate_file([root / "JPEGImages"], [*names, *(id + ending for ending in ENDINGS)])
        )
    names = sorted(set().union(*present, *only_difficult))
    if difficult == "positive":
        present = [a | b for a, b in zip(present, only_difficult, strict=True)]
    unknown = only_difficult if difficult == "unknown" else None
    return make_image_dataset(
        root,
        files,
        labels_from_lists(present, names, unknown=unknown),
        ImageOptions(**image_options),
        row_ids=ids,
        part=[part_of[id] for id in ids] if part_of else None,
    )


def _root(path: Path, year: str | None) -> Path:
    folders = [path] if (path / "Annotations").is_dir() else sorted(_inner_folders(path))
    if year is not None:
        folders = [folder for folder in folders if folder.name.endswith(str(year))]
    if not folders:
        raise DataFileError("there is no folder Annotations", path=path)
    if len(folders) > 1:
        names = ", ".join(folder.name for folder in folders)
        raise DataFileError(
            f"the folder holds several data sets ({names}): choose one with year=", path=path
        )
    return folders[0]


def _inner_folders(path: Path) -> list[Path]:
    return [
        folder.parent
        for pattern in ("*/Annotations", "VOCdevkit/*/Annotations")
        for folder in path.glob(pattern)
    ]


def _parts(root: Path) -> dict[str, str]:
    """Part of each image id in the lists; train and val are more exact than trainval."""
    part_of: dict[str, str] = {}
    for name in ("train", "val", "trainval", "test"):
        file = root / "ImageSets" / "Main" / f"{name}.txt"
        if file.is_file():
            for line in file.read_text("utf-8").splitlines():
                if line.strip():
                    part_of.setdefault(line.split()[0], _PARTS[name])
    return part_of


def _objects(file: Path) -> tuple[list[tuple[str, bool]], str | None]:
    """The objects of an image, whether each is difficult, and the name of the image file."""
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(
            "the lists name this image, but its annotation is missing", path=file
        ) from None
    root = parse_xml(text, file)
    objects = []
    # Not the parts of a person, which have names as well.
    for element in root.findall("object"):
        name = (element.findtext("name") or "").strip()
        if not name:
            raise DataFileError("an object has no name", path=file)
        objects.append((name, (element.findtext("difficult") or "0").strip() == "1"))
    file_name = (root.findtext("filename") or "").strip()
    return objects, Path(file_name).name or None


def _matches(path: Path) -> bool:
    return (path / "Annotations").is_dir() or bool(_inner_folders(path))


LAYOUT = ImageLayout(_matches, read_voc)
