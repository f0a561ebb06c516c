"""The queues of an audit: entries from a file, verdicts in the database."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelweave.auditing.writing import COLUMNS
from labelweave.data.corrections import VERDICTS
from labelweave.exceptions import DataFileError, InputError

__all__ = ["Entry", "ReviewQueue", "export_csv", "export_jsonl", "read_queues"]

_MOST_BYTES = 512 * 2**20


class Entry(NamedTuple):
    """One likely missing label, as ``labelweave audit`` wrote it."""

    number: int
    score: float
    annotated: float | None  # lists that were edited may lack it
    label: str
    row: int
    id: str
    text: str
    known_labels: list[str]

    @property
    def key(self) -> tuple[int, str, str]:
        """What a verdict is kept under."""
        return self.row, self.id, self.label


class ReviewQueue:
    """The entries of one audit, the likeliest first."""

    def __init__(self, name: str, entries: list[Entry]) -> None:
        self.name = name
        self.entries = entries

    def progress(self, verdicts: Mapping[tuple[int, str, str], str]) -> dict[str, int]:
        """How many entries there are, and how many have which verdict."""
        said = [verdicts.get(entry.key) for entry in self.entries]
        counts = {verdict: said.count(verdict) for verdict in VERDICTS}
        return {"entries": len(said), "reviewed": sum(counts.values()), **counts}


def read_queues(paths: Iterable[str]) -> dict[str, ReviewQueue]:
    """The queues of files that ``labelweave audit --out FILE.csv`` or ``.jsonl`` wrote."""
    found: dict[str, ReviewQueue] = {}
    for path in paths:
        source = Path(path)
        name = source.stem[:100]
        if name in found:
            raise InputError(f"two lists to review are called {name!r}: rename one of the files")
        found[name] = ReviewQueue(name, list(_entries(source)))
    return found


def _entries(path: Path) -> Iterator[Entry]:
    for number, (line, record) in enumerate(_records(path)):
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
                known.split("; ") if isinstance(known, str) else [str(one) for one in known],
            )
        except (KeyError, TypeError, ValueError):
            raise DataFileError(
                "this is no entry of an audit: it needs score, label and row", path=path, line=line
            ) from None


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataFileError("the list is larger than 512 MB", path=path)
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("this is no text in UTF-8", path=path) from None
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
        raise DataFileError("lists to review are .csv or .jsonl files of an audit", path=path)


def _exported(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> Iterator[dict[str, Any]]:
    for entry in queue.entries:
        if verdict := verdicts.get(entry.key):
            values = entry._asdict()
            yield {**values, "rank": values.pop("number") + 1, "verdict": verdict}


def export_csv(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> str:
    """The entries with a verdict, in the form that ``--corrections`` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for values in _exported(queue, verdicts):
        values["known_labels"] = "; ".join(values["known_labels"])
        writer.writerow([values[name] for name in COLUMNS])
    return text.getvalue()


def export_jsonl(queue: ReviewQueue, verdicts: Mapping[Any, str]) -> str:
    """The same, one object a line."""
    lines = (
        json.dumps({name: values[name] for name in COLUMNS}, ensure_ascii=False)
        for values in _exported(queue, verdicts)
    )
    return "".join(f"{line}\n" for line in lines)
