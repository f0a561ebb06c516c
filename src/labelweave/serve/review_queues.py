"""Queues of likely missing labels to review: entries from a file, verdicts for export."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelweave.auditing.findings import COLUMNS
from labelweave.data.corrections import VERDICTS
from labelweave.exceptions import DataFileError, InputError

__all__ = ["Entry", "ReviewQueue", "export_csv", "export_jsonl", "read_queues"]

_MAX_BYTES = 512 * 2**20


class Entry(NamedTuple):
    """One likely missing label of a file that ``labelweave audit`` wrote."""

    number: int
    score: float
    annotated: float | None  # files that were edited may lack it
    label: str
    row: int
    id: str
    text: str
    known_labels: list[str]

    @property
    def key(self) -> tuple[int, str, str]:
        """What a verdict is stored under: row, id of the row, label."""
        return self.row, self.id, self.label


class ReviewQueue:
    """The entries of one audit, most likely first."""

    def __init__(self, name: str, entries: list[Entry]) -> None:
        self.name = name
        self.entries = entries

    def progress(self, verdicts: Mapping[tuple[int, str, str], str]) -> dict[str, int]:
        """Return the number of entries, in total and by verdict."""
        given = Counter(verdicts.get(entry.key) for entry in self.entries)
        counts = {verdict: given[verdict] for verdict in VERDICTS}
        return {"entries": len(self.entries), "reviewed": sum(counts.values()), **counts}


def read_queues(paths: Iterable[str]) -> dict[str, ReviewQueue]:
    """Read the queues of files that ``labelweave audit --out FILE.csv`` or ``.jsonl`` wrote."""
    queues: dict[str, ReviewQueue] = {}
    for path in map(Path, paths):
        name = path.stem[:100]
        if name in queues:
            raise InputError(f"two lists to review have the name {name!r}: rename one of the files")
        queues[name] = ReviewQueue(name, list(_read_entries(path)))
    return queues


def _read_entries(path: Path) -> Iterator[Entry]:
    for number, (line, record) in enumerate(_read_records(path)):
        try:
            known = record.get("known_labels") or []
            yield Entry(
                number,
                float(record["score"]),
                None if record.get("annotated") in (None, "") else float(record["annotated"]),
                str(record["label"]),
                int(record["row"]),
                str(record.get("id") or ""),
                str(record.get("text") or ""),
                known.split("; ") if isinstance(known, str) else [str(label) for label in known],
            )
        except (KeyError, TypeError, ValueError):
            raise DataFileError(
                "this is not an entry of an audit: it needs score, label and row",
                path=path,
                line=line,
            ) from None


def _read_records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DataFileError("the list is larger than 512 MB", path=path)
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("the file is not UTF-8 text", path=path) from None
    if path.suffix.lower() == ".csv":
        reader = csv.DictReader(io.StringIO(text, newline=""))
        for record in reader:
            yield reader.line_num, record
    elif path.suffix.lower() == ".jsonl":
        for line, content in enumerate(text.split("\n"), start=1):
            if not content.strip():
                continue
            try:
                record = json.loads(content)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise DataFileError("each line must be one JSON object", path=path, line=line)
            yield line, record
    else:
        raise DataFileError("a list to review must be a .csv or .jsonl file of an audit", path=path)


def _with_verdicts(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> Iterator[dict[str, Any]]:
    for entry in queue.entries:
        if verdict := verdicts.get(entry.key):
            values = entry._asdict()
            yield {**values, "rank": values.pop("number") + 1, "verdict": verdict}


def export_csv(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> str:
    """Return the entries that have a verdict as CSV, which ``--corrections`` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for values in _with_verdicts(queue, verdicts):
        values["known_labels"] = "; ".join(values["known_labels"])
        writer.writerow([values[name] for name in COLUMNS])
    return text.getvalue()


def export_jsonl(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> str:
    """Return the entries that have a verdict as JSON Lines, which ``--corrections`` reads."""
    lines = (
        json.dumps({name: values[name] for name in COLUMNS}, ensure_ascii=False)
        for values in _with_verdicts(queue, verdicts)
    )
    return "".join(f"{line}\n" for line in lines)
