"""Queues of likely missing labels to review: entries from a file, verdicts for export."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from labelweave.auditing.findings import Finding, to_csv, to_jsonl
from labelweave.data.compressed_files import decode, iter_json_objects, read_small_file
from labelweave.data.corrections import VERDICTS
from labelweave.exceptions import DataFileError, InputError

__all__ = ["ReviewQueue", "read_queues"]

_MAX_BYTES = 512 * 2**20
Key = tuple[int, str, str]


class ReviewQueue:
    """The entries of one audit, most likely first; their numbers start at 0."""

    def __init__(self, name: str, entries: list[Finding]) -> None:
        self.name = name
        self.entries = entries

    def progress(self, verdicts: Mapping[Key, str]) -> dict[str, int]:
        """Return the number of entries, in total and by verdict."""
        number = Counter(verdicts.get(entry.key) for entry in self.entries)
        counts = {verdict: number[verdict] for verdict in VERDICTS}
        return {"entries": len(self.entries), "reviewed": sum(counts.values()), **counts}

    def export(self, verdicts: Mapping[Key, str], format: str) -> str:
        """Return the entries that have a verdict as csv or jsonl, which ``--corrections`` reads."""
        reviewed = [(entry, verdicts[entry.key]) for entry in self.entries if entry.key in verdicts]
        return to_csv(reviewed) if format == "csv" else to_jsonl(reviewed)


def read_queues(paths: Iterable[str]) -> dict[str, ReviewQueue]:
    """Read the queues of files that ``labelweave audit --out FILE.csv`` or ``.jsonl`` wrote."""
    queues: dict[str, ReviewQueue] = {}
    for path in map(Path, paths):
        name = path.stem[:100]
        if name in queues:
            raise InputError(f"two lists to review have the name {name!r}: rename one of the files")
        queues[name] = ReviewQueue(name, list(_read_entries(path)))
    return queues


def _read_entries(path: Path) -> Iterator[Finding]:
    for rank, (line, record) in enumerate(_read_records(path), start=1):
        try:
            known = record.get("known_labels") or []
            annotated = record.get("annotated")  # files that were edited may lack it
            yield Finding(
                rank,
                float(record["score"]),
                None if annotated in (None, "") else float(annotated),
                str(record["label"]),
                int(record["row"]),
                str(record.get("id") or ""),
                str(record.get("text") or ""),
                tuple(known.split("; ") if isinstance(known, str) else map(str, known)),
            )
        except (KeyError, TypeError, ValueError):
            raise DataFileError(
                "this is not an entry of an audit: it needs score, label and row",
                path=path,
                line=line,
            ) from None


def _read_records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.is_file() and path.stat().st_size > _MAX_BYTES:
        raise DataFileError(f"the list is larger than {_MAX_BYTES // 2**20} MiB", path=path)
    if path.suffix.lower() == ".jsonl":
        yield from iter_json_objects(path)
    elif path.suffix.lower() == ".csv":
        text = decode(read_small_file(path, limit=_MAX_BYTES), path, None)
        reader = csv.DictReader(io.StringIO(text, newline=""))
        for record in reader:
            yield reader.line_num, record
    else:
        raise DataFileError("a list to review must be a .csv or .jsonl file of an audit", path=path)
