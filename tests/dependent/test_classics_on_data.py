"""Every method without a network learns something from real rows."""

import numpy as np
import pytest

import labelweave as lw
from labelweave.metrics import get_metric

METHODS = {
    "boosted-trees": {"max_iter": 20, "max_leaf_nodes": 8},
    "chain": {},
    "chain-ensemble": {"n_chains": 2},
    "extra-trees": {"n_estimators": 50},
    "haram": {},
    "label-powerset": {"max_sets": 40},
    "rakel": {},
    "sleec": {},
}


@pytest.mark.data
@pytest.mark.parametrize("id", METHODS)
def test_held_out_rows_are_ranked_better_than_by_frequency(id, data_home):
    train, test = lw.load_dataset("yeast").split()
    train, test = train[np.arange(500)], test[np.arange(300)]
    model = lw.make(id, random_state=0, **METHODS[id]).fit(train.X, train.Y)
    probabilities = model.predict_proba(test.X)
    positives, known = train.Y.counts()
    frequency = np.tile(positives / known, (len(test), 1))
    score = get_metric("map")
    gain = score(test.Y, Y_score=probabilities) - score(test.Y, Y_score=frequency)
    assert gain > 0.05, f"mAP is only {gain:.3f} above that of the frequencies"
