"""MS-COCO: one JSON file of instances a part, and folders of images; Objects365 is its sibling."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from labelweave.data.dataset import Dataset
from labelweave.data.layouts.base import (
    ImageLayout,
    Reading,
    find_file,
    label_values,
    make_images,
)
from labelweave.data.recipes import train_first
from labelweave.exceptions import DataFileError

__all__ = ["LAYOUT", "read_coco", "read_instances"]

_HEAD = 2**16


def read_coco(
    path: Path, *, crowd: bool = True, keep_unlabelled: bool = True, **reading: Any
) -> Dataset:
    """Read ``annotations/instances_*.json`` of a folder, or one such file.

    A row is an image, and its labels are the categories of its instances. Images of
    ``instances_train2014.json`` are looked for in ``train2014/``, ``images/train2014/`` and
    ``images/``. The part of the file is in its name; ``val`` is the test part where no file is
    called test, because the labels of the official test images are not public.

    Parameters
    ----------
    path : path
    crowd : bool, default=True
        Whether a crowd counts as an instance.
    keep_unlabelled : bool, default=True
        Whether images without any instance are kept.
    **reading
        Options of :class:`labelweave.data.layouts.base.Reading`.
    """
    path = Path(path)
    files = _instance_files(path)
    return read_instances(
        path, files, image_folders, Reading(**reading), crowd=crowd, keep_unlabelled=keep_unlabelled
    )


def read_instances(
    path: Path,
    files: Sequence[Path],
    folders_of: Any,
    reading: Reading,
    *,
    crowd: bool,
    keep_unlabelled: bool,
) -> Dataset:
    """The images of some files of instances, each in one of the folders that it may be in."""
    parts = _part_names(files)
    rows: list[tuple[Path, str, set[str], str | None]] = []
    names: dict[str, None] = {}
    for file, part in zip(files, parts, strict=True):
        images, categories, labels = _instances(file, crowd=crowd)
        names |= dict.fromkeys(categories)
        root = file.parent.parent if file.parent.name == "annotations" else file.parent
        folders = folders_of(root, file)
        for id, name in images.items():
            if labels[id] or keep_unlabelled:
                short = PurePosixPath(name)
                tried = [name, "/".join(short.parts[-2:]), short.name]
                found = find_file(folders, list(dict.fromkeys(tried)))
                rows.append((found, name, labels[id], part))
    data = make_images(
        path,
        [row[0] for row in rows],
        label_values([row[2] for row in rows], list(names)),
        reading,
        row_ids=[row[1] for row in rows],
        part=None if None in parts else [str(row[3]) for row in rows],
    )
    return train_first(data)


def image_folders(root: Path, file: Path) -> list[Path]:
    """Where the images of ``instances_train2014.json`` may be."""
    which = re.sub(r"^(instances_)", "", file.stem)
    return [root / which, root / "images" / which, root / "images", root]


def _instance_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(_instances_in(path))
    if not found:
        raise DataFileError("there is no annotations/instances_*.json in it", path=path)
    return found


def _instances_in(path: Path) -> list[Path]:
    return [*path.glob("annotations/instances_*.json"), *path.glob("instances_*.json")]


def _part_names(files: Sequence[Path]) -> list[str | None]:
    """The part of each file, by its name; None where it does not tell."""
    found: list[str | None] = []
    for file in files:
        match = re.search(r"train|val|test", file.stem.lower())
        found.append(match.group() if match else None)
    has_test = "test" in found
    named = {"train": "train", "test": "test", "val": "validation" if has_test else "test"}
    if "train" not in found:  # a single file is no split
        return [None] * len(files)
    return [None if part is None else named[part] for part in found]


def _instances(file: Path, *, crowd: bool) -> tuple[dict[Any, str], list[str], dict[Any, set[str]]]:
    """Image id to file name, the categories in the order of their ids, image id to labels."""
    try:
        stored = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=file) from None
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"this is no JSON ({error})", path=file) from None
    try:
        images = {image["id"]: str(image["file_name"]) for image in stored["images"]}
        named = {one["id"]: str(one["name"]) for one in stored["categories"]}
        labels: dict[Any, set[str]] = {id: set() for id in images}
        for k, instance in enumerate(stored["annotations"]):
            if instance.get("iscrowd") and not crowd:
                continue
            if instance["image_id"] not in labels:
                raise DataFileError(
                    f"annotation {k} is of the image {instance['image_id']!r}, which the file "
                    "does not list",
                    path=file,
                )
            labels[instance["image_id"]].add(named[instance["category_id"]])
    except (KeyError, TypeError, AttributeError) as error:
        raise DataFileError(
            "expected images (id, file_name), categories (id, name) and annotations (image_id, "
            f"category_id); {error} is missing",
            path=file,
        ) from None
    return images, [named[id] for id in sorted(named)], labels


def _recognise(path: Path) -> int:
    if path.is_dir():
        return 4 if _instances_in(path) else 0
    if path.suffix != ".json" or not path.is_file():
        return 0
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return 4 if b'"images"' in head or b'"annotations"' in head or b'"categories"' in head else 0


LAYOUT = ImageLayout("coco", "MS-COCO instances_*.json with images", _recognise, read_coco)
