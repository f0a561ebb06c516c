"""The report on a model: its sections in order, and the sections of scores and run facts."""

from __future__ import annotations

from typing import Any

from labelweave.methods import method_of
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.model_sections.example_rows import examples_section, spread_rows_section
from labelweave.reporting.model_sections.important_columns import important_columns_section
from labelweave.reporting.model_sections.label_frequencies import label_frequencies_section
from labelweave.reporting.model_sections.label_pairs import label_pair_sections
from labelweave.reporting.model_sections.label_scores import label_scores_section
from labelweave.reporting.model_sections.learning_curves import learning_section
from labelweave.reporting.model_sections.probability_curves import probabilities_section
from labelweave.reporting.model_sections.threshold_effect import threshold_section
from labelweave.reporting.report_content import (
    Block,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    timestamp,
)

__all__ = ["model_report"]

_LONGEST_VALUE = 120


def model_report(evaluated: EvaluatedModel, n_shown: int = 30) -> Report:
    """Return the report on a model; heat maps show at most `n_shown` labels."""
    name, rows = type(evaluated.method).__name__, evaluated.rows
    return Report(
        title=f"{name} on {rows.name}",
        subtitle=f"{len(rows):,} rows ({evaluated.rows_description}), "
        f"{evaluated.truth.n_labels:,} labels",
        made=timestamp(),
        sections=[
            _scores_section(evaluated),
            learning_section(evaluated),
            *_label_sections(evaluated, n_shown),
            _facts_section(evaluated),
        ],
    )


def _label_sections(evaluated: EvaluatedModel, n_shown: int) -> list[Section]:
    if evaluated.has_top_labels:
        return [label_frequencies_section(evaluated), spread_rows_section(evaluated)]
    return [
        label_scores_section(evaluated),
        probabilities_section(evaluated),
        threshold_section(evaluated),
        important_columns_section(evaluated, n_shown),
        *label_pair_sections(evaluated, n_shown),
        examples_section(evaluated),
    ]


def _scores_section(evaluated: EvaluatedModel) -> Section:
    from labelweave.pipeline.model_scores import MAIN_METRICS, group_table, scores_by_group

    scores, rows_description = evaluated.scores, evaluated.rows_description
    rows = [
        (metric.label, value, "higher" if metric.greater_is_better else "lower", metric.name)
        for metric, value in zip(scores.metrics, scores.values(), strict=True)
    ]
    columns = ("metric", "value", "better", "name")
    main = [row for row in rows if row[-1] in MAIN_METRICS]
    text = (
        f"Scored on {len(evaluated.rows):,} rows of {evaluated.rows.name} ({rows_description}): "
        f"{evaluated.seen_description}."
    )
    blocks: list[Block] = [Note(text) if evaluated.n_seen else Paragraph(text)]
    if evaluated.truth.has_unknown:
        n_unknown = evaluated.truth.n_unknown
        text = f"{n_unknown:,} entries of the labels are unknown; all scores ignore them."
        blocks.append(Paragraph(text))
    blocks.append(Table(f"Main scores, {rows_description}", columns, main))
    if groups := scores_by_group(evaluated.model, scores):
        header = ("name", "metric", *groups, "better")
        caption = "Labels with training examples, without, and both"
        blocks.append(Table(caption, header, [tuple(r) for r in group_table(groups, MAIN_METRICS)]))
    blocks.append(Table(f"All {len(rows)} scores, {rows_description}", columns, rows, folded=True))
    return Section("Scores", blocks)


def _facts_section(evaluated: EvaluatedModel) -> Section:
    """Return what is needed to train the same model again."""
    record, method = evaluated.training_record, evaluated.method
    protocol = dict(record.get("protocol") or {})
    rows_of_parts = protocol.pop("rows", None) or {}
    parameters = method.get_params(deep=False) if hasattr(method, "get_params") else {}
    entry = method_of(method)
    folder_facts, versions = _folder_facts_and_versions(evaluated)
    facts: list[tuple[str, Any]] = [
        ("method", type(method).__name__ if entry is None else entry.id),
        ("seed of the method", parameters.get("random_state")),
        ("seed of the split", protocol.get("seed")),
        ("split", protocol.get("split")),
        *((f"{part} rows", n) for part, n in rows_of_parts.items()),
        ("seconds to fit", (record.get("seconds") or {}).get("fit")),
        ("peak memory, MB", (record.get("memory") or {}).get("peak_mb")),
        *folder_facts,
    ]
    summary = [item for item in evaluated.rows.summary().items() if item[0] != "official_parts"]
    return Section(
        "Run facts",
        [
            _fact_table("The run", facts),
            _fact_table("The scored rows", summary),
            _fact_table("Parameters of the method", sorted(parameters.items()), folded=True),
            _fact_table("Versions", list(versions.items())),
        ],
    )


def _folder_facts_and_versions(
    evaluated: EvaluatedModel,
) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    """Return facts about the model folder, and the versions at training or, if unknown, now."""
    recorded = dict(evaluated.training_record.get("versions") or {})
    if evaluated.folder is None:
        from labelweave.measuring import versions

        return [], recorded or versions()
    from labelweave.persistence import model_info

    info = model_info(evaluated.folder)
    facts = [
        ("model folder", evaluated.folder.resolve().name),
        ("bytes on disk", info.size),
        ("saved", info.saved),
    ]
    return facts, recorded or info.versions


def _fact_table(caption: str, facts: list[tuple[str, Any]], *, folded: bool = False) -> Table:
    rows = [(name, _fact_value(value)) for name, value in facts if value is not None or folded]
    return Table(caption, ("fact", "value"), rows, folded=folded)


def _fact_value(value: Any) -> Any:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + " …"
