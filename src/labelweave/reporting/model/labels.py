"""The labels one by one and two by two."""

from __future__ import annotations

import numpy as np

from labelweave.labels import as_labels
from labelweave.reporting.document import Block, Figure, Paragraph, Section, Table
from labelweave.reporting.model.subject import Subject
from labelweave.reporting.numbers.labels import most_frequent
from labelweave.reporting.numbers.pairs import co_occurrence, mistaken_for, pair_outcomes, top_pairs
from labelweave.reporting.plots.heatmap import Heat, heat_maps
from labelweave.reporting.plots.label_scores import label_scores_plot

__all__ = ["confusion_section", "dependence_section", "label_scores_section"]

_MOST_ROWS = 100
_MOST_PAIRS = 12


def label_scores_section(subject: Subject) -> Section:
    """Scores of each label against its frequency."""
    table = subject.scores.per_label()
    frequency, where = table["positives"].to_numpy(), "scored"
    if subject.train_labels is not None:
        frequency, _ = subject.train_labels.select(subject.truth.names).counts()
        where = "training"
    scored = {
        name: table[column].to_numpy(dtype=float)
        for name, column in (("F1", "f1"), ("average precision", "ap"))
        if column in table
    }
    never = int((table["positives"] == 0).sum())
    order = np.argsort(-frequency, kind="stable")[:_MOST_ROWS]
    columns = [name for name in table.columns if name != "label"]
    rows = [
        (table["label"][j], int(frequency[j]), *(table[name][j] for name in columns)) for j in order
    ]
    means = ", ".join(f"mean {name} {np.nanmean(v):.3f}" for name, v in scored.items() if _any(v))
    shown = "all labels" if len(rows) == len(table) else f"the {len(rows)} most frequent labels"
    blocks: list[Block] = [
        Figure(
            "label-scores",
            label_scores_plot(
                "label-scores",
                frequency,
                scored,
                subject.truth.names,
                axis_title=f"positives, {where} rows",
            ),
            "Scores of each label against its frequency",
            f"{len(table)} labels with {frequency.min():,} to {frequency.max():,} "
            f"positives among the {where} rows; "
            f"{means or 'no score is defined'}.",
            f"One point a label and score, against its positives among the {where} rows.",
        )
    ]
    if never:
        text = f"{never:,} of {len(table):,} labels have no positive among the scored rows: "
        blocks.append(Paragraph(text + "their recall and average precision are undefined."))
    head = ("label", f"{where} positives", *columns)
    blocks.append(Table(f"Scores of {shown}, {subject.how}", head, rows, folded=len(rows) > 20))
    return Section("Labels", blocks)


def dependence_section(subject: Subject) -> Section:
    """Which labels go together, in the truth, in the predictions and in the embeddings."""
    truth, labels = subject.truth, subject.shown_labels
    names = [truth.names[j] for j in labels]
    if len(names) < 2:
        return Section("Labels together", [Paragraph("There is one label only.")])
    predicted = co_occurrence(as_labels(subject.predicted[:, labels].astype(np.float32)))
    maps = [
        Heat(title, _without_diagonal(found.share), (0.0, 1.0))
        for title, found in (("true labels", subject.together), ("predicted labels", predicted))
    ]
    gaps = np.abs(maps[0].values - maps[1].values)
    differ = f"which differ by {np.nanmean(gaps):.3f} in the mean" if _any(gaps) else "no two alike"
    blocks: list[Block] = [
        Figure(
            "co-occurrence",
            heat_maps(
                "co-occurrence",
                maps,
                names,
                rows="of the rows with this label…",
                columns="…this share has that one too",
                unit="share",
            ),
            "Which labels go together",
            f"Two heat maps of {subject.which_labels()}: shares among the true and the predicted "
            f"labels, {differ}.",
            f"{subject.which_labels().capitalize()}; labels that go together stand side by side. "
            "A model that catches the dependence of the labels has two like maps. Cells of labels "
            "without a row are empty.",
        )
    ]
    return Section("Labels together", blocks + _embedding_figure(subject, names))


