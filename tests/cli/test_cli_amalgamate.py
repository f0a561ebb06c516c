"""`labelweave amalgamate`: reports, students and refusals."""

import csv
import json
import shutil
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from cli_data import make_rows, write_csv
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.cli.main import main
from labelweave.scattered.teacher import Teacher
from labelweave.serve.loaded_model import describe
from product_table import product_table

QUICK = [f"--set=student__{name}" for name in ("epochs=40", "hidden_size=16", "lr=0.02")]


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """Folders of two chains: one knows red and blue, the other Blue and round.

    The second was trained with its features in another order.
    """
    folder = tmp_path_factory.mktemp("school")
    made = (
        ("colours", [0, 1, 2], [0, 1], ["red", "blue"]),
        ("forms", [2, 0, 1], [1, 2], ["Blue", "round"]),
    )
    for seed, (name, order, columns, labels) in enumerate(made):
        X, Y = make_rows(150, seed=seed)
        features = np.array(["f1", "f2", "f3"])[order]
        path = folder / f"{name}.csv"
        write_csv(path, X[:, order], Y[:, columns], names=features, labels=labels)
        settings = ["--set", "epochs=25", "--set", "hidden_size=8", "--set", "lr=0.02"]
        arguments = ["train", path, "--labels", 2, "-m", "ofcc", *settings, "--out", folder / name]
        result = CliRunner().invoke(main, [*map(str, arguments), "-q"])
        assert result.exit_code == 0, result.output
    return [folder / "colours", folder / "forms"]


@pytest.fixture
def rows(workdir):
    X, Y = make_rows(160, seed=3)
    write_csv(workdir / "new.csv", X, None, ids=[f"row{i}" for i in range(len(X))])
    return X, Y


def test_a_student_of_two_folders(run, school, rows):
    done = run("amalgamate", *school, "--data", "new.csv", "--out", "student", *QUICK)
    assert "3 labels in all, 1 of them shared; 160 rows of new" in done.stdout
    assert "'Blue' joined as 'blue'" in done.stdout
    assert "only colours predicts: red" in done.stdout
    assert "colours and forms share 1 labels and contradict each other in" in done.stdout
    assert "fidelity of the new model to each teacher" in done.stdout
    student = lw.load("student")
    assert student.label_names_.tolist() == ["blue", "red", "round"]
    X, Y = rows
    predicted = student.predict_proba(X.astype(np.float32)) > 0.5
    assert (predicted == Y[:, [1, 0, 2]]).mean() > 0.75  # columns went by their names
    metrics = json.loads(Path("student/metrics.json").read_text())
    assert {line["teacher"] for line in metrics["fidelity"]} == {"colours", "forms"}
    assert "blue" in run("predict", "student", "new.csv", "--proba", "all").stdout
    write_csv(Path("other.csv"), *make_rows(30, seed=9), labels=["red", "blue", "round"])
    said = run("evaluate", "student", "other.csv", "--labels", 3).stdout
    assert "seen none of them" in said


