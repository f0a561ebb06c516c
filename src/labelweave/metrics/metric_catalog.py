"""The table of all metrics. A new metric is a function in its module and a line in this table."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labelweave.exceptions import InputError
from labelweave.metrics import calibration_error, labelwise, overlap, ranking, sets, top_k

__all__ = ["METRICS", "Metric", "get_metric"]


@dataclass(frozen=True)
class Metric:
    """A metric function with its name and what a caller must know to use it.

    Call it with label sets, scores or both; it uses what it needs:
    ``metric(Y_true, Y_score=..., Y_pred=...)``.

    Attributes
    ----------
    name : str
        "f1_example", "precision@5"
    function : callable
        ``function(Y_true, Y_pred_or_score, **parameters) -> float``
    needs : {"pred", "score"}
        Whether it compares label sets or scores.
    label : str
        Its name in tables.
    greater_is_better : bool, default=True
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
    label: str
    greater_is_better: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    needs_propensities: bool = False
    needs_probabilities: bool = False

    def __call__(
        self, Y_true: Any, Y_score: Any = None, Y_pred: Any = None, **parameters: Any
    ) -> float:
        predictions = Y_pred if self.needs == "pred" else Y_score
        if predictions is None:
            kind = "predicted label sets" if self.needs == "pred" else "scores"
            raise InputError(f"{self.name} needs {kind}: pass Y_{self.needs}=")
        parameters = {**self.parameters, **parameters}
        if self.needs_propensities and parameters.get("propensities") is None:
            raise InputError(
                f"{self.name} needs propensities=: labelweave.metrics.propensities(Y_train) "
                "estimates them"
            )
        return float(self.function(Y_true, predictions, **parameters))

    @property
    def sign(self) -> int:
        """1 if greater is better, else -1, so that `sign * value` is to be maximised."""
        return 1 if self.greater_is_better else -1

    def __repr__(self) -> str:
        better = "greater" if self.greater_is_better else "smaller"
        return f"<Metric {self.name}: needs {self.needs}, {better} is better>"


_METRICS = (
    # Of predicted label sets.
    Metric("subset_accuracy", sets.subset_accuracy, "pred", "subset accuracy"),
    Metric("zero_one_loss", sets.zero_one_loss, "pred", "subset 0/1 loss", greater_is_better=False),
    Metric("hamming_loss", sets.hamming_loss, "pred", "Hamming loss", greater_is_better=False),
    Metric("hamming_accuracy", sets.hamming_accuracy, "pred", "Hamming accuracy"),
    Metric("f1_example", overlap.f1_example, "pred", "example F1"),
    Metric("f1_micro", overlap.f1_micro, "pred", "micro F1"),
    Metric("f1_macro", overlap.f1_macro, "pred", "macro F1"),
    Metric("precision_example", overlap.precision_example, "pred", "example precision"),
    Metric("precision_micro", overlap.precision_micro, "pred", "micro precision"),
    Metric("precision_macro", overlap.precision_macro, "pred", "macro precision"),
    Metric("recall_example", overlap.recall_example, "pred", "example recall"),
    Metric("recall_micro", overlap.recall_micro, "pred", "micro recall"),
    Metric("recall_macro", overlap.recall_macro, "pred", "macro recall"),
    Metric("jaccard_example", overlap.jaccard_example, "pred", "example Jaccard"),
    Metric("jaccard_micro", overlap.jaccard_micro, "pred", "micro Jaccard"),
    Metric("jaccard_macro", overlap.jaccard_macro, "pred", "macro Jaccard"),
    Metric("cf1", overlap.cf1, "pred", "CF1"),
    Metric("of1", overlap.of1, "pred", "OF1"),
    # Of scores.
    Metric("map", labelwise.mean_average_precision, "score", "mAP"),
    Metric("ap_micro", labelwise.ap_micro, "score", "micro AP"),
    Metric("auc_macro", labelwise.auc_macro, "score", "macro AUC"),
    Metric("auc_micro", labelwise.auc_micro, "score", "micro AUC"),
    Metric("ranking_loss", ranking.ranking_loss, "score", "ranking loss", greater_is_better=False),
    Metric("one_error", ranking.one_error, "score", "one error", greater_is_better=False),
    Metric("coverage", ranking.coverage, "score", "coverage", greater_is_better=False),
    Metric("lrap", ranking.lrap, "score", "label-ranking AP"),
    Metric("precision@k", top_k.precision_at_k, "score", "P@k"),
    Metric("recall@k", top_k.recall_at_k, "score", "R@k"),
    Metric("ndcg@k", top_k.ndcg_at_k, "score", "nDCG@k"),
    Metric("psp@k", top_k.psp_at_k, "score", "PSP@k", needs_propensities=True),
    Metric("psndcg@k", top_k.psndcg_at_k, "score", "PSnDCG@k", needs_propensities=True),
    # Of probabilities.
    Metric(
        "ece",
        calibration_error.ece,
        "score",
        "calibration error",
        greater_is_better=False,
        needs_probabilities=True,
    ),
    Metric(
        "ece_macro",
        calibration_error.ece_macro,
        "score",
        "calibration error, per label",
        greater_is_better=False,
        needs_probabilities=True,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
"""Every metric by name; metrics of the first k labels have names that end in "@k"."""


def get_metric(name: str | Metric, **parameters: Any) -> Metric:
    """Return the metric of this name.

    Parameters
    ----------
    name : str or Metric
        A key of `METRICS` in any case, with a number for k: ``"f1_example"``, ``"mAP"``,
        ``"precision@5"``.
    **parameters
        Fixed for every call, such as ``zero_division=np.nan``.

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
    metric = name if isinstance(name, Metric) else _by_name(name)
    return replace(metric, parameters={**metric.parameters, **parameters}) if parameters else metric


def _by_name(name: str) -> Metric:
    wanted = str(name).strip().lower()
    at_k = re.fullmatch(r"(.+)@(\d+)", wanted)
    family = METRICS.get(f"{at_k[1]}@k") if at_k else None
    if at_k and family is not None and int(at_k[2]) > 0:
        k = int(at_k[2])
        return replace(
            family,
            name=f"{at_k[1]}@{k}",
            label=family.label.replace("@k", f"@{k}"),
            parameters={**family.parameters, "k": k},
        )
    if wanted in METRICS and not wanted.endswith("@k"):
        return METRICS[wanted]
    if wanted in METRICS:
        raise InputError(f"the metric {name!r} needs a number for k: {wanted[:-1]}5")
    similar = difflib.get_close_matches(wanted, METRICS, n=1, cutoff=0.5)
    hint = f"; did you mean {similar[0]!r}?" if similar else f": it is one of {', '.join(METRICS)}"
    raise InputError(f"there is no metric {name!r}{hint}")
