"""Where a model comes from: data, protocol, parameters, versions, time."""

from __future__ import annotations

from typing import Any

from labelweave.methods import method_of
from labelweave.reporting.document import Block, Section, Table
from labelweave.reporting.model.subject import Subject

__all__ = ["facts_section"]

_LONGEST_VALUE = 120


def facts_section(subject: Subject) -> Section:
    """Everything needed to make the same model again."""
    metrics = subject.metrics
    protocol = dict(metrics.get("protocol") or {})
    trained = protocol.pop("rows", None) or {}
    learner = subject.learner
    parameters = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    method = method_of(learner)
    facts: list[tuple[str, Any]] = [
        ("method", type(learner).__name__ if method is None else method.id),
        ("seed of the method", parameters.get("random_state")),
        ("seed of the split", protocol.get("seed")),
        ("split", protocol.get("split")),
        *((f"{part} rows", n) for part, n in trained.items()),
        ("seconds to fit", (metrics.get("seconds") or {}).get("fit")),
        ("peak memory, MB", (metrics.get("memory") or {}).get("peak_mb")),
        *_of_folder(subject),
    ]
    summary = {k: v for k, v in subject.rows.summary().items() if k != "official_parts"}
    blocks: list[Block] = [
        _table("The run", facts),
        _table("The scored rows", list(summary.items())),
        _table("Parameters of the method", sorted(parameters.items()), folded=True),
        _table("Versions", list(_versions(subject).items())),
    ]
    return Section("Run facts", blocks)


def _of_folder(subject: Subject) -> list[tuple[str, Any]]:
    if subject.folder is None:
        return []
    from labelweave.persistence import model_info

    info = model_info(subject.folder)
    return [
        ("model folder", subject.folder.resolve().name),
        ("bytes on disk", info.size),
        ("saved", info.saved),
    ]


def _versions(subject: Subject) -> dict[str, str]:
    """Of the training where they are known, else of now."""
    stored = subject.metrics.get("versions")
    if stored:
        return dict(stored)
    if subject.folder is not None:
        from labelweave.persistence import model_info

        return model_info(subject.folder).versions
    from labelweave.bench.running.measuring import versions

    return versions()


def _table(caption: str, facts: list[tuple[str, Any]], *, folded: bool = False) -> Table:
    rows = [(name, _value(value)) for name, value in facts if value is not None or folded]
    return Table(caption, ("fact", "value"), rows, folded=folded)


def _value(value: Any) -> Any:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + " …"
