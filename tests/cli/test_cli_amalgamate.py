"""`labelweave amalgamate`: reports, students and refusals."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_data import make_rows, write_csv
from click.testing import CliRunner

import labelweave as lw
from labelweave.cli.main import main

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
    assert "joined: Blue, blue" in done.stdout
    assert "only colours predicts: red" in done.stdout
    assert "colours and forms share 1 labels and contradict each other in" in done.stdout
    assert "fidelity of the student to each teacher" in done.stdout
    student = lw.load("student")
    assert student.label_names_.tolist() == ["Blue", "red", "round"]
    X, Y = rows
    predicted = student.predict_proba(X.astype(np.float32)) > 0.5
    assert (predicted == Y[:, [1, 0, 2]]).mean() > 0.75  # columns went by their names
    metrics = json.loads(Path("student/metrics.json").read_text())
    assert {line["teacher"] for line in metrics["fidelity"]} == {"colours", "forms"}
    assert "Blue" in run("predict", "student", "new.csv", "--proba", "all").stdout
    write_csv(Path("other.csv"), *make_rows(30, seed=9), labels=["red", "Blue", "round"])
    said = run("evaluate", "student", "other.csv", "--labels", 3).stdout
    assert "seen none of them" in said


def test_a_dry_run_reports_and_writes_no_model(run, school, rows):
    pytest.importorskip("matplotlib")
    done = run(
        "amalgamate", *school, "--data", "new.csv", "--dry-run",
        "--report", "report.csv", "--plot", "report.svg", "--json",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["shared"] == ["Blue"]
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
        (["--method", "mlp"], "mlp does not train a student: choose one of aka, ant"),
        (["--method", "union"], "union does not train a student"),
        (["--method", "smoothed-union"], "smoothed-union does not train a student"),
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
