"""The model card, which is the README.md of a model folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labelweave.methods import Method

__all__ = ["model_card"]

_MAX_LABELS = 200
_MAX_CELL = 200


def model_card(
    model: Any, method: Method, config: Mapping[str, Any], labels: Mapping[str, Any]
) -> str:
    """Return a description of a model in Markdown: its use, labels, data and scores."""
    title = f"{config['class']} (`{method.id}`)"
    parts = [
        "---\nlibrary_name: labelweave\nlicense: other\ntags:\n- multi-label-classification\n---",
        f"# {title}",
        f"A multi-label model: {method.summary}.",
        "## Use",
        '```python\nimport labelweave as lw\n\nmodel = lw.load("path/to/this/folder")\n'
        "model.predict_proba(X)   # P(label | x), one column per label\n"
        "model.predict_labels(X)  # the label sets, by name\n```",
        _input_section(model),
        "## Labels",
        _labels_section(labels),
        "## Training data",
        _table("fact", "value", config["data"]) or "Not recorded.",
        "## Scores",
        _table("metric", "value", config["scores"]) or "Not recorded.",
        "## Parameters",
        _table("parameter", "value", config["parameters"]) or "None.",
        "## Versions",
        _table("package", "version", config["versions"]),
        f"Saved {config['saved']}.",
        "## Licence",
        "Not stated yet: add the terms under which the model may be used.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _input_section(model: Any) -> str:
    features = getattr(model, "n_features_in_", None)
    rule = getattr(model, "threshold_", None)
    sentences = []
    if features is not None:
        sentences.append(f"`X` has {features} columns.")
    if rule is not None:
        sentences.append(f"Label sets are chosen by `{type(rule).__name__}`.")
    return " ".join(sentences)


def _labels_section(labels: Mapping[str, Any]) -> str:
    names = labels["names"]
    descriptions = labels["descriptions"]
    lines = [
        f"- {_one_line(name)}"
        + (f": {_one_line(descriptions[name])}" if name in descriptions else "")
        for name in names[:_MAX_LABELS]
    ]
    if len(names) > _MAX_LABELS:
        lines.append(f"- and {len(names) - _MAX_LABELS} more, in `labels.json`")
    count = "1 label." if len(names) == 1 else f"{len(names)} labels."
    return "\n".join([count, "", *lines])


def _table(left: str, right: str, rows: Mapping[str, Any] | None) -> str:
    if not rows:
        return ""
    lines = [f"| {left} | {right} |", "|---|---|"]
    lines += [f"| {_one_line(key)} | {_cell(value)} |" for key, value in rows.items()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict) and value.get("$") == "tuple":
        text = json.dumps(value["items"], ensure_ascii=False)
    elif isinstance(value, dict) and "$" in value:
        shown = value.get("file") or value.get("folder") or value.get("id") or value.get("value")
        text = f"{value['$']} {json.dumps(shown, ensure_ascii=False)}"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _one_line(text if len(text) <= _MAX_CELL else text[:_MAX_CELL] + " ...")


def _one_line(text: Any) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
