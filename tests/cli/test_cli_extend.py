"""`labelweave extend`, and training with a file of label texts."""

import json

import pytest

QUICK = ("-s", "encoder=tfidf", "-q")


@pytest.fixture
def new_labels(workdir):
    path = workdir / "new.csv"
    path.write_text("label,description\nwater,the blue sea\nheat,hot days\n")
    return path


@pytest.fixture
def xml0(run, text_file):
    run("train", text_file, "-m", "xml0", "--out", "model", *QUICK)
    return "model"


def predicted(run, model):
    result = run("predict", model, "news.jsonl", "--proba", "all", "-q")
    return json.loads(result.stdout.splitlines()[0])["probabilities"]


def test_new_labels_are_predicted(run, xml0, new_labels):
    before = predicted(run, xml0)
    run("extend", xml0, "--labels", new_labels, "--out", "wider")
    after = predicted(run, "wider")
    assert list(after) == ["sea", "sun", "water", "heat"]
    assert after["water"] > after["heat"]
    assert after["sea"] == pytest.approx(before["sea"])
    assert predicted(run, xml0) == before


def test_labels_go_and_change_names_in_place(run, xml0, new_labels):
    run("extend", xml0, "--labels", new_labels)
    run("extend", xml0, "--remove", "heat", "--rename", "water=ocean")
    assert list(predicted(run, xml0)) == ["sea", "sun", "ocean"]
    assert "macro F1" in run("evaluate", xml0, "news.jsonl", "--all-metrics").output


def test_links_beside_the_model_are_not_followed(run, xml0, workdir):
    (workdir / "secret").write_text("secret")
    scores = workdir / xml0 / "metrics.json"
    scores.unlink()
    scores.symlink_to(workdir / "secret")
    result = run("extend", xml0, "--remove", "sun", "--out", "copy", status=2)
    assert "symbolic link" in result.output
    assert not (workdir / "copy").exists()


@pytest.mark.parametrize("documents", [(), ("--data", "news.jsonl")])
def test_a_classifier_of_texts_becomes_part_of_xml0(run, text_file, new_labels, documents):
    run("train", text_file, "-m", "br", "--out", "plain", "-q")
    run("extend", "plain", "--labels", new_labels, "--out", "wider", *documents, *QUICK)
    assert list(predicted(run, "wider")) == ["sea", "sun", "water", "heat"]


def test_documents_of_any_file(run, text_file, new_labels, workdir):
    run("train", text_file, "-m", "br", "--out", "plain", "-q")
    rows = ["topic;text", *(f"{w};{w} für n{i}" for i in range(9) for w in ("sea", "sun"))]
    (workdir / "d.csv").write_bytes("\n".join(rows).encode("cp1252"))
    options = ("--label-column", "topic", "--delimiter", ";", "--encoding", "cp1252")
    extend = ("extend", "plain", "--labels", new_labels, "--out", "wider", "-s", "encoder=tfidf")
    assert "encoding" in run(*extend, "--data", "d.csv", *options[:4], status=2).output
    assert "18 documents" in run(*extend, "--data", "d.csv", *options).output
    assert "--data (option --encoding)" in run(*extend, "--encoding", "cp1252", status=2).output


def test_training_with_label_texts(run, text_file, workdir):
    (workdir / "labels.jsonl").write_text(
        '{"label": "sea", "description": "salt water"}\n{"name": "salt"}\n'
    )
    run("train", text_file, "-m", "xml0", "--out", "m", "--label-texts", "labels.jsonl", *QUICK)
    assert list(predicted(run, "m")) == ["sea", "sun", "salt"]
    wrong = run("train", text_file, "-m", "br", "--label-texts", "labels.jsonl", "-q", status=2)
    assert "br does not" in wrong.output


def test_what_is_wrong_is_said_in_one_line(run, xml0, new_labels, csv_file):
    assert "Nothing to do" in run("extend", xml0, status=2).output
    assert "takes OLD=NEW" in run("extend", xml0, "--rename", "sea", status=2).output
    assert "no label 'moon'" in run("extend", xml0, "--remove", "moon", status=2).output
    assert (
        "itself: omit"
        in run("extend", xml0, "--labels", new_labels, "--data", "x", status=2).output
    )
    run("train", csv_file, "--labels", 3, "-m", "mlknn", "--out", "features", "-q")
    said = run("extend", "features", "--labels", new_labels, status=2).output
    assert "trained on features, not on texts" in said
    said = run("train", csv_file, "--labels", 3, "-m", "xml0", status=2).output
    assert "xml0 takes texts, but shapes holds features" in said