def test_a_dry_run_reports_and_writes_no_model(run, school, rows):
    pytest.importorskip("matplotlib")
    done = run(
        "amalgamate", *school, "--data", "new.csv", "--dry-run",
        "--report", "report.csv", "--plot", "report.svg", "--json",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["shared"] == ["blue"]
    assert told["orphans"] == ["red", "round"]
    (line,) = told["disagreement"]
    assert line["rows"] == 160
    with Path("report-rows.csv").open() as file:
        listed = list(csv.DictReader(file))
    assert len(listed) == line["first_only"] + line["second_only"]
    assert all(row["row"].startswith("row") for row in listed)
    assert Path("report.svg").read_text().startswith("<svg")
    assert sorted(path.name for path in Path().iterdir()) == [
        "new.csv", "report-rows.csv", "report.csv", "report.svg",
    ]  # fmt: skip


def test_the_report_of_a_real_run_names_the_same_rows(run, school, rows):
    run("amalgamate", *school, "--data", "new.csv", "--dry-run", "--report", "dry.csv", "-q")
    options = ["--out", "student", "--report", "real.csv", "-q", *QUICK]
    run("amalgamate", *school, "--data", "new.csv", *options)
    assert Path("real.csv").read_text() == Path("dry.csv").read_text()
    assert Path("real-rows.csv").read_text() == Path("dry-rows.csv").read_text()


def test_other_methods_students_and_labels(run, school, rows, workdir):
    X, Y = rows
    some = [["", "", ""] if i > 40 else row[[1, 0, 2]] for i, row in enumerate(Y)]
    write_csv(workdir / "some.csv", X, some, labels=["blue", "red", "round"])
    run(
        "amalgamate", *school, "--data", "some.csv", "--labels", 3, "--known-labels", "-q",
        "--method", "tc", "--student", "mlp", "--set", "student__hidden=[16]",
        "--set", "student__epochs=5", "--set", "calibration=temperature", "--out", "student",
    )  # fmt: skip
    student = lw.load("student")
    assert type(student).__name__ == "TC"
    assert "teacher_weights" in student.notes_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "mlp"], "mlp does not combine teachers: choose one of aka, ant"),
        (
            ["--method", "tc", "--keep-teachers"],
            "tc does not keep teachers: choose one of smoothed",
        ),
        (["--keep-teachers", "--student", "mlp"], "smoothed-union trains no student"),
        (["--labels-of", "a,b"], "--labels-of takes TEACHER=FILE"),
        (["--labels-of", "x.onnx=a,b"], "x.onnx is not one of the teachers"),
        (["--trust", "x.pkl"], "x.pkl is not one of the teachers"),
        (["--method", "annt"], "did you mean"),
        (["--set", "integrat=vote"], "did you mean 'integrate'"),
        (["--set", "integrate=loudest"], "integrate"),
        (["--alias", "red"], "--alias takes LABEL=NAME"),
        (["--alias", "rad=x"], "no teacher has the label 'rad'"),
        (["--alias", "red=blue"], "join to one"),
        (["--student", "mplp"], "there is no method 'mplp'"),
    ],
)
def test_refusals(run, school, rows, options, said):
    done = run("amalgamate", *school, "--data", "new.csv", "--out", "s", *options, status=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("s").exists()


def test_bad_teachers_and_rows(run, school, rows, workdir):
    done = run("amalgamate", school[0], "--data", "new.csv", status=2)
    assert "needs two models or more" in done.stderr
    done = run("amalgamate", school[0], "nowhere", "--data", "new.csv", status=2)
    assert "nowhere" in done.stderr
    write_csv(workdir / "thin.csv", make_rows(20)[0][:, :2], None, names=("f1", "f2"))
    done = run("amalgamate", *school, "--data", "thin.csv", status=2)
    assert "f3" in done.stderr


@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
def test_exact_names_make_more_labels(run, school, rows):
    done = run("amalgamate", *school, "--data", "new.csv", "--exact", "--dry-run")
    assert "4 labels in all, 0 of them shared" in done.stdout
    assert "nothing to compare" in done.stdout
    assert done.stderr.count("no label in common") == 1


def test_a_model_is_not_merged_with_itself(run, school, rows, workdir):
    shutil.copytree(school[0], workdir / "copy")
    for other in (school[0], f"{school[0]}/../colours", "copy"):
        done = run("amalgamate", school[0], other, "--data", "new.csv", status=2)
        assert "are the same model: pass each model once" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("method", ["union", "smoothed-union"])
def test_teachers_are_kept(run, school, rows, method):
    done = run("amalgamate", *school, "--data", "new.csv", "--keep-teachers", "-m", method, "--out",
               "both")  # fmt: skip
    assert "teachers and metrics.json written to both" in done.stdout
    model = lw.load("both")
    assert model.label_names_.tolist() == ["blue", "red", "round"]
    X, Y = rows
    assert (model.predict(X.astype(np.float32)) == Y[:, [1, 0, 2]]).mean() > 0.75
    assert "blue" in run("predict", "both", "new.csv", "--proba", "all").stdout
    write_csv(Path("other.csv"), *make_rows(30, seed=9), labels=["red", "blue", "round"])
    assert "seen none of them" in run("evaluate", "both", "other.csv", "--labels", 3).stdout
    run("report", "both", "--data", "other.csv", "--labels", 3, "--out", "report.md", "-q")
    assert "blue" in Path("report.md").read_text()


@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
def test_students_of_texts_are_served_texts(run, text_file, workdir):
    lines = [json.loads(line) for line in text_file.read_text().splitlines()]
    for name in ("sea", "sun"):
        part = [{**line, "labels": [x for x in line["labels"] if x == name]} for line in lines]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
        run("train", f"{name}.jsonl", "-m", "br", "--out", name, "-q")
    unlabelled = [{"text": line["text"]} for line in lines]
    Path("new.jsonl").write_text("\n".join(map(json.dumps, unlabelled)))
    options = (["--student", "mlp"], ["--student", "br"], ["--keep-teachers"])
    for k, more in enumerate(options):
        run("amalgamate", "sea", "sun", "--data", "new.jsonl", "--out", f"m{k}", "-q", *more)
        model = lw.load(f"m{k}")
        assert describe(model).input == "texts"
        assert model.predict_labels(["hot sun over the blue sea"]) == [["sea", "sun"]]


@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
def test_students_of_tables_are_served_records(run, workdir):
    frame, labels = product_table()
    for name in labels:
        frame.assign(**{name: labels[name]}).to_csv(f"{name}.csv", index=False)
        run("train", f"{name}.csv", "--labels", name, "-m", "br", "--out", name, "-q")
    frame.to_csv("new.csv", index=False)
    for k, more in enumerate((["--student", "br"], ["--keep-teachers"])):
        run("amalgamate", "light", "cheap", "--data", "new.csv", "--out", f"m{k}", "-q", *more)
        model = lw.load(f"m{k}")
        facts = describe(model)
        assert facts.input == "records"
        assert [column.name for column in facts.columns] == frame.columns.tolist()
        assert (model.predict(frame) == labels[["cheap", "light"]]).to_numpy().mean() > 0.8
        assert "light" in run("predict", f"m{k}", "new.csv", "--proba", "all").stdout
        lines = run("predict", f"m{k}", "new.csv", "-q").stdout.splitlines()
        assert len(lines) == len(frame)


def test_what_cannot_work_is_refused_before_teachers_are_asked(run, text_file, monkeypatch):
    for seed, name in enumerate(("one", "two")):
        run("train", text_file, "-m", "br", "--seed", seed, "--out", name, "-q")
    monkeypatch.setattr(Teacher, "probabilities", None)  # fails if it is called
    common = ("amalgamate", "one", "two", "--data", text_file)
    tuned = ("--threshold", "tuned", "--set", "validation_fraction=0")
    assert "no rows are held out to tune" in run(*common, *tuned, status=2).stderr
    done = run(*common, "--student", "mlp", "--set", "student__dropout=2", status=2)
    assert "dropout" in done.stderr


@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
def test_teachers_in_files(run, school, rows, workdir):
    X, Y = rows
    forest = make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression()))
    forest.fit(X, Y[:, :2])
    skops.io.dump(forest, "old.skops")
    joblib.dump(forest, "old.joblib")
    Path("old.txt").write_text("red\nBLUE\n")
    common = ["amalgamate", school[0], "--data", "new.csv", "--student", "br", "-q"]
    run(*common, "old.skops", "--labels-of", "old.skops=old.txt", "--out", "student")
    assert lw.load("student").teacher_labels_["old.skops"] == ["blue", "red"]
    done = run(*common, "old.skops", status=2)
    assert "does not list its labels" in done.stderr
    done = run(*common, "old.joblib", "--labels-of", "old.joblib=red,blue", status=2)
    assert "can run any program when it is opened" in done.stderr
    assert "--trust old.joblib" in done.stderr
    done = run(*common, "old.joblib", "--labels-of", "old.joblib=red,blue", "--trust", "old.joblib")
    assert "whoever wrote it can run any program here" in done.stderr


