"""The nodes of trees against scikit-learn's."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from labelweave.exceptions import InputError
from labelweave.shallow.forest import concatenate_trees


def test_missing_values_reach_the_leaves_of_scikit_learn():
    random = np.random.RandomState(0)
    X = random.normal(size=(200, 4)).astype(np.float32)
    X[random.uniform(size=X.shape) < 0.2] = np.nan
    y = np.isnan(X[:, 0]) | (X[:, 1] > 0)
    tree = DecisionTreeRegressor(max_depth=6).fit(X, y)
    leaves = concatenate_trees([tree.tree_]).leaves_of(X)
    np.testing.assert_array_equal(leaves[:, 0], tree.apply(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("children", [0, 2]),  # the root is its own child on one side: the walk may not end
        ("children", [1, 10**6]),
        ("children", [1, -1]),
        ("feature", 99),
        ("feature", -1),
        ("roots", 10**6),
    ],
)
def test_nodes_that_do_not_fit_together_are_refused(name, value):
    X = np.random.RandomState(0).normal(size=(50, 4)).astype(np.float32)
    splits = concatenate_trees([DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0]).tree_])
    splits.check(4)
    getattr(splits, name)[0] = value
    with pytest.raises(InputError, match="do not fit together"):
        splits.check(4)
