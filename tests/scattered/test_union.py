"""The union of teachers."""

import numpy as np
import pandas as pd
import pytest
from scattered_data import fake_chains
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.teacher_predictions import (
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.smoothed_union import SmoothedUnion
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.union import TeacherUnion
from labelweave.text import TextClassifier
from product_table import product_table


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
def test_a_union_of_functions_cannot_be_saved(tmp_path, cls):
    model = cls(fake_chains(), random_state=0).fit(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(InputError, match=r"the teacher '.*' cannot be saved: it is a FakeChain"):
        model.save(tmp_path / "union")
    assert not (tmp_path / "union").exists()


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (TeacherUnion, {"integrate": "reliability", "revise": True}),
        (TeacherUnion, {"calibration": "isotonic"}),
        (SmoothedUnion, {"copies": 3}),
        (SmoothedUnion, {"drop": 0, "sharpen": 1, "calibration": "temperature"}),
    ],
)
def test_a_union_is_saved_with_its_teachers(easy, tmp_path, cls, options):
    X, Y, teachers = easy
    pipeline = make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression()))
    pipeline.fit(X[:100, :6], Y[:100, :2])
    columns = list(range(6))
    teachers = [*teachers, Teacher(pipeline, [" A", "b"], threshold=0.3, columns=columns)]
    known = {"y": Y} if options.get("calibration") else {}
    model = cls(teachers, random_state=0, threshold="cardinality", **options).fit(X, **known)
    model.save(tmp_path / "union")
    loaded = lw.load(tmp_path / "union")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.teacher_labels_ == model.teacher_labels_
    assert loaded.fidelity_.equals(model.fidelity_)
    # It can be saved again, and compared with its teachers on other rows.
    loaded.save(tmp_path / "again")
    assert np.array_equal(lw.load(tmp_path / "again").predict_proba(X), model.predict_proba(X))
    assert loaded.fidelity(X[:30])["labels"].tolist() == model.fidelity_["labels"].tolist()


def test_a_union_keeps_addresses_but_no_keys(tmp_path):
    from labelweave.scattered._amalgamation.remote_model import RemoteModel

    address, key = "http://127.0.0.1:9/v2/models/far", "nobody-may-see-this"
    here = lw.BinaryRelevance().fit([[0.0], [1.0]] * 10, [["b"], ["a"]] * 10)
    far = RemoteModel(address, labels=["b", "c"], api_key=key)
    far.predict_proba = lambda X: np.full((len(X), 2), 0.25)
    model = TeacherUnion([here, Teacher(far, name="far")]).fit(np.zeros((20, 1)))
    model.save(tmp_path / "union")
    files = [path for path in (tmp_path / "union").rglob("*") if path.is_file()]
    assert not any(key.encode() in path.read_bytes() for path in files)
    assert key not in repr(far)
    with pytest.raises(ModelFolderError, match=f"names '{address}' as the url.*trusted="):
        lw.load(tmp_path / "union")
    loaded = lw.load(tmp_path / "union", trusted=[address])  # sends no request
    assert loaded.label_names_.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"teacher 'far': .* cannot be reached"):
        loaded.predict_proba(np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "/etc"}, "a teacher is not a model"),
        ({"model": "http://127.0.0.1:9/v2/models/m"}, "a teacher is not a model"),
        ({"labels": [1, 2, 3]}, "labels of a teacher are not texts"),
        ({"columns": [-1]}, "columns of a teacher are not whole numbers"),
        ({"thresholds": 7.0}, "threshold of teacher 'first' must be one probability"),
    ],
)
def test_a_changed_folder_of_a_union_is_refused(easy, change, said):
    X, _, teachers = easy
    model = TeacherUnion(teachers).fit(X[:50])
    state = model._state()
    state["kept_teachers"][0] = {**state["kept_teachers"][0], **change}
    with pytest.raises(InputError, match=said):
        TeacherUnion()._set_state(state)
    for columns in ([[0, 1, 2]], [[0, 1, 9], [1, 2, 3, 4]], [[0, 0, 1], [1, 2, 3, 4]]):
        state = {**model._state(), "columns": [np.array(part) for part in columns]}
        again = TeacherUnion()
        again.label_names_ = model.label_names_
        with pytest.raises(InputError, match="do not fit together"):
            again._set_state(state)


@pytest.mark.parametrize("cls", [TeacherUnion, SmoothedUnion, lw.TC])
def test_texts_and_tables_from_teachers_to_predictions(tmp_path, cls):
    frame, labels = product_table()
    options = {"student": lw.BinaryRelevance()} if cls is lw.TC else {}
    for X, teacher in ((frame, lw.BinaryRelevance()), (frame["title"].tolist(), TextClassifier())):
        first = clone(teacher).fit(X, labels)
        second = clone(teacher).fit(X[:30], labels[["light"]][:30])
        model = cls([first, second], random_state=0, **options).fit(X)
        model.save(tmp_path / "model")
        loaded = lw.load(tmp_path / "model")
        assert np.array_equal(loaded.predict_proba(X[:9]), model.predict_proba(X[:9]))
        of_texts = isinstance(X, list)
        can = capabilities(loaded)
        assert (can.texts, can.vectors) == (of_texts, not of_texts)
        columns = loaded.input_columns()
        assert (columns is None) == of_texts
        assert of_texts or [c.name for c in columns] == frame.columns.tolist()
        other = np.zeros((2, 5)) if of_texts else ["a text"]
        with pytest.raises(InputError, match=r"was fitted to (texts|features), but X holds"):
            loaded.predict_proba(other)


def test_teachers_of_a_union_receive_the_data_frame():
    frame = pd.DataFrame({"heat": [0.1, 0.9, 0.4], "rain": [0.2, 0.3, 0.7]})
    teachers = [
        Teacher(lambda X: X[["heat"]].to_numpy(), ["hot"]),
        Teacher(lambda X: X[["rain", "heat"]].to_numpy(), ["wet", "hot"]),
    ]
    p = TeacherUnion(teachers).fit(frame).predict_proba(frame)
    assert np.allclose(p, frame[["heat", "rain"]], atol=1e-5)
