"""Sample selection by two networks: Co-teaching, Co-teaching+, Decoupling and JoCoR.

The same engine as CLS; whole rows are left out instead of labels.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.nn.session import TrainingSession
from labelweave.nn.task import Task
from labelweave.partial._selection.strategies import STRATEGIES, Strategy
from labelweave.partial.base import PartialClassifier

__all__ = ["CoTeaching", "CoTeachingPlus", "Decoupling", "JoCoR"]


class CoTeaching(PartialClassifier):
    """Co-teaching: each network learns from the rows that have a small loss with the other.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    noise_rate : float or "auto", default="auto"
        Share of the rows of a mini-batch to leave out in the end. ``"auto"``: the estimated
        share of missing positives among the unannotated entries, as in CLS. (The share of rows
        that miss a positive would leave next to nothing where most rows do.)
    ramp : float or "auto", default="auto"
        Epochs over which that share rises from zero; half of the run, 10 at the most.
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] B. Han, Q. Yao, X. Yu et al. Co-teaching: robust training of deep neural networks
       with extremely noisy labels. NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = CoTeaching(noise_rate=0.2, random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _n_peers: ClassVar[int] = 2
    _strategy: ClassVar[str] = "co-teaching"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialClassifier._parameter_constraints,
        "noise_rate": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "ramp": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        noise_rate: float | str = "auto",
        ramp: float | str = "auto",
        **partial: Any,
    ) -> None:
        super().__init__(base, **partial)
        self.noise_rate = noise_rate
        self.ramp = ramp

    def _chosen_strategy(self) -> Strategy:
        return STRATEGIES[self._strategy]

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        rate = None if self.noise_rate == "auto" else float(self.noise_rate)
        return self._peer_task(
            network,
            session,
            self._chosen_strategy(),
            tau_h=rate,
            ramp=self._ramp(self.ramp, session),
        )


class CoTeachingPlus(CoTeaching):
    """Co-teaching+: co-teaching among the rows on whose labels the networks disagree.

    Two networks disagree on a row if any label is more probable than not with one of them only.
    Where there is no such row, the whole mini-batch takes part.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    noise_rate, ramp, **partial
        As in :class:`CoTeaching`.

    References
    ----------
    .. [1] X. Yu, B. Han, J. Yao et al. How does disagreement help generalization against label
       corruption? ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = CoTeachingPlus(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _strategy: ClassVar[str] = "co-teaching+"


class Decoupling(PartialClassifier):
    """Decoupling: two networks learn only from rows on whose labels they disagree.

    A mini-batch without such a row teaches nothing.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    **partial
        As in :class:`labelweave.partial.base.PartialClassifier`.

    References
    ----------
    .. [1] E. Malach and S. Shalev-Shwartz. Decoupling "when to update" from "how to update".
       NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = Decoupling(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _n_peers: ClassVar[int] = 2

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        return self._peer_task(network, session, STRATEGIES["decoupling"], tau_h=0.0)


class JoCoR(CoTeaching):
    """JoCoR: joint training with co-regularisation.

    The loss of a row is ``(1 - agreement)`` times both networks' cross-entropies plus
    `agreement` times the two divergences between their probabilities; both networks learn from
    the rows of small joint loss.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
    agreement : float, default=0.1
        The paper's lambda.
    noise_rate, ramp, **partial
        As in :class:`CoTeaching`.

    References
    ----------
    .. [1] H. Wei, L. Feng, X. Chen and B. An. Combating noisy labels by agreement: a joint
       training method with co-regularization. CVPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> model = JoCoR(random_state=0).set_params(base__epochs=5).fit(X, Y)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _strategy: ClassVar[str] = "jocor"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CoTeaching._parameter_constraints,
        "agreement": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(self, base: Any = "mlp", *, agreement: float = 0.1, **partial: Any) -> None:
        super().__init__(base, **partial)
        self.agreement = agreement

    def _chosen_strategy(self) -> Strategy:
        return replace(STRATEGIES[self._strategy], agreement=self.agreement)
