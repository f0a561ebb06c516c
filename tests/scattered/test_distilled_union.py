"""A student of the smoothed union on mixed rows."""

import numpy as np
import pytest
from scipy.special import expit

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.metrics import hamming_loss, mean_average_precision
from labelweave.probabilities import log_odds
from labelweave.scattered._amalgamation.logit_ridge import LogitRidge
from labelweave.scattered._amalgamation.training_set import synthetic_rows
from labelweave.scattered.distilled_union import DistilledUnion
from labelweave.text import TextClassifier


def small_student():
    return lw.MLP([32], dropout=0.0, lr=5e-3, epochs=15)


@pytest.fixture(scope="module")
def fitted(easy):
    X, _, teachers = easy
    return DistilledUnion(teachers, student=small_student(), augment=5, random_state=0).fit(X)


def test_the_student_follows_the_smoothed_union(easy, fitted):
    X, Y, teachers = easy
    union = lw.SmoothedUnion(teachers, random_state=0).fit(X)
    assert hamming_loss(union.predict(X), fitted.predict(X)) < 0.12
    assert hamming_loss(Y, fitted.predict(X)) < 0.8 * hamming_loss(Y, np.zeros_like(Y))
    # As many labels as the union, whose own copies are drawn with another seed.
    assert fitted.predict(X).sum() == pytest.approx(union.predict(X).sum(), rel=0.1)


def test_saved_and_loaded(easy, fitted, tmp_path):
    X = easy[0]
    fitted.save(tmp_path / "student")
    loaded = lw.load(tmp_path / "student")
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    state = {**fitted._state(), "range": np.zeros((2, 3))}
    with pytest.raises(InputError, match="a smallest and a largest value per feature"):
        loaded._set_state(state)


def test_features_beyond_their_range_are_set_to_its_end(easy, fitted):
    X = easy[0][:5]
    far = X.copy()
    far[:, 0] = 1e9
    at_the_end = X.copy()
    at_the_end[:, 0] = fitted.range_[1, 0]
    assert np.array_equal(fitted.predict_proba(far), fitted.predict_proba(at_the_end))
    assert fitted.range_.shape == (2, X.shape[1])


def test_how_many_rows_are_mixed(easy):
    X, _, teachers = easy
    model = DistilledUnion(teachers)
    model._teachers_predict_new_rows = True
    for rows, expected in (
        (X[:100], 20.0),
        (np.zeros((1000, 2)), 6.0),
        (["one text"] * 2400, 10.0),
        (np.array([["a", 1]], dtype=object).reshape(1, 1, 2), 0.0),
    ):
        assert model._synthetic_per_row(rows) == expected


def test_mixed_texts_have_a_run_of_a_text_and_drawn_words():
    texts = ["a1 a2 a3 a4 a5 a6", "b1 b2 b3 b4 b5 b6", "c1 c2 c3 c4 c5 c6", "rare"]
    mixed = [text.split() for text in synthetic_rows(texts, 400, np.random.RandomState(0))]
    assert len(mixed) == 400
    for words in mixed:
        run = words[:-8]
        assert len(run) <= 3
        assert " ".join(run) in " ".join(texts)
        assert {word[0] for word in run} <= {run[0][0]} if run else True
    drawn = [word for words in mixed for word in words[-8:]]
    assert set(drawn) == set(" ".join(texts).split())
    # As often as every other word, although only one short text has it.
    assert drawn.count("rare") == pytest.approx(len(drawn) / 19, rel=0.01)
    assert synthetic_rows(["", " "], 3, np.random.RandomState(0)) == ["", "", ""]


def test_an_mlp_is_averaged_with_a_linear_model_by_default(easy):
    X, Y, teachers = easy
    model = DistilledUnion(teachers, augment=2, random_state=0).fit(X)
    inside = np.clip(X, *model.range_)
    network, linear = (
        log_odds(part.predict_proba(inside).astype(float), 1e-12)
        for part in (model.student_, model.linear_)
    )
    expected = expit(0.75 * network + 0.25 * linear + model.shift_)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
    assert hamming_loss(Y, model.predict(X)) < 0.8 * hamming_loss(Y, np.zeros_like(Y))


def test_the_default_student_of_texts_is_linear_and_follows_the_teachers(tmp_path):
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    texts = [" ".join(random.choice(words, 8, False)) for _ in range(300)]
    labels = [[name for name, word in zip("abc", words, strict=False) if word in text.split()]
              for text in texts]  # fmt: skip
    teachers = [
        TextClassifier(random_state=0).fit(
            texts[:100], [[x for x in row if x in of] for row in labels[:100]]
        )
        for of in ("ab", "bc")
    ]
    model = DistilledUnion(teachers, random_state=0).fit(texts[100:200])
    assert isinstance(model.student_.classifier_, LogitRidge)
    assert model.linear_ is None
    union = lw.TeacherUnion(teachers, integrate="mean-logit").fit(texts[100:200])
    Y = lw.as_labels(labels[200:], names=model.label_names_)
    ours, theirs = (
        mean_average_precision(Y, one.predict_proba(texts[200:])) for one in (model, union)
    )
    assert ours > 0.95 * theirs > 0.7
    model.save(tmp_path / "student")
    loaded = lw.load(tmp_path / "student")
    assert np.array_equal(loaded.predict_proba(texts[:5]), model.predict_proba(texts[:5]))


