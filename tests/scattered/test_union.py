"""The union of teachers."""

import numpy as np
import pandas as pd
import pytest
from scattered_data import fake_chains
from sklearn.base import clone

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.teacher_predictions import (
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.smoothed_union import SmoothedUnion
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.union import TeacherUnion


@pytest.mark.parametrize(("rule", "revise"), [("mean-logit", False), ("positive", True)])
def test_a_union_combines_its_teachers(rule, revise):
    X = np.random.default_rng(0).normal(size=(50, 4))
    teachers = fake_chains()
    model = TeacherUnion(teachers, integrate=rule, revise=revise).fit(X)
    predictions = predict_with_teachers(teachers, joint_vocabulary(teachers), X)
    logits = exchange_knowledge(predictions, X).logits if revise else predictions.logits
    assert np.allclose(model.predict_proba(X), integrate(logits, rule), atol=1e-6)
    assert model.predict(X).shape == (50, 5)


def test_a_union_keeps_the_reliabilities_of_its_fit():
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = TeacherUnion(fake_chains(), integrate="reliability").fit(X)
    weights = model.notes_["reliability"]
    assert len(set(weights.values())) > 1
    alone = model.predict_proba(X[:1])  # one row cannot estimate reliabilities
    assert np.allclose(alone, model.predict_proba(X)[:1], atol=1e-6)
    assert model.notes_["reliability"] == weights


def test_a_union_has_no_parameters_of_a_student():
    assert not {"student", "augment"} & set(TeacherUnion().get_params())
    with pytest.raises(TypeError, match="student"):
        TeacherUnion(fake_chains(), student="mlp")
    X = np.random.default_rng(0).normal(size=(20, 4))
    again = clone(TeacherUnion(fake_chains(), match="exact", threshold=0.3))
    assert (again.match, again.threshold) == ("exact", 0.3)
    np.testing.assert_array_equal(again.fit(X).predict(X), again.predict_proba(X) >= 0.3)


@pytest.mark.parametrize("cls", [TeacherUnion, SmoothedUnion])
def test_a_union_cannot_be_saved(tmp_path, cls):
    model = cls(fake_chains(), random_state=0).fit(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(InputError, match="cannot be saved, since it consists of them"):
        model.save(tmp_path / "union")


def test_teachers_of_a_union_receive_the_data_frame():
    frame = pd.DataFrame({"heat": [0.1, 0.9, 0.4], "rain": [0.2, 0.3, 0.7]})
    teachers = [
        Teacher(lambda X: X[["heat"]].to_numpy(), ["hot"]),
        Teacher(lambda X: X[["rain", "heat"]].to_numpy(), ["wet", "hot"]),
    ]
    p = TeacherUnion(teachers).fit(frame).predict_proba(frame)
    assert np.allclose(p, frame[["heat", "rain"]], atol=1e-5)
