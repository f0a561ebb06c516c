"""Weights of positives: one meaning for all methods with the parameter `class_weight`."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier

import labelweave as lw
from labelweave.class_weights import class_weights, weighted_counts
from labelweave.exceptions import InputError
from labelweave.labels import as_labels


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 3)) < [0.1, 0.5, 0.8]).astype(float)
    Y[rng.random((40, 3)) < 0.2] = np.nan
    return Y


def _forms(values):
    """The same labels in each form of storage."""
    yield as_labels(values)
    yield as_labels(sp.csr_array(values))
    stored = sp.coo_array(np.where(np.isnan(values), 0, 1))
    codes = sp.csr_array((values[stored.row, stored.col], (stored.row, stored.col)), values.shape)
    yield lw.LabelMatrix(codes.astype(np.float32), ("a", "b", "c"), absent=np.nan)


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_entries_have_equal_weights_in_total(values, weighted):
    row_weight = np.random.default_rng(1).random(40) + 0.1 if weighted else None
    rows = np.ones(40) if row_weight is None else row_weight
    for Y in _forms(values):
        same_rows, table = class_weights("balanced", Y, row_weight)
        assert same_rows is row_weight
        for j in range(3):
            known = ~np.isnan(values[:, j])
            entries = table[j][values[known, j].astype(int)] * rows[known]
            positive = values[known, j] == 1
            assert entries[positive].sum() == pytest.approx(entries[~positive].sum())
            assert entries.sum() == pytest.approx(rows[known].sum())
        positives, known = weighted_counts(Y, row_weight)
        shares = [np.average(c[~np.isnan(c)], weights=rows[~np.isnan(c)]) for c in values.T]
        np.testing.assert_allclose(positives / known, shares)


def test_a_constant_label_has_finite_weights():
    _, table = class_weights("balanced", as_labels([[1, 0], [1, 0]]))
    np.testing.assert_array_equal(table, [[1, 0.5], [0.5, 1]])


@pytest.mark.parametrize("id", ["br", "chain", "chain-ensemble", "boosted-trees"])
def test_balanced_positives_raise_a_rare_label(id):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = np.column_stack([X[:, 0] + rng.normal(size=300) > 2, X[:, 1] > 0]).astype(float)
    Y[:20, 1] = np.nan
    settings = {"max_iter": 5} if id == "boosted-trees" else {}
    plain = lw.make(id, random_state=0, **settings).fit(X, Y).predict_proba(X)
    settings["class_weight"] = "balanced"
    balanced = lw.make(id, random_state=0, **settings).fit(X, Y).predict_proba(X)
    assert balanced[:, 0].mean() > 1.5 * plain[:, 0].mean()
    assert abs(balanced[:, 1].mean() - plain[:, 1].mean()) < 0.1


@pytest.mark.parametrize("id", ["br", "chain", "chain-ensemble", "mlp"])
def test_weights_of_classes_are_weights_of_rows(id):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    settings = {"random_state": 0, "epochs": 4} if id == "mlp" else {"random_state": 0}
    model = lw.make(id, class_weight={2: 8.0}, **settings).fit(X, y)
    by_rows = lw.make(id, **settings).fit(X, y, sample_weight=np.where(y == 2, 8.0, 1.0))
    np.testing.assert_allclose(model.predict_proba(X), by_rows.predict_proba(X), rtol=1e-6)
    assert (model.predict(X) == 2).mean() > (y == 2).mean()


@pytest.mark.parametrize("id", ["chain", "chain-ensemble", "label-powerset", "rakel"])
def test_a_classifier_without_weights(id):
    model = lw.make(id, estimator=KNeighborsClassifier(1))
    X, Y = np.eye(4), [["a"], ["b"], ["a"], []]
    with pytest.raises(InputError, match="takes no sample_weight"):
        model.fit(X, Y, sample_weight=np.ones(4))
    if "class_weight" in model.get_params():
        with pytest.raises(InputError, match="whose fit takes sample_weight, which KNeighbors"):
            model.set_params(class_weight="balanced").fit(X, Y)
