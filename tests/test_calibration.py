"""Calibration: against scikit-learn's optimiser, on held-out rows, with unknowns."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelweave as lw
from labelweave.calibration import CalibratedMultiLabel, LabelCalibrator
from labelweave.capabilities import capabilities
from labelweave.dependent.br import BinaryRelevance
from labelweave.dependent.mlknn import MLkNN
from labelweave.exceptions import InputError
from labelweave.metrics import ece_macro
from product_table import product_columns, product_table


def overconfident(rng, n_rows, n_labels=5):
    """Labels drawn from probabilities, and a model that doubles the log odds and adds 1."""
    true_log_odds = rng.normal(size=(n_rows, n_labels)) * 1.5 - 0.5
    Y = (rng.random(true_log_odds.shape) < expit(true_log_odds)).astype(float)
    return Y, expit(2 * true_log_odds + 1)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_the_error_falls_on_other_rows(rng, method, unknown):
    Y, p = overconfident(rng, 2000)
    Y[rng.random(Y.shape) < unknown] = np.nan
    Y_other, p_other = overconfident(rng, 4000)
    calibrated = LabelCalibrator(method).fit(Y, p).transform(p_other)
    share = {"sigmoid": 0.35, "isotonic": 0.35, "temperature": 0.95}[method]
    assert ece_macro(Y_other, calibrated) < share * ece_macro(Y_other, p_other)


def test_sigmoid_is_the_most_likely_one(rng):
    Y, p = overconfident(rng, 300, 3)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    fitted = LabelCalibrator().fit(Y, p)
    for j in range(3):
        known = ~np.isnan(Y[:, j])
        y, z = Y[known, j], logit(p[known, j])
        n = y.sum()
        target = np.where(y == 1, (n + 1) / (n + 2), 1 / (len(y) - n + 2))

        def loss(ab, z=z, target=target):
            x = ab[0] * z + ab[1]
            return np.sum(np.logaddexp(0, x) - target * x)

        best = minimize(loss, [1, 0], tol=1e-12).x
        np.testing.assert_allclose([fitted.slope_[j], fitted.offset_[j]], best, atol=1e-4)
    np.testing.assert_allclose(fitted.slope_, 0.5, atol=0.15)


def test_temperature_is_one_number_for_all_labels(rng):
    true_log_odds = rng.normal(size=(3000, 4))
    Y = rng.random(true_log_odds.shape) < expit(true_log_odds)
    fitted = LabelCalibrator("temperature").fit(Y, expit(3 * true_log_odds))
    assert len(set(fitted.slope_)) == 1
    assert 1 / fitted.slope_[0] == pytest.approx(3, rel=0.1)
    assert not fitted.offset_.any()


def test_isotonic_is_scikit_learns(rng):
    Y, p = overconfident(rng, 500, 2)
    calibrated = LabelCalibrator("isotonic").fit(Y, p).transform(p)
    for j in range(2):
        expected = IsotonicRegression(out_of_bounds="clip").fit(p[:, j], Y[:, j]).predict(p[:, j])
        np.testing.assert_allclose(calibrated[:, j], expected)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_rare_labels_get_the_common_sigmoid(rng, method):
    Y, p = overconfident(rng, 1000, 4)
    Y[:, 3] = 0
    Y[:5, 3] = 1
    fitted = LabelCalibrator(method).fit(Y, p)
    flat = LabelCalibrator().fit(Y.reshape(-1, 1), p.reshape(-1, 1))
    assert fitted.slope_[3] == pytest.approx(flat.slope_[0])
    assert fitted.offset_[3] == pytest.approx(flat.offset_[0])
    assert np.diff(fitted.first_knot_)[3] == 0


def test_the_order_is_never_reversed(rng):
    Y, p = overconfident(rng, 1000, 3)
    Y[:, 1] = 1 - Y[:, 1]
    calibrated = LabelCalibrator().fit(Y, p).transform(p)
    assert calibrated[:, 1] == pytest.approx(Y[:, 1].mean(), abs=0.01)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_certain_probabilities_and_constant_labels(rng, method):
    p = np.array([[0.0, 1.0], [1.0, 0.0]] * 60)
    Y = np.array([[0, 1], [1, 1]] * 60)
    calibrated = LabelCalibrator(method).fit(Y, p).transform(p)
    assert np.isfinite(calibrated).all()
    assert (calibrated[1::2, 0] > 0.9).all()


def test_many_blocks_give_the_same(rng, monkeypatch):
    Y, p = overconfident(rng, 200, 7)
    at_once = LabelCalibrator().fit(Y, p).transform(p)
    monkeypatch.setattr("labelweave.metrics._inputs._CHUNK_ENTRIES", 450)
    np.testing.assert_allclose(LabelCalibrator().fit(Y, p).transform(p), at_once, rtol=1e-6)


def test_bad_input_is_named(rng):
    Y, p = overconfident(rng, 50, 3)
    with pytest.raises(InputError, match="between 0 and 1"):
        LabelCalibrator().fit(Y, p * 3)
    with pytest.raises(InputError, match="fitted to 3 labels"):
        LabelCalibrator().fit(Y, p).transform(p[:, :2])


# -- the classifier --------------------------------------------------------------------


def features(rng, n_rows):
    X = rng.normal(size=(n_rows, 6))
    X[:, 3:] = X[:, :3]  # naive Bayes counts each feature twice and is too sure
    Y = (rng.random((n_rows, 3)) < expit(X[:, :3] - 0.5)).astype(float)
    return X, Y


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_calibrated_classifier_errs_less(rng, method):
    from sklearn.naive_bayes import GaussianNB

    X, Y = features(rng, 1500)
    X_other, Y_other = features(rng, 3000)
    plain = BinaryRelevance(GaussianNB())
    model = CalibratedMultiLabel(plain, method=method, random_state=0).fit(X, Y)
    before = ece_macro(Y_other, plain.fit(X, Y).predict_proba(X_other))
    assert ece_macro(Y_other, model.predict_proba(X_other)) < 0.6 * before


def test_prefit_uses_the_classifier_as_it_is(rng):
    X, Y = features(rng, 300)
    base = BinaryRelevance().fit(X[:150], Y[:150])
    model = CalibratedMultiLabel(base, cv="prefit").fit(X[150:], Y[150:])
    assert model.estimator_ is base
    expected = LabelCalibrator().fit(Y[150:], base.predict_proba(X[150:]))
    np.testing.assert_allclose(
        model.predict_proba(X), expected.transform(base.predict_proba(X)), rtol=1e-6
    )


def test_prefit_needs_a_fitted_classifier_of_the_same_labels(rng):
    X, Y = features(rng, 100)
    with pytest.raises(InputError, match="fitted estimator"):
        CalibratedMultiLabel(cv="prefit").fit(X, Y)
    with pytest.raises(InputError, match="has 2 labels"):
        CalibratedMultiLabel(BinaryRelevance().fit(X, Y[:, :2]), cv="prefit").fit(X, Y)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_it_can_be_saved(rng, tmp_path, method):
    X, Y = features(rng, 300)
    model = CalibratedMultiLabel(MLkNN(), method=method, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# MLkNN minds sets of a few rows, of which these checks are made.
@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
@parametrize_with_checks([CalibratedMultiLabel(MLkNN(), cv=2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_what_is_known_reaches_the_classifier_inside():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    first = (X[:, 0] > 0).astype(int)
    Y = np.column_stack([first, first])  # the second label is the first
    model = CalibratedMultiLabel(lw.make("chain"), cv=2, random_state=0).fit(X, Y)
    row = np.array([[-0.1, 0.0, 0.0]])
    told = model.predict_proba(row, known=[[1, np.nan]])
    assert told[0, 0] == 1
    assert told[0, 1] > model.predict_proba(row)[0, 1] + 0.1


def test_a_classifier_that_cannot_be_told_is_named():
    X, Y = np.eye(20), np.eye(20)[:, :2]
    model = CalibratedMultiLabel(lw.make("mlknn", k=2), cv=2).fit(X, Y)
    with pytest.raises(InputError, match="does not predict a label from others"):
        model.predict_proba(X[:1], known=[[1, np.nan]])


# -- pipelines and texts ----------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.5, "per-label"])
def test_a_pipeline_gets_the_columns_of_a_table(threshold):
    frame, labels = product_table()
    pipeline = make_pipeline(product_columns(), lw.BinaryRelevance())
    model = lw.CalibratedMultiLabel(pipeline, cv=3, threshold=threshold, random_state=0)
    for rows in (frame, lw.Table(frame)):
        model.fit(rows, labels)
        assert model.feature_names_in_.tolist() == list(frame.columns)
        assert lw.evaluate(model, (rows, labels))["f1_macro"] > 0.8
    with pytest.raises(InputError, match=r"'columntransformer' .* cannot use these rows: .*brand"):
        model.predict(frame.drop(columns="brand"))


def test_a_fitted_pipeline_is_calibrated_as_it_is():
    frame, labels = product_table()
    pipeline = make_pipeline(product_columns(), lw.BinaryRelevance()).fit(frame, labels)
    model = lw.CalibratedMultiLabel(pipeline, cv="prefit").fit(frame, labels)
    assert model.estimator_[-1] is pipeline[-1]
    with pytest.raises(InputError, match="they are not those of Y"):
        model.fit(frame, labels[["cheap", "light"]])


def test_the_seed_reaches_the_steps_of_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = (X[:, :2] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), lw.MLP(epochs=1))
    model = lw.CalibratedMultiLabel(pipeline, cv=2, random_state=5)
    first, second = (clone(model).fit(X, Y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "estimator",
    [make_pipeline(TfidfVectorizer(), lw.BinaryRelevance()), lw.TextClassifier()],
    ids=["pipeline", "classifier"],
)
@pytest.mark.parametrize("threshold", [0.5, "per-label"])
def test_texts(estimator, threshold):
    frame, labels = product_table()
    texts = frame["title"].tolist()
    model = lw.CalibratedMultiLabel(estimator, cv=3, threshold=threshold, random_state=0)
    model.fit(texts, labels)
    assert capabilities(model).texts
    assert model.predict(texts)[:, 0].tolist() == labels["light"].tolist()
    with pytest.raises(InputError, match="X must be a list of texts"):
        model.predict(np.zeros((2, 3)))