def test_a_student_of_texts(tmp_path):
    words = {"sea": "sea fish water", "sun": "hot sun sand", "sky": "sky cloud air"}
    random = np.random.default_rng(0)
    labels = [sorted(random.choice(list(words), random.integers(1, 3), False)) for _ in range(120)]
    texts = [" ".join([*(words[one] for one in row), f"n{i}"]) for i, row in enumerate(labels)]
    teachers = [
        TextClassifier(random_state=0).fit(
            texts[:60], [[x for x in row if x in of] for row in labels[:60]]
        )
        for of in (("sea", "sun"), ("sun", "sky"))
    ]
    model = DistilledUnion(teachers, student=small_student(), augment=2, random_state=0)
    model.fit(texts[60:])
    model.save(tmp_path / "student")
    loaded = lw.load(tmp_path / "student")
    assert loaded.predict_labels(["fish in the water", "air and a cloud"]) == [["sea"], ["sky"]]


def texts_of_few_words(n):
    random = np.random.default_rng(1)
    return [" ".join(f"word{i}" for i in random.choice(33, 6, False)) for _ in range(n)]


def small_probabilities(texts):
    """Those of "a", "b" and "c": about .5 in a text with a word of its own, else .01."""
    weights = np.random.default_rng(2).normal(0, 0.3, (33, 3))
    weights[:3] += 4.5 * np.eye(3)
    numbers = np.array([[int(word[4:]) for word in text.split()] for text in texts])
    return expit(weights[numbers].sum(axis=1) - 4.5)


def teachers_with_cuts(cuts):
    def known(columns):
        return lambda texts: np.array([small_probabilities([text])[0, columns] for text in texts])

    return [
        lw.Teacher(known([0, 1]), list("ab"), name="first", threshold=cuts[0]),
        lw.Teacher(known([1, 2]), list("bc"), name="second", threshold=cuts[1]),
    ]


def test_probabilities_are_the_teachers_and_thresholds_are_theirs(tmp_path):
    texts = texts_of_few_words(300)
    model = DistilledUnion(teachers_with_cuts((0.02, 0.03)), random_state=0).fit(texts)
    first, second = log_odds(np.array([0.02, 0.03]), 1e-12)
    expected = expit([first, (first + second) / 2, second])
    np.testing.assert_allclose(model.threshold_.applied_threshold, expected, rtol=1e-4)
    assert model.threshold_.common_ == pytest.approx(expected[1], rel=1e-4)
    p, theirs = model.predict_proba(texts), small_probabilities(texts)
    relative = expit(log_odds(p, 1e-12) - log_odds(expected, 1e-12))
    assert p.sum() == pytest.approx(theirs.sum(), rel=0.35)
    assert relative.sum() > 3 * theirs.sum()
    assert (model.predict(texts) == (theirs >= expected)).mean() > 0.95
    assert model.fidelity_["agreement"].min() > 0.9
    assert model.fidelity_["difference"].max() < 0.15
    assert model.fidelity(texts)["agreement"].min() > 0.9
    model.save(tmp_path / "student")
    loaded = lw.load(tmp_path / "student")
    assert np.array_equal(loaded.predict(texts), model.predict(texts))
    assert np.array_equal(lw.Teacher(loaded).thresholds, model.threshold_.values_)
    state = {**model._state(), "threshold_logits": np.zeros(2)}
    with pytest.raises(InputError, match="one threshold per label"):
        loaded._set_state(state)


def test_a_student_of_label_sets_has_the_scale_of_the_teachers_too():
    texts = texts_of_few_words(300)
    student = lw.MLkNN(k=5)
    teachers = teachers_with_cuts((0.2, 0.2))
    model = DistilledUnion(teachers, student=student, augment=2, random_state=0).fit(texts)
    predicted, theirs = model.predict(texts), small_probabilities(texts) >= 0.2
    assert abs(model.shift_) < 0.8  # it need not make up for the threshold
    assert model.threshold_.value == pytest.approx(0.2, rel=1e-4)
    assert (predicted == theirs).mean() > 0.9 > 1 - theirs.mean()


def test_a_number_is_relative_to_the_thresholds_of_the_teachers():
    texts = texts_of_few_words(100)
    options = {"augment": 1, "threshold": 0.4, "random_state": 0}
    model = DistilledUnion(teachers_with_cuts((0.1, 0.1)), **options).fit(texts)
    assert model.threshold_.value == pytest.approx(expit(np.log(1 / 9 * 4 / 6)), rel=1e-4)
    model = DistilledUnion(teachers_with_cuts((0.5, 0.5)), **options).fit(texts)
    assert model.threshold_.value == 0.4
