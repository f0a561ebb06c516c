"""Mulan's XML file beside an ARFF file: the names of the label attributes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from labelweave.data.compression import COMPRESSED_ENDINGS, inner_stem, read_whole
from labelweave.exceptions import DataFileError

__all__ = ["find_mulan_xml", "read_mulan_xml"]

_PART_ENDING = re.compile(r"[-_.](train|test|validation|valid|val|dev|fold\d*|\d+)$", re.IGNORECASE)


def find_mulan_xml(path: Path) -> Path | None:
    """The XML file of an ARFF file: of the same stem, or of the stem without its part.

    For `scene-train.arff.xz` that is `scene-train.xml`, else `scene.xml`.
    """
    stem = inner_stem(path)
    while True:
        for ending in ("", *COMPRESSED_ENDINGS):
            beside = path.with_name(f"{stem}.xml{ending}")
            if beside.is_file():
                return beside
        shorter = _PART_ENDING.sub("", stem)
        if shorter in ("", stem):
            return None
        stem = shorter


def read_mulan_xml(path: Path) -> list[str]:
    """Label names in the order of the file; labels inside labels (a hierarchy) count too."""
    text = read_whole(path)
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise DataFileError("a labels file declares no document type or entities", path=path)
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataFileError(f"this is not well-formed XML ({error})", path=path) from None
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
        twice = next(name for name in names if names.count(name) > 1)
        raise DataFileError(f"the label {twice!r} is listed twice", path=path)
    return names
