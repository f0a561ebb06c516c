"""The sections of a model's report, in their order."""

from __future__ import annotations

from labelweave.reporting.document import Document, Note, Paragraph, Section, Table
from labelweave.reporting.model.examples import examples_section
from labelweave.reporting.model.facts import facts_section
from labelweave.reporting.model.labels import (
    confusion_section,
    dependence_section,
    label_scores_section,
)
from labelweave.reporting.model.learning import learning_section
from labelweave.reporting.model.probabilities import probabilities_section, threshold_section
from labelweave.reporting.model.subject import Subject

__all__ = ["model_document"]


def model_document(subject: Subject, *, made: str) -> Document:
    """Everything there is to say about a model on these rows."""
    name, data = type(subject.learner).__name__, subject.rows.name
    return Document(
        title=f"{name} on {data}",
        subtitle=f"{len(subject.rows):,} rows ({subject.how}), {subject.truth.n_labels:,} labels",
        made=made,
        sections=[
            _scores_section(subject),
            learning_section(subject),
            label_scores_section(subject),
            probabilities_section(subject),
            threshold_section(subject),
            dependence_section(subject),
            confusion_section(subject),
            examples_section(subject),
            facts_section(subject),
        ],
    )


def _scores_section(subject: Subject) -> Section:
    from labelweave.assembly.scoring import MAIN

    scores = subject.scores
    rows = [
        (metric.label, value, "higher" if metric.greater_is_better else "lower", metric.name)
        for metric, value in zip(scores.metrics, scores.values(), strict=True)
    ]
    columns = ("metric", "value", "better", "name")
    main = [row for row in rows if row[-1] in MAIN]
    what = f"{len(subject.rows):,} rows of {subject.rows.name} ({subject.how})"
    said = f"Scored on {what}: {subject.verdict}."
    blocks: list[Paragraph | Note | Table] = [Note(said) if subject.seen else Paragraph(said)]
    if subject.truth.has_unknown:
        blocks.append(
            Paragraph(
                f"{subject.truth.n_unknown:,} entries of the labels are unknown; they take no part "
                "in any score."
            )
        )
    blocks.append(Table(f"Main scores, {subject.how}", columns, main))
    blocks.append(Table(f"All {len(rows)} scores, {subject.how}", columns, rows, folded=True))
    return Section("Scores", blocks)
