"""Weave, the default classifier: a stack of diverse methods, planned by the size of the data."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.data.splits import stratified_folds
from labelweave.dependent.weave_choice import choose_trials, table_of_members
from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.dependent.weave_members import (
    Member,
    fit_clone,
    list_members,
    with_known_entries,
    with_weights,
)
from labelweave.dependent.weave_partial import (
    Blanks,
    MeanProbability,
    about_blanks,
    fit_partial,
    meaning_of_blanks,
    members_for_partial_labels,
    with_missing_positives,
)
from labelweave.dependent.weave_plan import EFFORTS, Plan, make_plan, seconds_to_spend
from labelweave.dependent.weave_stacking import (
    LOGIT_EPS,
    Form,
    SecondLayer,
    best_layer,
    weighted_mean,
    weights_of,
)
from labelweave.dependent.weave_trials import (
    Clock,
    Trial,
    fit_to_all_rows,
    mean_probability,
    rows_to_try,
    run_trials,
    seconds_of,
    seed_of,
    with_validation_rows,
)
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.input_checks import LARGEST, is_mostly_zero, is_texts
from labelweave.labels import LabelMatrix
from labelweave.probabilities import log_odds
from labelweave.tables.table import Table
from labelweave.text.tfidf import TfidfEmbedder
from labelweave.thresholds import TunedThreshold, make_threshold
from labelweave.unannotated import as_observed, assume_negative

__all__ = ["Weave"]

N_RESAMPLES = 30  # of the rows, for a tuned threshold
MIN_ROWS = 10  # fewer rows are not split into folds


class Weave(WeightedClassifier):
    """A stack of diverse methods, planned by the size of the data.

    Each member is cross-validated, so that every row has out-of-fold probabilities. On these the
    members are selected and weighted [1]_, and a small second layer is fitted, in which a label
    sees the log-odds of all labels [2]_; it is used if it is better out of fold than the weighted
    mean. For networks the models of all folds are kept and averaged; other members are fitted
    once more to all rows.

    X may be features, a table of mixed columns, or a list of texts.

    What is tried depends on the data and on `effort`, not on the clock: a seed gives one model, on
    a busy machine and with any `n_jobs`.

    Parameters
    ----------
    members : "auto" or list of method ids and estimators, default="auto"
        The members, in the order in which they are tried. "auto" depends on the shape of the
        data: extra trees, random forests, networks, neighbours, boosted trees, and first a linear
        model if there are many or sparse features. Members that are named are all tried.
    effort : {"quick", "standard", "best"}, default="standard"
        How much is tried: members, folds and runs of networks for a predicted time of at most 7,
        70 or 600 seconds on one core, and up to ten times as much for large label matrices. If the
        data are so large that one fold takes longer, the members are chosen on a sample of the
        rows, and those that help are fitted to all rows.
    budget : str, float or None, default=None
        A limit in seconds, or such as "30s", "10min", "1h". If it ends before the plan does, a
        warning says so, members and folds are left out, and the model depends on the speed of the
        machine.
    n_folds : int or "auto", default="auto"
        "auto": 3, 5 or 10 by `effort`.
    n_jobs : int, optional
        Number of fits that joblib runs in parallel; None means one. Each uses one thread.
    verbose : int, default=0
        1 prints the plan with its predicted time, shows a progress bar, and prints the table of
        members at the end.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. A threshold
        is tuned on out-of-fold probabilities: no rows are held out, and `validation` rows are
        used for training like the others. "tuned" and "tuned:METRIC" take the median of the best
        thresholds of 30 samples of the rows, which is steadier on few rows.

    Attributes
    ----------
    members_ : DataFrame
        One row per member: mean average precision out of fold, weight, seconds, predicted seconds,
        and a note such as why it was left out.
    text_embedder_ : TfidfEmbedder
        Weights of words and of runs of characters. Only after a fit to texts.
    plan_ : str
        What was planned, in one line.
    scaler_ : StandardScaler or None
        Scales every feature to variance 1, for the members that compare distances; None if most
        entries are zero, as in word counts.
    blanks_ : {"none", "ignored", "unannotated"}
        What blank (NaN) entries of Y were taken for.
    models_ : list of lists of fitted estimators
        The models of the selected members, in descending order of weight.
    second_layer_ : dict of ndarray
        See :class:`labelweave.dependent.weave_stacking.SecondLayer`.
    form_ : float or {"mean", "calibrated", "partial"}
        The best form of the second layer: its penalty, the weighted mean, or the weighted mean of
        members that are calibrated per label. "partial": the mean of probabilities.

    Notes
    -----
    Blank entries of Y are ignored if there are enough checked negatives (zeros): half as many as
    positives if most entries are known, otherwise twice as many. With fewer they are unannotated:
    some are positives that nobody annotated. Then EM-forest, which estimates the missing positives
    (or CLS+, if that is beyond the effort), is averaged with LS-SVM and, on dense features, extra
    trees, which take blanks for negatives; their log-odds are raised by the estimated share of
    missing positives. For texts, named `members`, and data too large for CLS+, all members take
    blanks for negatives, and the log-odds of the stack are raised. A "tuned" threshold, which would
    be too high, is replaced by "cardinality". A label without any known entry is learnt as if it
    had no positive; a warning names it.

    With weights of rows, members that take none are left out, and a warning names them. The weights
    count in the fits, in the choice of the members and in the second layer, but not in the scores
    in `members_`. `validation` rows have the mean weight. EM-forest and CLS+ take none. Rows of
    weight 0 count only in the vocabulary of texts and in what blanks are taken for.

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
        "effort": [StrOptions(set(EFFORTS))],
        "budget": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_folds": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("n_jobs", "verbose")

    text_embedder_: TfidfEmbedder
    tuning_space: ClassVar = {"n_folds": ("choice", [3, 5, 8])}

    def __init__(
        self,
        members: Any = "auto",
        *,
        effort: str = "standard",
        budget: str | float | None = None,
        n_folds: int | str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.effort = effort
        self.budget = budget
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.progress_bar = tags.capabilities.out_of_fold = True
        tags.capabilities.passes_tables = True
        tags.capabilities.blank_labels = True
        is_fitted = "models_" in vars(self)
        has_texts = "text_embedder_" in vars(self)
        tags.capabilities.texts = has_texts or not is_fitted
        tags.capabilities.vectors = not has_texts
        return tags

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        self._out_of_fold: tuple[LabelMatrix, np.ndarray] | None = None
        if validation is not None:
            both = sample_weight, self._validation_weight
            X, Y, sample_weight = with_validation_rows(X, Y, validation, *both)
        is_scaled = isinstance(X, Table) or is_mostly_zero(X)  # by the members, or counts
        self.scaler_ = None if is_scaled else StandardScaler(with_mean=False).fit(X)
        X = self._scaled(X)
        clock = Clock(seconds_of(self.budget))
        seed = int(self._generator().randint(np.iinfo(np.int32).max))
        effort = EFFORTS[self.effort]
        size = DataSize.of(X, Y)
        codes = None
        if self.blanks_ == "unannotated":
            observed = as_observed(Y, "unknown")
            if sample_weight is None and self._fit_partial(X, Y, size, seed):
                return
            codes, Y = observed.to_numpy(), assume_negative(observed)
        members = list_members(self.members, X, Y.n_labels, n_trees=effort.n_trees)
        unable: list[Member] = []
        if sample_weight is not None:
            members, unable = with_weights(members)
        most = effort.max_folds if self.n_folds == "auto" else int(self.n_folds)
        n_folds = min(most, len(Y))
        chosen_by_caller = not isinstance(self.members, str)
        plan = make_plan(members, size, effort, n_folds, chosen=chosen_by_caller)
        plan.left_out.extend((member, "takes no weights of rows") for member in unable)
        if len(Y) < MIN_ROWS:
            self._fit_without_folds(plan, X, Y, seed, sample_weight)
            return
        self.plan_ = plan.describe(len(Y))
        self._say(f"weave, effort {self.effort!r}: {self.plan_}")
        rows = rows_to_try(len(Y), plan.n_rows, seed)
        tried_X, tried_Y, tried_weight = X, Y, sample_weight
        if rows is not None:
            tried_X, tried_Y, tried_weight = X[rows], Y[rows], weights_of(sample_weight, rows)
        fold = stratified_folds(tried_Y, n_folds, X=tried_X, random_state=seed)
        jobs: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        trials, predicted = run_trials(
            plan, tried_X, tried_Y, fold, seed, clock, row_weight=tried_weight, **jobs
        )
        limit = seconds_to_spend(effort, size)
        row_weight = weights_of(tried_weight, predicted)
        chosen, weights, odds = choose_trials(
            plan, trials, tried_Y, predicted, seed, limit, row_weight
        )
        kept = [(k, trials[k]) for k in chosen]
        jobs |= {"row_weight": sample_weight, "sampled": rows is not None}
        self.models_ = fit_to_all_rows(kept, X, Y, seed, clock, **jobs)
        stack = best_layer(
            odds,
            tried_Y.to_numpy()[predicted],
            weights[chosen],
            seed,
            row_weight,
            seconds=clock.left(),
            max_entries=effort.max_stacked,
        )
        if codes is not None:
            tried_codes = codes if rows is None else codes[rows]
            stack = with_missing_positives(stack, tried_codes[predicted])
        self.second_layer_ = asdict(stack.layer)
        self.form_: Form = stack.form
        self.members_ = table_of_members(plan, trials, tried_Y, predicted, weights)
        self._out_of_fold = (tried_Y[predicted], stack.held_out)
        self._report(trials)

    def _fit_partial(self, X: Any, Y: LabelMatrix, size: DataSize, seed: int) -> bool:
        """Fit the members for partial labels; False if there are none for these data."""
        effort = EFFORTS[self.effort]
        limit = seconds_to_spend(effort, size)
        if (budget := seconds_of(self.budget)) is not None:
            limit = min(limit, budget)
        members = []
        is_text = "text_embedder_" in vars(self)
        if isinstance(self.members, str) and not is_text and len(Y) >= MIN_ROWS:
            members = members_for_partial_labels(X, size, limit, effort.n_trees)
        if not members:
            return False
        seconds = sum(seconds_per_fit(member, size) or 0.0 for member in members)
        names = ", ".join(m.name for m in members)
        self.plan_ = f"{names} on all rows, for partial labels: about {seconds:.0f} s on one core"
        self._say(f"weave, effort {self.effort!r}: {self.plan_}")
        result = fit_partial(members, X, Y, size, seed, n_jobs=self.n_jobs, verbose=self.verbose)
        self.models_, self.form_, self.members_ = result.models, "partial", result.table
        self.second_layer_ = asdict(result.layer)
        self._out_of_fold = result.held_out
        self._report([])
        return True

    def _fit_without_folds(
        self, plan: Plan, X: Any, Y: LabelMatrix, seed: int, row_weight: np.ndarray | None
    ) -> None:
        import pandas as pd

        equal = np.full(len(plan.members), 1 / len(plan.members))
        self.plan_ = f"{len(plan.members)} members of equal weight: too few rows for folds"
        self.models_ = [
            [fit_clone(member.estimator, X, Y, seed_of(seed, k, 0, 0), row_weight)]
            for k, member in enumerate(plan.members)
        ]
        self.second_layer_, self.form_ = asdict(weighted_mean(equal, Y.n_labels)), "mean"
        self.members_ = pd.DataFrame({"method": [m.name for m in plan.members], "weight": equal})

    def _say(self, text: str) -> None:
        if self.verbose and sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)

    def _report(self, trials: list[Trial]) -> None:
        self._say(self.members_.round(3).to_string(index=False))
        cut = [trial for trial in trials if "budget" in trial.note]
        if cut:
            text = (
                f"budget={self.budget!r} cut {len(cut)} of {len(trials)} members short (see "
                "members_): the model depends on the speed of this machine"
            )
            warnings.warn(text, LabelweaveWarning, stacklevel=3)

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if reset:
            self.__dict__.pop("text_embedder_", None)
        elif ("text_embedder_" in vars(self)) != is_texts(X):
            fitted_to = "texts" if "text_embedder_" in vars(self) else "features"
            raise InputError(f"the model was fitted to {fitted_to}: pass {fitted_to} as X")
        if not is_texts(X):
            return super()._checked_features(X, reset=reset)
        if not reset:
            return self.text_embedder_.transform(X)
        for name in ("n_features_in_", "feature_names_in_", "table_encoder_"):
            self.__dict__.pop(name, None)
        embedder = TfidfEmbedder(characters=True)
        features = embedder.fit_transform(X)
        self.text_embedder_ = embedder
        return features

    def _checked_targets(self, Y: Any) -> LabelMatrix:
        labels = super()._checked_targets(Y)
        self.blanks_: Blanks = meaning_of_blanks(labels)
        if self.blanks_ != "none":
            self._say(about_blanks(labels, self.blanks_))
        return labels

    def _with_known_entries(self, labels: LabelMatrix) -> LabelMatrix:
        if not labels.counts()[1].any():  # of no label
            return super()._with_known_entries(labels)
        return with_known_entries(labels, warn=True)

    def _threshold_rule(self) -> Any:
        rule = make_threshold(self.threshold)
        if self.blanks_ == "unannotated" and isinstance(rule, TunedThreshold):
            return "cardinality"
        if isinstance(self.threshold, str) and isinstance(rule, TunedThreshold):
            return rule.set_params(n_resamples=N_RESAMPLES if rule.grid is None else 0)
        return self.threshold

    def _scaled(self, X: Any) -> Any:
        if self.scaler_ is None:
            return X
        scaled = self.scaler_.transform(X)
        values = scaled.data if sp.issparse(scaled) else scaled
        np.clip(values, -LARGEST, LARGEST, out=values)  # members take no larger numbers
        return scaled

    def _predict_proba(self, X: Any) -> np.ndarray:
        X = self._scaled(X)
        means = [mean_probability(models, X) for models in self.models_]
        odds = np.stack([log_odds(mean, LOGIT_EPS, np.float32) for mean in means])
        form = MeanProbability if self.form_ == "partial" else SecondLayer
        return form(**self.second_layer_)(odds)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"members": ["br", "mlknn"], "n_folds": 3}
