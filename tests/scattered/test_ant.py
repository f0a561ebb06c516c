"""ANT as an estimator: what it needs, gives, keeps and refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import fake_chains, permuted, small_student
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.metrics import hamming_loss
from labelweave.scattered.ant import ANT
from labelweave.scattered.lesson import known_labels
from labelweave.scattered.opinions import join_teachers
from labelweave.scattered.synthetic import synthetic_rows, usual_share
from labelweave.scattered.teacher import Teacher


def make(teachers, **changes):
    return ANT(teachers, **{"student": small_student(), "random_state": 0, **changes})


@pytest.fixture(scope="module")
def fitted(easy):
    X, _, teachers = easy
    return make(teachers).fit(X)


def test_the_student_knows_all_labels_and_has_learnt(fitted, easy):
    X, Y, _ = easy
    assert fitted.label_names_.tolist() == ["a", "b", "c", "d", "e"]
    assert hamming_loss(Y, fitted.predict(X)) < 0.75 * hamming_loss(Y, np.zeros_like(Y))
    assert fitted.predict_labels(X[:1])[0]


def test_it_tells_about_its_teachers(fitted, easy):
    X, _, _ = easy
    assert fitted.teacher_labels_ == {"first": ["a", "b", "c"], "second": ["b", "c", "d", "e"]}
    assert fitted.disagreement_["label"].tolist() == ["b", "c"]
    assert fitted.fidelity_["teacher"].tolist() == ["first", "second"]
    assert (fitted.fidelity_["agreement"] > 0.75).all()
    assert fitted.fidelity_["rows"].tolist() == [40, 40]  # those that were held out
    assert fitted.notes_["told"] > 0
    assert fitted.notes_["deaf"] == []
    assert fitted.fidelity(X)["rows"].tolist() == [200, 200]


def test_a_student_follows_teachers_closely_that_do_not_contradict():
    X = np.random.default_rng(0).normal(size=(400, 4))
    one, two, _ = fake_chains()
    apart = [one, Teacher(two.model, ["p", "q", "r"], name="two")]
    student = lw.make("mlp", hidden=(64,), epochs=100, lr=1e-2)
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        model = ANT(apart, student=student, random_state=0).fit(X)
    assert (model.fidelity_["agreement"] > 0.9).all()


def test_a_student_that_takes_labels_only_gets_labels(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 4))
    model = ANT(fake_chains(), student="br", random_state=0).fit(X)
    model.save(tmp_path / "student")
    assert np.array_equal(lw.load(tmp_path / "student").predict_proba(X), model.predict_proba(X))
    assert (model.fidelity_["agreement"] > 0.6).all()


def test_same_seed_same_student_and_another_seed_another(fitted, easy):
    X, _, teachers = easy
    assert np.array_equal(make(teachers).fit(X).predict_proba(X), fitted.predict_proba(X))
    other = make(teachers, random_state=1).fit(X)
    assert not np.array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_the_order_of_teachers_does_not_matter(fitted, easy):
    X, _, teachers = easy
    found = make(teachers[::-1]).fit(X)
    assert np.array_equal(found.predict_proba(X), fitted.predict_proba(X))
    pd.testing.assert_frame_equal(found.disagreement_, fitted.disagreement_)


def test_the_order_of_a_teachers_labels_does_not_matter(easy):
    X, _, teachers = easy
    boxes = [Teacher(t.model.predict_proba, t.labels, name=t.name) for t in teachers]
    order = [2, 0, 3, 1]
    model = teachers[1].model
    mixed = Teacher(
        lambda X: model.predict_proba(X)[:, order],
        [teachers[1].labels[j] for j in order],
        name="second",
    )
    expected = make(boxes).fit(X).predict_proba(X)
    assert np.array_equal(make([mixed, boxes[0]]).fit(X).predict_proba(X), expected)


def test_chains_with_permuted_labels_give_the_same_student():
    X = np.random.default_rng(0).normal(size=(120, 4))
    teachers = fake_chains()
    mixed = [permuted(teachers[t], order) for t, order in ((2, [1, 2, 0]), (0, [2, 1, 0]))]
    expected = make([teachers[2], teachers[0]]).fit(X).predict_proba(X)
    assert np.allclose(make(mixed).fit(X).predict_proba(X), expected, atol=1e-3)


def test_it_is_saved_without_its_teachers(fitted, easy, tmp_path):
    X, _, _ = easy
    fitted.save(tmp_path / "student")
    loaded = lw.load(tmp_path / "student")
    assert isinstance(loaded, ANT)
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.teacher_labels_ == fitted.teacher_labels_
    pd.testing.assert_frame_equal(loaded.fidelity_, fitted.fidelity_)
    assert loaded.get_params()["integrate"] == "positive"
    with pytest.raises(InputError, match="at least two teachers"):
        loaded.fit(X)


def test_a_student_can_teach(fitted, easy):
    X, _, teachers = easy
    grown = make([Teacher(fitted, name="old"), teachers[1]]).fit(X)
    assert np.array_equal(grown.teachers[0].rates, fitted.label_prevalence_)
    assert grown.label_names_.tolist() == fitted.label_names_.tolist()


def test_scikit_learns_habits(easy):
    X, _, teachers = easy
    model = make(teachers)
    copy = clone(model)
    assert [t.name for t in copy.teachers] == ["first", "second"]
    assert copy.teachers[0].model is teachers[0].model  # a network is not copied
    assert "student__hidden_size" in model.get_params()
    model.set_params(student__hidden_size=8, integrate="vote")
    assert model.student.hidden_size == 8
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="integrate"):
        make(teachers, integrate="loudest").fit(X)


def test_global_generators_are_left_alone(easy):
    X, _, teachers = easy
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(teachers, random_state=None).fit(X)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("form", ["sparse", "frame"])
def test_forms_of_rows(easy, fitted, form):
    X, _, teachers = easy
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = sp.csr_array(X) if form == "sparse" else pd.DataFrame(X, columns=names)

    def box(model):
        return lambda X: model.predict_proba(np.asarray(X) if form == "frame" else X)

    boxes = [Teacher(box(t.model), t.labels) for t in teachers]
    made_up = {"augment": 0} if form == "sparse" else {}  # coins are tossed for stored values only
    expected = make(boxes, **made_up).fit(X).predict_proba(X)
    found = make(boxes, **made_up).fit(rows).predict_proba(rows)
    assert np.allclose(found, expected, atol=1e-4)


def test_texts_get_a_student_for_texts():
    texts = ["sun and sea", "snow and ice", "sea breeze", "cold ice"] * 15
    warm = Teacher(lambda X: np.array([[0.9 if "s" in t[:3] else 0.1] for t in X]), ["warm"])
    sea = Teacher(lambda X: np.array([[0.9 if "sea" in t else 0.1] for t in X]), ["sea"])
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        model = ANT([warm, sea], random_state=0).fit(texts)
    assert model.predict_proba(["sea"]).shape == (1, 2)
    found = model.predict_proba(["sea breeze", "cold ice"])[:, model.label_names_ == "sea"]
    assert found[0] > found[1]


# -- label rates -----------------------------------------------------------------------


def test_the_student_is_shifted_to_the_rates_of_its_teachers(easy):
    X, _, teachers = easy
    model = make(teachers, student=small_student(epochs=3), precision=0.9).fit(X)
    told = [dict(zip(teacher.labels, teacher.rates, strict=True)) for teacher in teachers]
    odds = logit(model.student_.predict_proba(X).astype(np.float64))
    for z, label in zip(odds.T, model.label_names_, strict=True):
        rate = np.mean([rates[label] for rates in told if label in rates])
        z += brentq(lambda t, z=z, rate=rate: expit(z + t).mean() - rate, -20, 20)
    opinions = np.full((2, *odds.shape), np.nan)
    for t, teacher in enumerate(teachers):
        for label, z in zip(teacher.labels, teacher.logits(X).T.astype(np.float64), strict=True):
            rate = np.mean([other[label] for other in told if label in other])
            shift = brentq(lambda t, z=z, rate=rate: expit(z + t).mean() - rate, -20, 20)
            opinions[t, :, "abcde".index(label)] = expit(z + shift)
    eyes = np.nanmean(opinions, axis=0).ravel()[np.argsort(-odds, axis=None)]
    expected = round(expit(odds).sum())
    n = max(k for k in range(1, expected + 1) if eyes[:k].mean() >= 0.9)
    assert n < expected  # the teachers would hold too many of these for wrong
    found = model.predict_proba(X)
    assert (found > 0.5).sum() == n
    moved = logit(found.astype(np.float64)) - odds
    assert np.allclose(moved, moved[0, 0], atol=1e-3)  # a common shift is all that is left


def test_without_rates_the_student_stays_as_it_is(easy, fitted):
    X, _, teachers = easy
    silent = [Teacher(t.model, rates=[np.nan] * len(t.labels), name=t.name) for t in teachers]
    for model in (make(silent, augment=0).fit(X), make(teachers, augment=0, rates=0).fit(X)):
        assert not model.shift_.any()
        assert np.array_equal(model.predict_proba(X), model.student_.predict_proba(X))
    assert fitted.shift_.any()


def test_rows_are_made_up_where_they_are_numbers():
    rows = np.arange(12.0).reshape(6, 2)
    frame = pd.DataFrame(rows, columns=["x", "y"])
    made = [synthetic_rows(one, 30, np.random.RandomState(0)) for one in (rows, frame)]
    assert made[1].columns.tolist() == ["x", "y"]
    assert np.array_equal(*(np.asarray(one) for one in made))
    assert usual_share(frame) == 5
    assert usual_share(frame.assign(z="text")) == usual_share(["a", "b"]) == 0
    with pytest.raises(InputError, match="set augment=0"):
        synthetic_rows(frame.assign(z="text"), 3, np.random.RandomState(0))


# -- a few labels ----------------------------------------------------------------------


def test_labels_that_are_known_are_learnt(easy):
    X, Y, teachers = easy

    def undecided(width):
        return lambda X: np.full((len(X), width), 0.5)

    wrong = [Teacher(undecided(len(t.labels)), t.labels, name=t.name) for t in teachers]
    student = lw.make("mlp", hidden=(32,), epochs=60, lr=1e-2)
    with_labels = make(wrong, student=student).fit(X, Y)
    assert hamming_loss(Y, with_labels.predict(X)) < 0.2


def test_known_labels_go_by_name(easy):
    X, Y, teachers = easy
    frame = pd.DataFrame(Y[:, [4, 0]], columns=["e", "A"])
    with pytest.raises(InputError, match="'A', which no teacher knows"):
        make(teachers).fit(X, frame)
    renamed = frame.rename(columns={"A": "a"})
    truth = known_labels(renamed, len(X), join_teachers(teachers))
    assert np.array_equal(truth[:, 4], Y[:, 4])
    assert np.array_equal(truth[:, 0], Y[:, 0])
    assert np.isnan(truth[:, 1:4]).all()


def test_calibration_needs_labels_and_uses_them(easy):
    X, Y, teachers = easy
    with pytest.raises(InputError, match="calibration needs rows"):
        make(teachers, calibration="temperature").fit(X)
    few = np.full(Y.shape, np.nan)
    few[:60] = Y[:60]
    model = make(teachers, calibration="temperature").fit(X, few)
    plain = make(teachers).fit(X, few)
    assert not np.array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("rule", ["mean-logit", "vote", "reliability"])
def test_other_rules(easy, rule):
    X, Y, teachers = easy
    model = make(teachers, integrate=rule).fit(X)
    assert hamming_loss(Y, model.predict(X)) < 0.75 * hamming_loss(Y, np.zeros_like(Y))
    assert ("reliability" in model.notes_) == (rule == "reliability")


def test_made_up_rows_are_learnt_from(easy, fitted):
    X, _, teachers = easy
    less = make(teachers, augment=0).fit(X)
    assert not np.array_equal(less.predict_proba(X), fitted.predict_proba(X))


def test_a_tuned_threshold_says_what_it_is_tuned_on(easy):
    X, Y, teachers = easy
    with pytest.warns(LabelweaveWarning, match="against what the teachers find"):
        make(teachers, threshold="tuned").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelweaveWarning)
        make(teachers, threshold="cardinality").fit(X)  # looks at no label
    labelled = lw.as_labels(Y[:50], names=list("abcde"))
    tuned = make(teachers, threshold="tuned").fit(X[50:], validation=(X[:50], labelled))
    assert 0 < tuned.threshold_.value_ < 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"teachers": []}, "at least two teachers, not 0"),
        ({"aliases": {"z": "a"}}, "no teacher has the label 'z'"),
        ({"aliases": {"a": "b"}}, "join to one"),
    ],
)
def test_bad_input_is_refused_before_any_training(easy, change, said):
    X, _, teachers = easy
    with pytest.raises(InputError, match=said):
        make(teachers).set_params(**change).fit(X)


def test_bad_rows_and_labels(easy):
    X, Y, teachers = easy
    with pytest.raises(InputError, match="y has 3 rows, but X has 200"):
        make(teachers).fit(X, Y[:3])
    with pytest.raises(InputError, match="contains NaN at row 0, column 0"):
        make(teachers).fit(np.where(np.arange(12) == 0, np.nan, X))
    silent = [Teacher(t.model, t.labels, name=t.name, abstain=0.4999) for t in teachers]
    with pytest.raises(InputError, match="no teacher is sure of the label"):
        make(silent).fit(X)


def test_black_boxes_only(easy):
    X, Y, _ = easy
    models = [
        OneVsRestClassifier(LogisticRegression()).fit(X[:100], Y[:100, :3]),
        OneVsRestClassifier(LogisticRegression()).fit(X[100:], Y[100:, 2:]),
    ]
    model = make([Teacher(models[0], list("abc")), Teacher(models[1], list("cde"))]).fit(X)
    assert model.notes_["told"] == 0
    assert len(model.notes_["deaf"]) == 2
