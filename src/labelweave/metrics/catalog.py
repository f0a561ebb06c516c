"""Every metric by its name, with what a caller must know to use it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labelweave.exceptions import InputError
from labelweave.metrics import calibration, extreme, labelwise, overlap, ranking, sets

__all__ = ["METRICS", "Metric", "get_metric"]


@dataclass(frozen=True)
class Metric:
    """A metric function with its name and nature.

    Call it with keywords; it takes what it needs of label sets and scores:
    ``metric(Y_true, Y_score=..., Y_pred=...)``.

    Attributes
    ----------
    name : str
        "f1_example", "precision@5"
    function : callable
        ``function(Y_true, Y_pred_or_score, **parameters) -> float``
    needs : {"pred", "score"}
        Whether it compares label sets or scores.
    greater_is_better : bool
    label : str
        How a table calls it.
    parameters : mapping
        Passed to the function at every call.
    needs_propensities : bool
        Whether the call must pass `propensities=`.
    needs_probabilities : bool
        Whether the scores must be probabilities.
    """

    name: str
    function: Callable[..., float]
    needs: str
    greater_is_better: bool
    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    needs_propensities: bool = False
    needs_probabilities: bool = False

    def __call__(
        self, Y_true: Any, Y_score: Any = None, Y_pred: Any = None, **parameters: Any
    ) -> float:
        given = Y_pred if self.needs == "pred" else Y_score
        if given is None:
            kind = "predicted label sets" if self.needs == "pred" else "scores"
            raise InputError(f"{self.name} needs {kind}: pass Y_{self.needs}=")
        parameters = {**self.parameters, **parameters}
        if self.needs_propensities and parameters.get("propensities") is None:
            raise InputError(
                f"{self.name} needs propensities=: labelweave.metrics.propensities(Y_train) "
                "estimates them"
            )
        return float(self.function(Y_true, given, **parameters))

    @property
    def sign(self) -> int:
        """1 where greater is better, else -1: `sign * value` is always to be maximised."""
        return 1 if self.greater_is_better else -1

    def __repr__(self) -> str:
        better = "greater" if self.greater_is_better else "smaller"
        return f"<Metric {self.name}: needs {self.needs}, {better} is better>"


def _of_sets() -> list[Metric]:
    averages = {"example": "example", "micro": "micro", "macro": "macro"}
    kinds = {"f1": "F1", "precision": "precision", "recall": "recall", "jaccard": "Jaccard"}
    overlaps = [
        Metric(
            f"{kind}_{average}",
            getattr(overlap, f"{kind}_{average}"),
            "pred",
            True,
            f"{word} {shown}",
        )
        for kind, shown in kinds.items()
        for average, word in averages.items()
    ]
    return [
        Metric("subset_accuracy", sets.subset_accuracy, "pred", True, "subset accuracy"),
        Metric("zero_one_loss", sets.zero_one_loss, "pred", False, "subset 0/1 loss"),
        Metric("hamming_loss", sets.hamming_loss, "pred", False, "Hamming loss"),
        Metric("hamming_accuracy", sets.hamming_accuracy, "pred", True, "Hamming accuracy"),
        *overlaps,
        Metric("cf1", overlap.cf1, "pred", True, "CF1"),
        Metric("of1", overlap.of1, "pred", True, "OF1"),
    ]


def _of_scores() -> list[Metric]:
    return [
        Metric("map", labelwise.mean_average_precision, "score", True, "mAP"),
        Metric("ap_micro", labelwise.ap_micro, "score", True, "micro AP"),
        Metric("auc_macro", labelwise.auc_macro, "score", True, "macro AUC"),
        Metric("auc_micro", labelwise.auc_micro, "score", True, "micro AUC"),
        Metric("ranking_loss", ranking.ranking_loss, "score", False, "ranking loss"),
        Metric("one_error", ranking.one_error, "score", False, "one error"),
        Metric("coverage", ranking.coverage, "score", False, "coverage"),
        Metric("lrap", ranking.lrap, "score", True, "label-ranking AP"),
        Metric("precision@k", extreme.precision_at_k, "score", True, "P@k"),
        Metric("recall@k", extreme.recall_at_k, "score", True, "R@k"),
        Metric("ndcg@k", extreme.ndcg_at_k, "score", True, "nDCG@k"),
        Metric("psp@k", extreme.psp_at_k, "score", True, "PSP@k", needs_propensities=True),
        Metric("psndcg@k", extreme.psndcg_at_k, "score", True, "PSnDCG@k", needs_propensities=True),
        Metric(
            "ece", calibration.ece, "score", False, "calibration error", needs_probabilities=True
        ),
        Metric(
            "ece_macro",
            calibration.ece_macro,
            "score",
            False,
            "calibration error, per label",
            needs_probabilities=True,
        ),
    ]


METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_of_sets(), *_of_scores())}
"""Every metric by name; those of the first k labels stand under "precision@k" and so on."""


def get_metric(name: str | Metric, **parameters: Any) -> Metric:
    """The metric of this name.

    Parameters
    ----------
    name : str or Metric
        A key of `METRICS` in any case, with a number for k: ``"f1_example"``, ``"mAP"``,
        ``"precision@5"``.
    **parameters
        Fixed for every call, such as ``zero_division=np.nan``.

    Returns
    -------
    Metric

    Examples
    --------
    >>> metric = get_metric("precision@1")
    >>> metric, metric.label
    (<Metric precision@1: needs score, greater is better>, 'P@1')
    >>> metric([[1, 0], [0, 1]], Y_score=[[0.9, 0.2], [0.6, 0.4]])
    0.5
    >>> get_metric("f1_sample")
    Traceback (most recent call last):
    ...
    labelweave.exceptions.InputError: there is no metric 'f1_sample'; did you mean 'f1_example'?
    """
    found = name if isinstance(name, Metric) else _by_name(name)
    return replace(found, parameters={**found.parameters, **parameters}) if parameters else found


def _by_name(name: str) -> Metric:
    wanted = str(name).strip().lower()
    place = re.fullmatch(r"(.+)@(\d+)", wanted)
    family = METRICS.get(f"{place[1]}@k") if place else None
    if place and family is not None and int(place[2]) > 0:
        k = int(place[2])
        return replace(
            family,
            name=f"{place[1]}@{k}",
            label=family.label.replace("@k", f"@{k}"),
            parameters={**family.parameters, "k": k},
        )
    if wanted in METRICS and not wanted.endswith("@k"):
        return METRICS[wanted]
    if wanted in METRICS:
        raise InputError(f"the metric {name!r} needs a number for k: {wanted[:-1]}5")
    near = difflib.get_close_matches(wanted, METRICS, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else f": it is one of {', '.join(METRICS)}"
    raise InputError(f"there is no metric {name!r}{hint}")
