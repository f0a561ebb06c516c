"""The strategies by which networks choose labels, or rows, for each other: a table of settings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STRATEGIES", "Strategy"]


@dataclass(frozen=True)
class Strategy:
    """What the networks do for each other.

    Parameters
    ----------
    peers : int, default=2
    unit : {"labels", "rows"}, default="labels"
        What is chosen: unannotated entries, or whole rows.
    by : {"peer", "self", "both"}, default="peer"
        Whose losses choose: those of the other network, of the network itself, or their sum.
    correct : {"no", "soft", "batch", "for good"}, default="no"
        Whether an entry of high loss is called positive rather than left out, and for how long;
        "soft": as positive as the network says that has chosen it.
    disagreement : {"no", "only", "or all"}, default="no"
        Whether only rows on whose labels the networks disagree are learnt from; "or all": where
        there is none, all of the batch.
    agreement : float, default=0.0
        Weight of a term that draws the networks' probabilities together; the losses get one
        minus this weight.
    """

    peers: int = 2
    unit: str = "labels"
    by: str = "peer"
    correct: str = "no"
    disagreement: str = "no"
    agreement: float = 0.0


STRATEGIES: dict[str, Strategy] = {
    "cls": Strategy(),
    "cls-soft": Strategy(correct="soft"),
    "clc": Strategy(correct="batch"),
    "co-teaching": Strategy(unit="rows"),
    "co-teaching+": Strategy(unit="rows", disagreement="or all"),
    "decoupling": Strategy(unit="rows", by="self", disagreement="only"),
    "jocor": Strategy(unit="rows", by="both", agreement=0.1),
    "ll-r": Strategy(peers=1, by="self"),
    "ll-ct": Strategy(peers=1, by="self", correct="batch"),
    "ll-cp": Strategy(peers=1, by="self", correct="for good"),
}
"""The published strategies and "cls-soft"; CLS-H and CLS-L are "cls" with a rate of zero."""
