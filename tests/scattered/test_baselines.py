"""BL, TC and the union of teachers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import fake_chains, small_student
from scipy.special import expit
from sklearn.base import clone

from labelweave.exceptions import InputError
from labelweave.metrics import hamming_loss
from labelweave.scattered.bl import BL
from labelweave.scattered.integration import integrate
from labelweave.scattered.opinions import ask_teachers, join_teachers
from labelweave.scattered.tc import TC
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.transfer import transfer
from labelweave.scattered.trust import trust_weights
from labelweave.scattered.union import TeacherUnion


@pytest.mark.parametrize("cls", [BL, TC])
def test_they_learn(cls, easy):
    X, Y, teachers = easy
    model = cls(teachers, student=small_student(), random_state=0).fit(X)
    assert hamming_loss(Y, model.predict(X)) < 0.8 * hamming_loss(Y, np.zeros_like(Y))
    again = cls(teachers[::-1], student=small_student(), random_state=0).fit(X)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(("rule", "revise"), [("mean-logit", False), ("positive", True)])
def test_a_union_is_its_teachers(rule, revise):
    X = np.random.default_rng(0).normal(size=(50, 4))
    teachers = fake_chains()
    model = TeacherUnion(teachers, integrate=rule, revise=revise).fit(X)
    opinions = ask_teachers(teachers, join_teachers(teachers), X)
    logits = transfer(opinions, X).logits if revise else opinions.logits
    assert np.allclose(model.predict_proba(X), integrate(logits, rule), atol=1e-6)
    assert model.predict(X).shape == (50, 5)


def test_a_union_keeps_the_reliabilities_of_its_fit():
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = TeacherUnion(fake_chains(), integrate="reliability").fit(X)
    weights = model.notes_["reliability"]
    assert len(set(weights.values())) > 1
    alone = model.predict_proba(X[:1])  # one row tells nothing about teachers
    assert np.allclose(alone, model.predict_proba(X)[:1], atol=1e-6)
    assert model.notes_["reliability"] == weights


def test_a_union_takes_no_settings_of_a_student():
    assert not {"student", "augment"} & set(TeacherUnion().get_params())
    with pytest.raises(TypeError, match="student"):
        TeacherUnion(fake_chains(), student="mlp")
    X = np.random.default_rng(0).normal(size=(20, 4))
    again = clone(TeacherUnion(fake_chains(), match="exact", batch_rows=7, threshold=0.3))
    assert (again.match, again.batch_rows) == ("exact", 7)
    np.testing.assert_array_equal(again.fit(X).predict(X), again.predict_proba(X) >= 0.3)


def test_a_union_cannot_be_saved(tmp_path):
    model = TeacherUnion(fake_chains()).fit(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(InputError, match="cannot be saved, since it is made of them"):
        model.save(tmp_path / "union")


def test_teachers_of_a_union_see_a_frame_as_it_is():
    frame = pd.DataFrame({"heat": [0.1, 0.9, 0.4], "rain": [0.2, 0.3, 0.7]})
    teachers = [
        Teacher(lambda X: X[["heat"]].to_numpy(), ["hot"]),
        Teacher(lambda X: X[["rain", "heat"]].to_numpy(), ["wet", "hot"]),
    ]
    found = TeacherUnion(teachers).fit(frame).predict_proba(frame)
    assert np.allclose(found, frame[["heat", "rain"]], atol=1e-5)


def liars(n=400, seed=0):
    """A teacher that is right where the first feature is positive, one that is so elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    truth = (rng.random((n, 3)) < 0.5).astype(np.float32)
    sure = np.where(truth == 1, 3.0, -3.0)
    right = X[:, 0] > 0
    logits = np.stack(
        [np.where(right[:, None], sure, -sure), np.where(right[:, None], -sure, sure)]
    )
    return X, truth, logits.astype(np.float32), right


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_trust_is_learnt_from_the_features(form):
    X, truth, logits, right = liars()
    known = truth.copy()
    known[100:] = np.nan
    weights = trust_weights(form(X), logits, known, hidden=16, steps=200, seed=0)
    assert np.allclose(weights.sum(axis=0), 1, atol=1e-5)
    assert ((weights[0] > 0.5) == right).mean() > 0.9


def test_trust_of_texts_is_one_number_a_teacher():
    _, truth, logits, _ = liars()
    weights = trust_weights(["some text"] * 400, logits, truth, hidden=0, steps=50, seed=0)
    assert np.allclose(weights, weights[:, :1])


def test_trust_weighs_the_targets():
    X, truth, logits, _ = liars()
    rows = {row.tobytes(): i for i, row in enumerate(X)}

    def teacher(t):
        return lambda X: expit(logits[t, [rows[row.tobytes()] for row in X]])

    teachers = [Teacher(teacher(t), list("abc"), name=f"t{t}") for t in range(2)]
    known = truth.copy()
    known[200:] = np.nan
    model = TC(teachers, student=small_student(), random_state=0)
    model.fit(X, known)
    assert sum(model.notes_["trust"].values()) == pytest.approx(1, abs=1e-4)
