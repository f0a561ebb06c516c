"""Weave, the default classifier: a stack of diverse methods within a time budget."""

from __future__ import annotations

import re
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.data.splits import stratified_folds
from labelweave.dependent.weave_members import Clock, fit_clone, plan_members
from labelweave.dependent.weave_schedule import Schedule, draw_seed
from labelweave.dependent.weave_stacking import (
    LOGIT_EPS,
    Form,
    SecondLayer,
    best_layer,
    weighted_mean,
)
from labelweave.exceptions import InputError
from labelweave.input_checks import LARGEST, is_mostly_zero
from labelweave.labels import LabelMatrix
from labelweave.probabilities import log_odds
from labelweave.rows import concatenate_features, concatenate_labels
from labelweave.tables.table import Table

__all__ = ["Weave"]

MIN_ROWS = 10  # fewer rows are not split into folds
_UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600}
ENTRIES_PER_MINUTE = 1_000_000  # of the label matrix, for the automatic budget
AUTO_MINUTES = (1, 10)  # at least, at most


class Weave(MultiLabelClassifier):
    """A stack of diverse methods, within a time budget.

    Each member is cross-validated, so that every row has out-of-fold probabilities. On these the
    members are selected and weighted [1]_, and a small second layer is fitted, in which a label
    sees the log-odds of all labels [2]_; it is used if it is better out of fold than the weighted
    mean. For networks the models of all folds are kept and averaged; other members are fitted
    once more to all rows. :class:`~labelweave.dependent.weave_schedule.Schedule` describes what
    is left out if time is short.

    Parameters
    ----------
    members : "auto" or list of method ids and estimators, default="auto"
        The members, in the order in which they are tried. "auto" depends on the shape of the
        data: extra trees, networks, neighbours, boosted trees, and first a linear model if there
        are many or sparse features.
    budget : str, float or None, default="auto"
        Time to spend, such as "30s", "10min", "1h", or seconds. "auto": a minute for each million
        entries of `Y`, at least one minute, at most ten. Members that are too slow (except the
        first) and folds may be left out, and networks may be stopped early. None: no limit.
        Results are reproducible only if the time is sufficient for all members.
    n_folds : int, default=5
    n_jobs : int, optional
        Number of folds fitted in parallel by joblib; None means one.
    verbose : int, default=0
        1 shows a progress bar in a terminal.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. A threshold
        is tuned on out-of-fold probabilities: no rows are held out, and `validation` rows are
        used for training like the others.

    Attributes
    ----------
    members_ : DataFrame
        One row per member: seconds, mean average precision out of fold, weight, and the reason
        if it was left out.
    scaler_ : StandardScaler or None
        Scales every feature to variance 1, for the members that compare distances; None if most
        entries are zero, as in word counts.
    models_ : list of lists of fitted estimators
        The models of the selected members, in descending order of weight.
    second_layer_ : dict of ndarray
        See :class:`labelweave.dependent.weave_stacking.SecondLayer`.
    form_ : float or {"mean", "calibrated"}
        The best form of the second layer: its penalty, the weighted mean, or the weighted mean of
        members that are calibrated per label.

    Notes
    -----
    Fewer than ten rows are not split into folds: all members have the same weight, and no
    threshold can be tuned.

    References
    ----------
    .. [1] R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes. Ensemble selection from
       libraries of models. ICML 2004.
    .. [2] S. Godbole and S. Sarawagi. Discriminative methods for multi-labeled classification.
       PAKDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=150, random_state=0)
    >>> model = Weave(members=["br", "mlknn"], random_state=0).fit(X, Y)
    >>> model.members_["method"].tolist()
    ['br', 'mlknn']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "members": [str, list, tuple],
        "budget": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("n_jobs", "verbose")

    tuning_space: ClassVar = {"n_folds": ("choice", [3, 5, 8])}

    def __init__(
        self,
        members: Any = "auto",
        *,
        budget: str | float | None = "auto",
        n_folds: int = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.budget = budget
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.progress_bar = True
        tags.capabilities.out_of_fold = True
        tags.capabilities.passes_tables = True
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        import pandas as pd

        self._out_of_fold: tuple[LabelMatrix, np.ndarray] | None = None
        if validation is not None:
            X, Y = concatenate_features([X, validation[0]]), concatenate_labels([Y, validation[1]])
        is_scaled = isinstance(X, Table) or is_mostly_zero(X)  # by the members, or counts
        self.scaler_ = None if is_scaled else StandardScaler(with_mean=False).fit(X)
        X = self._scaled(X)
        clock = Clock(_seconds(self.budget, len(Y) * Y.n_labels))
        rng = self._generator()
        plan = plan_members(self.members, X, Y.n_labels)
        if len(Y) < MIN_ROWS:
            equal = np.full(len(plan), 1 / len(plan))
            self.models_ = [[fit_clone(m.estimator, X, Y, draw_seed(rng))] for m in plan]
            self.second_layer_ = asdict(weighted_mean(equal, Y.n_labels))
            self.form_: Form = "mean"
            self.members_ = pd.DataFrame([{"method": m.name, "weight": equal[0]} for m in plan])
            return
        fold = stratified_folds(Y, min(self.n_folds, len(Y)), X=X, random_state=draw_seed(rng))
        schedule = Schedule(plan, X, Y, fold, clock, rng, n_jobs=self.n_jobs, verbose=self.verbose)
        schedule.run()
        weights = schedule.weights()
        for trial, weight in zip(schedule.running, weights, strict=True):
            trial.summary["weight"] = weight
        # in descending order of weight: if time runs out, the last ones are not fitted to all rows
        chosen = [int(k) for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
        kept = [schedule.running[k] for k in chosen]
        self.models_ = [
            trial.final_models(X, Y, draw_seed(rng), schedule.time_left()) for trial in kept
        ]
        rows = schedule.rows
        stack = best_layer(
            np.stack([trial.odds(rows) for trial in kept]),
            Y.to_numpy()[rows],
            weights[chosen],
            draw_seed(rng),
            seconds=clock.left(),
        )
        self.second_layer_ = asdict(stack.layer)
        self.form_ = stack.form
        self.members_ = pd.DataFrame([trial.summary for trial in schedule.trials])
        self._out_of_fold = (Y[rows], stack.held_out)

    def _scaled(self, X: Any) -> Any:
        if self.scaler_ is None:
            return X
        scaled = self.scaler_.transform(X)
        values = scaled.data if sp.issparse(scaled) else scaled
        np.clip(values, -LARGEST, LARGEST, out=values)  # members take no larger numbers
        return scaled

    def _predict_proba(self, X: Any) -> np.ndarray:
        X = self._scaled(X)
        means = [_mean_probability(models, X) for models in self.models_]
        odds = np.stack([log_odds(mean, LOGIT_EPS, np.float32) for mean in means])
        return SecondLayer(**self.second_layer_)(odds)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"members": ["br", "mlknn"], "n_folds": 3}


def _mean_probability(models: list[Any], X: Any) -> np.ndarray:
    total = models[0].predict_proba(X)
    for model in models[1:]:
        total = total + model.predict_proba(X)
    return total / len(models)


def _seconds(budget: str | float | None, n_entries: int) -> float | None:
    """Seconds of a budget such as "10min".

    >>> _seconds("10min", 1000), _seconds(90, 1000), _seconds("auto", 3_000_000)
    (600.0, 90.0, 180.0)
    """
    if budget is None or not isinstance(budget, str):
        return None if budget is None else float(budget)
    if budget == "auto":
        return 60 * float(np.clip(n_entries / ENTRIES_PER_MINUTE, *AUTO_MINUTES))
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-z]+)\s*", budget.lower())
    if match is None or match[2] not in _UNITS or not float(match[1]) > 0:
        raise InputError(
            f"budget must be 'auto', seconds, or a text like '30s', '10min', '1h': {budget!r}"
        )
    return float(match[1]) * _UNITS[match[2]]
