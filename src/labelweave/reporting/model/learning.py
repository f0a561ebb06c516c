"""How the training went."""

from __future__ import annotations

from typing import Any

from labelweave.reporting.document import Block, Figure, Paragraph, Section, shown
from labelweave.reporting.model.subject import Subject
from labelweave.reporting.numbers.history import history_panels
from labelweave.reporting.plots.learning_curves import learning_curves

__all__ = ["learning_section"]


def learning_section(subject: Subject) -> Section:
    """Learning curves, for methods that train in epochs."""
    title = "Learning curves"
    history = getattr(subject.learner, "history_", None)
    panels = [] if history is None else history_panels(history)
    if history is None or not panels:
        name = type(subject.learner).__name__
        return Section(title, [Paragraph(f"{name} does not train in epochs: there are no curves.")])
    best, starts = _kept_epoch(subject.learner, history), _stage_starts(history)
    n_epochs, seconds = len(history), float(history["seconds"].sum()) if "seconds" in history else 0
    stages = f" in {len(starts) + 1} stages" if starts else ""
    last = ", ".join(
        f"{name} {shown(float(values[-1]))}"
        for panel in panels
        for name, (_, values) in panel.curves.items()
        if name != "lr"
    )
    kept = "" if best is None else f" The weights of epoch {best} were kept (dotted line)."
    blocks: list[Block] = [
        Paragraph(f"{n_epochs:,} epochs{stages} in {seconds:.1f} s.{kept}"),
        Figure(
            "learning-curves",
            learning_curves("learning-curves", panels, best=best, stages=starts),
            "Learning curves",
            f"{n_epochs} epochs; at the last: {last}.",
            "Each curve has its own line and marker. Validation rows were held out of the "
            "training; the test rows play no part here.",
        ),
    ]
    return Section(title, blocks)


def _kept_epoch(learner: Any, history: Any) -> int | None:
    """The kept epoch, counted over all stages; it belongs to the last one."""
    best = getattr(learner, "best_epoch_", None)
    if best is None:
        return None
    starts = _stage_starts(history)
    return int(best) + (starts[-1] - 1 if starts else 0)


def _stage_starts(history: Any) -> list[int]:
    """Epochs, counted over all stages, at which the second and later stages begin."""
    if "stage" not in history:
        return []
    stage = list(history["stage"])
    return [k + 1 for k in range(1, len(stage)) if stage[k] != stage[k - 1]]
