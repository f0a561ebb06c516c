"""MS-COCO: one JSON file of instances per part, and folders of images."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from labelweave.data.compressed_files import open_binary, parse_json
from labelweave.data.dataset import Dataset
from labelweave.data.image_layouts.layout import (
    ImageLayout,
    ImageOptions,
    labels_from_lists,
    locate_file,
    make_image_dataset,
)
from labelweave.data.splits import train_rows_first
from labelweave.exceptions import DataFileError

_HEAD_BYTES = 2**16


def read_coco(
    path: Path, *, crowd: bool = True, keep_unlabelled: bool = True, **image_options: Any
) -> Dataset:
    """Read ``annotations/instances_*.json`` of a folder, or one such file.

    Each image is a row, and its labels are the categories of its instances. The images of
    ``instances_train2014.json`` are searched in ``train2014/``, ``images/train2014/`` and
    ``images/``. The name of the file says which part it is; ``val`` is the test part where no file
    is called test, because the labels of the official test images are not public.

    `crowd` is whether crowd annotations count as instances, `keep_unlabelled` whether images
    without any instance are kept. `image_options` are those of
    :class:`labelweave.data.image_layouts.layout.ImageOptions`.
    """
    path = Path(path)
    files = _instance_files(path)
    return read_instances(
        path,
        files,
        _image_folders,
        ImageOptions(**image_options),
        crowd=crowd,
        keep_unlabelled=keep_unlabelled,
    )


def read_instances(
    path: Path,
    files: Sequence[Path],
    folders_of: Callable[[Path, Path], list[Path]],
    image_options: ImageOptions,
    *,
    crowd: bool,
    keep_unlabelled: bool,
) -> Dataset:
    """Read files of instances; `folders_of(root, file)` lists the possible folders of images."""
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
                image_path = PurePosixPath(name)
                names_to_try = [name, "/".join(image_path.parts[-2:]), image_path.name]
                located = locate_file(folders, list(dict.fromkeys(names_to_try)))
                rows.append((located, name, labels[id], part))
    data = make_image_dataset(
        path,
        [row[0] for row in rows],
        labels_from_lists([row[2] for row in rows], list(names)),
        image_options,
        row_ids=[row[1] for row in rows],
        part=None if None in parts else [str(row[3]) for row in rows],
    )
    return train_rows_first(data)


def _image_folders(root: Path, file: Path) -> list[Path]:
    part = file.stem.removeprefix("instances_")
    return [root / part, root / "images" / part, root / "images", root]


def _instance_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(_instances_in(path))
    if not files:
        raise DataFileError("the folder has no annotations/instances_*.json", path=path)
    return files


def _instances_in(path: Path) -> list[Path]:
    return [*path.glob("annotations/instances_*.json"), *path.glob("instances_*.json")]


def _part_names(files: Sequence[Path]) -> list[str | None]:
    """The part of each file according to its name; None if the name does not say it."""
    matches = [re.search(r"train|val|test", file.stem.lower()) for file in files]
    words = [match.group() if match else None for match in matches]
    if "train" not in words:  # test files alone are not a split
        return [None] * len(files)
    val = "validation" if "test" in words else "test"
    return [val if word == "val" else word for word in words]


def _instances(file: Path, *, crowd: bool) -> tuple[dict[Any, str], list[str], dict[Any, set[str]]]:
    """File names by image id, the categories in the order of their ids, labels by image id."""
    with open_binary(file) as opened:
        stored = parse_json(opened.read(), file)
    try:
        images = {image["id"]: str(image["file_name"]) for image in stored["images"]}
        categories = {c["id"]: str(c["name"]) for c in stored["categories"]}
        labels: dict[Any, set[str]] = {id: set() for id in images}
        for k, instance in enumerate(stored["annotations"]):
            if instance.get("iscrowd") and not crowd:
                continue
            if instance["image_id"] not in labels:
                raise DataFileError(
                    f"annotation {k} belongs to the image {instance['image_id']!r}, which the file "
                    "does not list",
                    path=file,
                )
            labels[instance["image_id"]].add(categories[instance["category_id"]])
    except (KeyError, TypeError, AttributeError) as error:
        raise DataFileError(
            "expected images (id, file_name), categories (id, name) and annotations (image_id, "
            f"category_id); {error} is missing",
            path=file,
        ) from None
    return images, [categories[id] for id in sorted(categories)], labels


def _matches(path: Path) -> bool:
    if path.is_dir():
        return bool(_instances_in(path))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return any(key in head for key in (b'"images"', b'"annotations"', b'"categories"'))


LAYOUT = ImageLayout(_matches, read_coco)
