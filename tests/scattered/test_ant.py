"""ANT as an estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import fake_chains, permuted, small_student
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.metrics import hamming_loss
from labelweave.scattered.ant import ANT
from labelweave.scattered.ant_plus import ANTPlus
from labelweave.scattered.teacher import Teacher


def make(teachers, **changes):
    return ANT(teachers, **{"student": small_student(), "random_state": 0, **changes})


@pytest.fixture(scope="module")
def fitted(easy):
    X, _, teachers = easy
    return make(teachers).fit(X)


def test_the_student_predicts_all_labels(fitted, easy):
    X, Y, _ = easy
    assert fitted.label_names_.tolist() == ["a", "b", "c", "d", "e"]
    assert hamming_loss(Y, fitted.predict(X)) < 0.75 * hamming_loss(Y, np.zeros_like(Y))
    assert fitted.predict_labels(X[:1])[0]


def test_it_reports_on_its_teachers(fitted, easy):
    X, _, _ = easy
    assert fitted.teacher_labels_ == {"first": ["a", "b", "c"], "second": ["b", "c", "d", "e"]}
    assert fitted.disagreement_["label"].tolist() == ["b", "c"]
    assert fitted.fidelity_["teacher"].tolist() == ["first", "second"]
    assert (fitted.fidelity_["agreement"] > 0.75).all()
    assert fitted.fidelity_["rows"].tolist() == [40, 40]  # held out
    assert fitted.notes_["transfers"] > 0
    assert fitted.notes_["cannot_revise"] == []
    assert fitted.fidelity(X)["rows"].tolist() == [200, 200]


def test_fidelity_to_teachers_that_share_no_label():
    X = np.random.default_rng(0).normal(size=(400, 4))
    one, two, _ = fake_chains()
    apart = [one, Teacher(two.model, ["p", "q", "r"], name="two")]
    student = lw.make("mlp", hidden=(64,), epochs=100, lr=1e-2)
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        model = ANT(apart, student=student, random_state=0).fit(X)
    assert (model.fidelity_["agreement"] > 0.9).all()


def test_a_student_without_soft_targets_learns_pseudo_labels(tmp_path):
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
    reordered = make(teachers[::-1]).fit(X)
    assert np.array_equal(reordered.predict_proba(X), fitted.predict_proba(X))
    pd.testing.assert_frame_equal(reordered.disagreement_, fitted.disagreement_)


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


def test_a_student_can_be_a_teacher(fitted, easy):
    X, _, teachers = easy
    grown = make([Teacher(fitted, name="old"), teachers[1]]).fit(X)
    assert np.array_equal(grown.teachers[0].prevalence, fitted.label_prevalence_)
    assert grown.label_names_.tolist() == fitted.label_names_.tolist()


def test_scikit_learn_conventions(easy):
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
        make(teachers, integrate="median").fit(X)


def test_global_generators_are_left_alone(easy):
    X, _, teachers = easy
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(teachers, random_state=None).fit(X)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("form", ["sparse", "frame"])
def test_forms_of_rows(easy, form):
    X, _, teachers = easy
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = sp.csr_array(X) if form == "sparse" else pd.DataFrame(X, columns=names)

    def box(model):
        return lambda X: model.predict_proba(np.asarray(X) if form == "frame" else X)

    boxes = [Teacher(box(t.model), t.labels) for t in teachers]
    expected = make(boxes).fit(X).predict_proba(X)
    p = make(boxes).fit(rows).predict_proba(rows)
    assert np.allclose(p, expected, atol=1e-4)


def test_texts_get_a_student_for_texts():
    texts = ["sun and sea", "snow and ice", "sea breeze", "cold ice"] * 15
    warm = Teacher(lambda X: np.array([[0.9 if "s" in t[:3] else 0.1] for t in X]), ["warm"])
    sea = Teacher(lambda X: np.array([[0.9 if "sea" in t else 0.1] for t in X]), ["sea"])
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        model = ANTPlus([warm, sea], random_state=0).fit(texts)
    assert model.predict_proba(["sea"]).shape == (1, 2)
    p = model.predict_proba(["sea breeze", "cold ice"])[:, model.label_names_ == "sea"]
    assert p[0] > p[1]


# -- a few labels ----------------------------------------------------------------------


def test_known_labels_are_learnt(easy):
    X, Y, teachers = easy

    def undecided(width):
        return lambda X: np.full((len(X), width), 0.5)

    wrong = [Teacher(undecided(len(t.labels)), t.labels, name=t.name) for t in teachers]
    student = lw.make("mlp", hidden=(32,), epochs=60, lr=1e-2)
    with_labels = make(wrong, student=student).fit(X, Y)
    assert hamming_loss(Y, with_labels.predict(X)) < 0.2


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


def test_a_threshold_tuned_on_pseudo_labels_warns(easy):
    X, Y, teachers = easy
    with pytest.warns(LabelweaveWarning, match="against the predictions of the teachers"):
        make(teachers, threshold="tuned").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelweaveWarning)
        make(teachers, threshold="cardinality").fit(X)  # needs no labels
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
    with pytest.raises(InputError, match="all teachers abstain from the label"):
        make(silent).fit(X)


def test_black_boxes_only(easy):
    X, Y, _ = easy
    models = [
        OneVsRestClassifier(LogisticRegression()).fit(X[:100], Y[:100, :3]),
        OneVsRestClassifier(LogisticRegression()).fit(X[100:], Y[100:, 2:]),
    ]
    model = make([Teacher(models[0], list("abc")), Teacher(models[1], list("cde"))]).fit(X)
    assert model.notes_["transfers"] == model.notes_["changed_targets"] == 0
    assert len(model.notes_["cannot_revise"]) == 2


# -- the paper's settings --------------------------------------------------------------


def test_published_settings():
    hidden_and_batch_size = {
        "emotions": (16, 8),
        "scene": (16, 8),
        "yelp": (32, 32),
        "yeast": (32, 8),
        "birds": (32, 8),
        "tmc2007-500": (64, 128),
        "genbase": (64, 8),
        "medical": (64, 16),
        "another": (32, 8),
    }
    for method in (ANT, lw.BL, lw.AKA, lw.FKA, lw.CFL, lw.TC):
        for dataset, expected in hidden_and_batch_size.items():
            model = method.published(dataset)
            student = model.student
            assert (student.hidden_size, student.batch_size) == expected
            assert (student.epochs, student.patience, student.lr) == (200, None, 1e-3)
            assert (student.loss, student.choose) == ("every-step", "probable")
            assert (student.reveal, student.encoder) == (0, ())
            assert model.augment == 0
    text = ANT.published("scene", source="text")
    assert (text.keep_original, text.student.loss) == (False, "final")
    assert text.student.choose == "every-step"
    assert ANT.published().student.get_params() == ANT().default_part("student").get_params()
    assert ANT.published().keep_original == ANT().keep_original == "several"
    with pytest.raises(InputError, match="source must be"):
        ANT.published(source="talk")


def test_the_targets_that_the_transfer_changes_are_counted(easy):
    X, _, teachers = easy
    counted = [
        make(teachers, max_rounds=n, student=small_student(epochs=1)).fit(X).notes_ for n in (0, 10)
    ]
    assert counted[0]["changed_targets"] == 0
    assert 0 < counted[1]["changed_targets"] <= counted[1]["targets"] == 200 * 5