def test_predictions_in_a_file_are_a_teacher(run, school, rows, workdir):
    run("predict", school[1], "new.csv", "--proba", "all", "--as", "csv", "--out", "forms.csv")
    lines = Path("forms.csv").read_text().splitlines()
    Path("forms.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))  # rows go by their ids
    common = ["amalgamate", school[0], "forms.csv", "--data", "new.csv", "-q"]
    run(*common, "--student", "br", "--out", "student")
    folders = ["amalgamate", *school, "--data", "new.csv", "-q", "--set", "augment=0"]
    run(*folders, "--student", "br", "--out", "same")
    X = rows[0].astype(np.float32)
    # the file has no threshold, and its probabilities are rounded
    difference = lw.load("student").predict_proba(X) - lw.load("same").predict_proba(X)
    assert np.abs(difference).mean() < 0.1
    done = run(*common, "--keep-teachers", status=2)
    assert "the teacher 'forms' cannot be saved: it is a StoredPredictions" in done.stderr
    Path("forms.csv").write_text("\n".join(lines[:50]))
    assert "has no predictions of the row" in run(*common, status=2).stderr
    Path("forms.csv").write_text("id,Blue\n" + "\n".join(f"row{i},x" for i in range(160)))
    assert "'Blue' does not hold numbers" in run(*common, status=2).stderr
