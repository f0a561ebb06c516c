"""`labelweave extend`, and training with a file of label texts."""

import json
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

import labelweave as lw

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


def test_known_names_do_not_refuse_a_file(run, xml0, workdir):
    path = workdir / "more.csv"
    path.write_text("label,description\nsea,salt water\nwater,the blue sea\n")
    done = run("extend", xml0, "--labels", path, "--out", "wider")
    assert "1 labels of" in done.stdout
    assert "are there already: sea (--update" in done.stdout
    assert list(predicted(run, "wider")) == ["sea", "sun", "water"]
    assert "sea" not in lw.load("wider").label_descriptions_
    told = json.loads(run("extend", xml0, "--labels", path, "--update", "--json").stdout)
    assert (told["added"], told["updated"]) == (["water"], ["sea"])
    assert lw.load(xml0).label_descriptions_["sea"] == "salt water"
    run("extend", xml0, "--labels", path, "-q")  # nothing is new
    assert list(predicted(run, xml0)) == ["sea", "sun", "water"]


def test_without_data_the_validation_rows_of_the_training_are_found(run, text_file, new_labels):
    run("train", text_file, "-m", "br", "--out", "plain", "-q")
    extend = ("extend", "plain", "--labels", new_labels, "-s", "encoder=tfidf")
    done = run(*extend, "--out", "wider")
    assert "validation rows of" in done.stdout
    assert "which was found again" in done.stdout
    assert len(lw.load("wider").combination_.names) > 2
    text_file.write_text(text_file.read_text().replace("blue", "deep"))  # other rows
    assert "few labels: probabilities of new labels are not" in run(*extend, "--out", "w2").stdout
    text_file.unlink()
    assert "few labels: probabilities of new labels are not" in run(*extend, "--out", "w3").stdout


def test_without_any_data_new_labels_are_expected_as_often_as_others(run, workdir):
    words = ("apple", "beach", "cloud", "dance", "eagle", "field", "grape", "house", "igloo", "jam")
    rows = [
        {"text": f"{one} and {two} n{i}", "labels": [one, two]}
        for i in range(6)
        for one, two in pairwise(words)
    ]
    path = workdir / "words.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    run("train", path, "-m", "br", "--out", "plain", "-q")
    path.unlink()
    (workdir / "new.txt").write_text("grape jam\ncloud house\n")
    done = run("extend", "plain", "--labels", "new.txt", "--out", "wider", "-s", "encoder=tfidf")
    model = lw.load("wider")
    prevalence = model.expected_prevalence_
    assert f"is expected in {prevalence:.1%} of the documents" in done.stdout
    assert "no labelled validation rows in" in done.stdout
    texts = [f"{one} and {two}" for one, two in permutations(words, 2)]
    p = model.predict_proba(texts)[:, -2]
    n_shared = np.array([("grape" in text) + ("jam" in text) for text in texts])
    assert p[n_shared > 0].min() > 2 * p[n_shared == 0].max()
    assert p[n_shared == 0].mean() < prevalence


def test_seen_and_unseen_labels_are_scored_apart(run, xml0, new_labels, text_file):
    assert "have training examples" in run("evaluate", xml0, text_file, "--unseen", status=2).stderr
    run("extend", xml0, "--labels", new_labels, "--out", "wider", "-q")
    rows = [json.loads(line) for line in text_file.read_text().splitlines()]
    rows = [{**row, "labels": [*row["labels"], "water"]} for row in rows if "sea" in row["labels"]]
    Path("more.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = run("evaluate", "wider", "more.jsonl", "--unseen")
    assert "labels with training examples, without, and both" in done.stdout
    (line,) = [line.split() for line in done.stdout.splitlines() if "labels_true" in line]
    assert line[-3:] == ["1.5000", "1.0000", "2.5000"]
    groups = json.loads(run("evaluate", "wider", "more.jsonl", "--unseen", "--json").stdout)[
        "groups"
    ]
    assert set(groups) == {"seen", "unseen", "both"}
    model = lw.load("wider")
    p = model.predict_proba([row["text"] for row in rows])
    hits = (p[:, 2:].argmax(axis=1) == 0).mean()  # water before heat
    assert groups["unseen"]["precision@1"] == pytest.approx(hits)
    run("report", "wider", "--data", "more.jsonl", "--out", "report.md", "-q")
    assert "Labels with training examples, without, and both" in Path("report.md").read_text()


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
