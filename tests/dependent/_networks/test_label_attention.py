"""Scoring rows together with known labels, a few at a time where labels are many."""

import numpy as np

from labelweave.dependent._networks.label_nodes import LabelNodes
from labelweave.dependent.ctran import CTran
from labelweave.nn.prediction import scoring_rows


def test_rows_scored_at_a_time_follow_the_tokens():
    model = CTran(size=128, n_tokens=4)
    assert scoring_rows(model._row_size(500, 6)) == 1024
    assert scoring_rows(model._row_size(500, 983)) == 128


def test_known_labels_stay_with_their_rows_over_several_batches(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(90, 4)), rng.integers(0, 2, (90, 3))
    model = CTran(**CTran._test_params() | {"epochs": 3}, random_state=0).fit(X, Y)
    known = np.where(rng.random(Y.shape) < 0.5, Y, np.nan)
    at_once = model.predict_proba(X, known=known)
    sizes = []
    forward = LabelNodes.forward

    def watched(self, known=None):
        sizes.append(len(known))
        return forward(self, known)

    monkeypatch.setattr(LabelNodes, "forward", watched)
    monkeypatch.setattr("labelweave.nn.estimator.scoring_rows", lambda _: 32)
    np.testing.assert_allclose(model.predict_proba(X, known=known), at_once, atol=1e-6)
    assert sizes == [32, 32, 32]
