"""`labelweave datasets`: what is known by name, where it lies, and what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import output_options, pop_reader_options, reader_options
from labelweave.cli.output import Output

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.data.catalog import CatalogEntry

MOST_LABELS = 15


@click.command("datasets")
@click.argument("name", required=False)
@click.option(
    "--all-labels", is_flag=True, help=f"Every label, not the {MOST_LABELS} most frequent."
)
@reader_options
@output_options
def command(name: str | None, all_labels: bool, as_json: bool, quiet: bool, **options: Any) -> None:
    """List the data sets known by name, or describe NAME (one of them, or a file)."""
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)
    if name is None:
        _list(output)
    else:
        _describe(name, reading, output, all_labels)


def _list(output: Output) -> None:
    from labelweave.data.catalog import list_datasets

    entries = list_datasets()
    output.result([{**_facts(entry), "where": _where(entry)} for entry in entries])
    if output.as_json:
        return
    rows = [(e.name, e.rows, e.features, e.labels, e.kind, _where(e), e.title) for e in entries]
    output.table(("name", "rows", "features", "labels", "kind", "where", "what"), rows)
    output.say(
        "\n`labelweave datasets NAME` describes one. LABELWEAVE_DATA names a folder to look in."
    )


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _where(entry: CatalogEntry) -> str:
    here = entry.local_source()
    if here is not None:
        return here
    online = entry.public_source()
    return f"download from {online}" if online else "not here"


def _facts(entry: CatalogEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "kind": entry.kind,
        "rows": entry.rows,
        "features": entry.features,
        "labels": entry.labels,
        "cardinality": entry.cardinality,
        "official_parts": entry.parts,
        "options": entry.choices,
        "source": entry.source,
        "licence": entry.licence,
        "notes": list(entry.notes),
    }


def _describe(name: str, reading: dict[str, Any], output: Output, all_labels: bool) -> None:
    from labelweave.data.catalog import list_datasets, load_dataset

    described: dict[str, Any] = {}
    is_here = True
    entry = next((entry for entry in list_datasets() if entry.name == name.lower()), None)
    if entry is not None:
        is_here = entry.local_source() is not None
        described = {**_facts(entry), "where": _where(entry)}
    data = load_dataset(name, download=False, **reading) if is_here else None
    if data is not None:
        described |= data.summary()
        positives, known = data.Y.counts()
        described["label_counts"] = [
            {"label": label, "positive": int(p), "known": int(k)}
            for label, p, k in zip(data.label_names, positives, known, strict=True)
        ]
    output.result(described)
    if not output.as_json:
        _print(described, output)
        if data is not None:
            _print_labels(data, described["label_counts"], output, all_labels)


_WORDS = {
    "title": "what",
    "cardinality": "labels per row",
    "density": "share of positives",
    "unknown": "unknown entries",
    "rows_without_label": "rows without label",
    "labels_never_positive": "labels never positive",
    "official_parts": "official parts",
    "options": "options (--data-option)",
}


def _print(described: dict[str, Any], output: Output) -> None:
    for key, value in described.items():
        if key in ("label_counts", "notes") or value is None or value == {}:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{name} {_text(item)}" for name, item in value.items())
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        elif isinstance(value, float):
            value = f"{value:.4g}"
        output.show(f"{_WORDS.get(key, key):<24} {_text(value)}")
    for note in described.get("notes", []):
        output.show(f"{'mind':<24} {note}")


def _print_labels(
    data: Dataset, counts: list[dict[str, Any]], output: Output, all_labels: bool
) -> None:
    counts = sorted(counts, key=lambda row: -row["positive"])
    shown = counts if all_labels else counts[:MOST_LABELS]
    rows = [
        (row["label"], row["positive"], row["positive"] / max(row["known"], 1), row["known"])
        for row in shown
    ]
    output.show("")
    if data.Y.has_unknown:
        output.table(("label", "positive rows", "share of known", "known"), rows)
    else:
        output.table(("label", "rows", "share"), [row[:3] for row in rows])
    if len(shown) < len(counts):
        output.show(f"... and {len(counts) - len(shown):,} more labels (--all-labels)")
