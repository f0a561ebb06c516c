"""Teachers in files: ONNX graphs, scikit-learn's files, stored predictions."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from scattered_data import easy_data
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import FunctionTransformer

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning, ModelFolderError
from labelweave.scattered._amalgamation.teacher_files import read_predictions
from labelweave.scattered.teacher import Teacher

X, Y = easy_data(80, 3)
OTHER = Teacher(lambda X: np.full((len(X), 1), 0.3), ["c"], name="other")


class Harmful:
    """A pickle of it creates a folder when it is opened."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_an_exported_network_is_a_teacher(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from labelweave.export import export_onnx

    model = lw.MLP([8], epochs=2, random_state=0).fit(X, lw.as_labels(Y, names=["a", "b", "c"]))
    path = tmp_path / "model.onnx"
    export_onnx(model, path)
    teacher = Teacher(path)
    assert teacher.labels == ("a", "b", "c")
    assert np.allclose(teacher.probabilities(X), model.predict_proba(X), atol=1e-5)
    with pytest.raises(InputError, match=r"teacher 'model\.onnx': .*"):
        teacher.probabilities(X[:, :5])
    (tmp_path / "bad.onnx").write_bytes(b"no graph")
    with pytest.raises(InputError, match="is not a file of ONNX Runtime"):
        Teacher(tmp_path / "bad.onnx")


@pytest.mark.parametrize("name", ["nowhere.onnx", "nowhere.skops", "nowhere.pkl", "nowhere"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises((InputError, ModelFolderError), match="nowhere"):
        Teacher(tmp_path / name)


def test_pickles_are_opened_only_if_they_are_trusted(tmp_path):
    trap, path = tmp_path / "trap", tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Harmful(trap)))
    with pytest.raises(InputError, match="can run any program when it is opened"):
        Teacher(path, ["a"])
    assert not trap.exists()
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    path.write_bytes(pickle.dumps(model))
    with pytest.warns(LabelweaveWarning, match="whoever wrote it can run any program"):
        teacher = Teacher(path, ["a", "b", "c"], trust=True)
    assert teacher.probabilities(X).shape == (80, 3)
    path.write_bytes(b"no pickle")
    with (
        pytest.warns(LabelweaveWarning),
        pytest.raises(InputError, match=r"model\.pkl cannot be opened"),
    ):
        Teacher(path, ["a"], trust=True)


def test_skops_files_need_no_trust_but_trusted_types(tmp_path):
    path = tmp_path / "model.skops"
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    skops.io.dump(model, path)
    expected = Teacher(model, ["a", "b", "c"]).probabilities(X)
    assert np.array_equal(Teacher(path, ["a", "b", "c"]).probabilities(X), expected)
    skops.io.dump(FunctionTransformer(os.getcwd), path)
    with pytest.raises(ModelFolderError, match="getcwd, which is not among"):
        Teacher(path, ["a"])


@pytest.mark.filterwarnings("ignore:the teachers have no label in common")
def test_stored_predictions_teach_a_student_but_predict_no_other_rows():
    predictions = pd.DataFrame({"a": Y[:, 0] * 0.8 + 0.1, "b": Y[:, 1] * 0.8 + 0.1})
    teacher = Teacher.from_predictions(X, predictions, name="stored")
    assert np.allclose(teacher.probabilities(X[::-1]), predictions.to_numpy()[::-1])
    with pytest.raises(InputError, match=r"teacher 'stored': .* do not have row 0"):
        teacher.probabilities(X[:1] + 1)
    student = lw.ANTPlus([teacher, OTHER], student=lw.BinaryRelevance(), random_state=0).fit(X)
    assert student.predict_proba(X + 0.01).shape == (80, 3)  # the student needs no teacher
    with pytest.raises(InputError, match="no synthetic rows: set augment=0"):
        lw.ANTPlus([teacher, OTHER], student=lw.BinaryRelevance(), augment=2).fit(X)
    union = lw.SmoothedUnion([teacher, OTHER], random_state=0).fit(X)
    assert union.notes_["copies"] == 0
    twice = Teacher.from_predictions(np.zeros((2, 3)), pd.DataFrame({"a": [0.2, 0.4]}))
    assert twice.probabilities(np.zeros((1, 3))) == pytest.approx(0.3)  # the mean of equal rows
    with pytest.raises(InputError, match="predictions of 80 rows, but 79 rows"):
        Teacher.from_predictions(X[:79], predictions)


def test_reading_predictions(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("id,labels,a,b\ny,a,0.5,1\nx,,0,0.25\n")
    assert read_predictions(path, ["x", "y"], 2).to_numpy().tolist() == [[0, 0.25], [0.5, 1]]
    assert read_predictions(path, None, 2).to_numpy().tolist() == [[0.5, 1], [0, 0.25]]
    for rows, n_rows, said in ((["x", "z"], 2, "of the row 'z'"), (None, 3, "of 2 rows, but")):
        with pytest.raises(InputError, match=said):
            read_predictions(path, rows, n_rows)
    path.write_text("id,a\nx,0.5\nx,0.1\n")
    with pytest.raises(InputError, match="has the row 'x' twice"):
        read_predictions(path, ["x"], 1)
    path.write_text("id,labels\nx,a\n")
    with pytest.raises(InputError, match="there is no label"):
        read_predictions(path, ["x"], 1)