def _embedding_figure(subject: Subject, names: list[str]) -> list[Block]:
    similarity = getattr(subject.learner, "label_similarity", None)
    if similarity is None:
        return []
    table = similarity("cosine")
    values = _without_diagonal(table.loc[names, names].to_numpy(dtype=float))
    together = _without_diagonal(subject.together.share)
    both = np.isfinite(values) & np.isfinite(together)
    agree = np.nan
    if both.sum() > 2 and np.ptp(values[both]) > 0 and np.ptp(together[both]) > 0:
        agree = float(np.corrcoef(values[both], together[both])[0, 1])
    heat = heat_maps(
        "label-embeddings",
        [Heat("cosines of label embeddings", values)],
        names,
        rows="label",
        columns="label",
        unit="cosine",
    )
    return [
        Figure(
            "label-embeddings",
            heat,
            "How alike the learnt label embeddings are",
            f"Heat map of cosines of {subject.which_labels()}; their correlation with the shares "
            f"of common rows is {agree:.2f}.",
            "The labels stand in the order of the plot above: labels that go together should "
            f"be alike here. Correlation of these cosines with the shares above: {agree:.2f}.",
        )
    ]


def confusion_section(subject: Subject) -> Section:
    """What is predicted in place of missed labels, and what becomes of common pairs."""
    title = "Confusion"
    names = [subject.truth.names[j] for j in subject.shown_labels]
    if len(names) < 2:
        return Section(title, [Paragraph("There is one label only.")])
    columns = subject.shown_labels
    found = mistaken_for(subject.truth[:, columns], subject.predicted[:, columns])
    blocks: list[Block] = []
    if found.confused.any():
        first, second = np.unravel_index(found.confused.argmax(), found.confused.shape)
        blocks.append(
            Figure(
                "confusion",
                heat_maps(
                    "confusion",
                    [Heat("said in place of a missed label", _without_diagonal(found.share))],
                    names,
                    rows="of the rows that miss this label…",
                    columns="…this share wrongly gets that one",
                    unit="share",
                ),
                "What is said in place of a missed label",
                f"Most often {names[first]} is missed and {names[second]} wrongly predicted: "
                f"{found.confused[first, second]:.0f} of {found.missed[first]:.0f} rows.",
                f"{subject.which_labels().capitalize()}. A dark line means that the label, where "
                "it is missed, is missed without anything else in its place.",
            )
        )
    else:
        blocks.append(Paragraph("No row misses one of these labels and wrongly gets another."))
    return Section(title, [*blocks, *_pair_table(subject)])


def _pair_table(subject: Subject) -> list[Block]:
    frequent = most_frequent(subject.truth, 200)
    found = co_occurrence(subject.truth[:, frequent])
    pairs = top_pairs(found.together, _MOST_PAIRS)
    if not pairs:
        return [Paragraph("No two labels occur in the same row.")]
    in_truth = [(int(frequent[i]), int(frequent[j])) for i, j in pairs]
    counts = pair_outcomes(subject.truth, subject.predicted, in_truth)
    rows = [
        (
            subject.truth.names[a],
            subject.truth.names[b],
            int(counts["together"][k]),
            float(found.lift[pairs[k]]),
            *(int(counts[n][k]) for n in ("both", "only_first", "only_second", "neither")),
            int(counts["apart"][k]),
            int(counts["joined"][k]),
        )
        for k, (a, b) in enumerate(in_truth)
    ]
    head = ["first", "second", "rows with both", "lift", "both found", "first only"]
    head += ["second only", "neither", "rows with one", "both predicted there"]
    return [
        Paragraph(
            "Labels that occur together most often, and what the model makes of them. Lift is how "
            "many times more often the two meet than if they were independent."
        ),
        Table(f"Pairs of labels that occur together, {subject.how}", head, rows, digits=2),
    ]


def _without_diagonal(values: np.ndarray) -> np.ndarray:
    values = values.astype(float)
    np.fill_diagonal(values, np.nan)
    return values


def _any(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).any())
