"""Trees on the soft targets of networks, against slow loops."""

import numpy as np
import pytest

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.partial._selection.posterior import annotation_rate, shifted
from labelweave.partial.cross_em import CrossFitEM
from labelweave.partial.em_forest import EMForest

QUICK = {"hidden": (16,), "epochs": 10, "lr": 2e-2}


def quick(cls=EMForest, **changes):
    settings = {"base": lw.MLP(**QUICK), "n_folds": 3, "ramp": 3, "random_state": 0}
    return cls(**(settings | changes))


@pytest.fixture(scope="module")
def fitted(data):
    X, _, partial = data
    return quick(n_trees=9).fit(X, partial)


def unshifted(scores, by):
    """Scores before their logits were shifted to the expected number of labels."""
    return shifted(scores, -float(by))


def leaf_of(splits, root, x):
    node = root
    while splits.children[node][0] != node:
        above = x[splits.feature[node]] > splits.threshold[node]
        node = splits.children[node][int(above)]
    return node


def test_targets_of_the_trees(data, fitted):
    X, _, partial = data
    networks = quick(CrossFitEM).fit(X, partial)
    scores = unshifted(networks._out_of_fold[1], networks.network_.shift)
    expected = np.where(partial == 1, 1, scores)
    np.testing.assert_allclose(fitted.targets_.toarray(), expected, atol=1e-3)


def test_entries_known_to_be_negative_stay_so(data):
    X, Y, partial = data
    known = (Y == 0) & (np.random.default_rng(0).random(Y.shape) < 0.5)
    mixed = np.where(partial == 1, 1.0, np.where(known, 0.0, np.nan))
    targets = quick(n_trees=3, unannotated="unknown").fit(X, mixed).targets_.toarray()
    assert (targets[known] == 0).all()
    assert (targets[partial == 1] == 1).all()
    assert 0 < targets[np.isnan(mixed)].mean() < 1


def test_the_prediction_is_the_mean_of_networks_and_trees(data, fitted):
    X, _, partial = data
    model = quick(CrossFitEM).fit(X, partial)
    networks = unshifted(model.predict_proba(X[:5]), model.network_.shift)
    targets = fitted.targets_.toarray()
    x = X[:5].astype(np.float32)
    forests = np.zeros((5, targets.shape[1]))
    for k, forest in enumerate(fitted.forests_):
        learnt = targets[fitted.fold_ != k]
        rows = X[fitted.fold_ != k].astype(np.float32)
        for root in forest.splits.roots:
            leaves = np.array([leaf_of(forest.splits, root, row) for row in rows])
            for i in range(5):
                same = leaves == leaf_of(forest.splits, root, x[i])
                forests[i] += learnt[same].mean(axis=0) / 9  # trees of all folds
    probabilities = unshifted(fitted.predict_proba(X[:5]), fitted._shift)
    np.testing.assert_allclose(probabilities, (networks + forests) / 2, atol=1e-5)


def test_no_row_is_scored_by_a_tree_trained_on_it(data, fitted):
    for k, forest in enumerate(fitted.forests_):
        assert forest.members.shape[1] == (fitted.fold_ != k).sum()
    X, _, partial = data
    model = quick(CrossFitEM).fit(X, partial)
    networks = unshifted(model._out_of_fold[1], model.network_.shift)
    trees = 2 * unshifted(fitted._out_of_fold[1], fitted._shift) - networks
    for k in range(3):
        held = fitted.fold_ == k
        np.testing.assert_allclose(trees[held], fitted._tree_scores(k, X[held]), atol=1e-5)


def test_without_weight_the_trees_are_ignored(data, fitted):
    X, _, partial = data
    alone = quick(n_trees=3, forest_weight=0).fit(X, partial)
    networks = quick(CrossFitEM).fit(X, partial)
    np.testing.assert_allclose(alone.predict_proba(X), networks.predict_proba(X), atol=1e-6)
    assert not np.allclose(alone.predict_proba(X), fitted.predict_proba(X), atol=1e-2)


@pytest.mark.parametrize("method", [CrossFitEM, EMForest])
def test_no_more_labels_are_expected_than_estimated(data, method):
    X, _, partial = data
    model = quick(method).fit(X, partial)
    labels, scores = model._out_of_fold
    codes = labels.to_numpy()
    expected = codes.sum() / annotation_rate(scores, codes)
    by = model._shift if method is EMForest else model.network_.shift
    assert scores.sum() == pytest.approx(min(expected, unshifted(scores, by).sum()), rel=1e-3)


def test_images_are_refused():
    images = np.zeros((8, 3, 8, 8), np.uint8)
    base = lw.MLP(encoder="resnet18", epochs=1)
    with pytest.raises(InputError, match="use cross-em"):
        quick(base=base).fit(images, np.eye(8)[:, :2])
