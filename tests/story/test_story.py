"""One story through all four conditions of labels, on texts that it makes.

Two teachers learn partial labels with CLS+, each of other labels; ANT+ makes one student of them;
XML0+ adds labels without examples; the audit finds what was blanked; the model is saved, served by
a process of its own and called over HTTP.
"""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import labelweave as lw
from labelweave.data.scenarios import hide_positives

WORDS = {
    "sea": "wave salt fish tide coral harbour",
    "desert": "sand dune camel heat oasis cactus",
    "forest": "oak moss fern wolf leaf owl",
    "kitchen": "oven knife flour pan recipe butter",
    "music": "piano violin melody chord rhythm song",
    "space": "rocket orbit moon star comet planet",
}
NEW = {"seafood": "fish recipe salt pan oven coral", "night": "star moon comet owl dune heat"}
FIRST, SECOND = ["sea", "desert", "forest", "kitchen"], ["forest", "kitchen", "music", "space"]


def documents(n_rows, rng, subjects):
    """Texts of a dozen words about one or two subjects, and the subjects."""
    words = {**WORDS, **NEW}
    chosen = [rng.choice(subjects, rng.integers(1, 3), replace=False) for _ in range(n_rows)]
    texts = [
        " ".join(rng.choice(" ".join(words[name] for name in row).split(), size=12))
        for row in chosen
    ]
    return texts, [[str(name) for name in row] for row in chosen]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Every step once; what the tests look at."""
    rng = np.random.default_rng(0)
    teachers, audited = [], None
    for known in (FIRST, SECOND):
        texts, labels = documents(240, rng, list(WORDS))
        full = lw.as_labels([[n for n in row if n in known] for row in labels], names=known)
        hidden = hide_positives(full, 0.4, random_state=0)
        network = lw.CLSPlus(random_state=0).set_params(base__epochs=25, base__hidden=[32])
        teacher = lw.TextClassifier(network, random_state=0).fit(texts, hidden.Y)
        teachers.append(lw.Teacher(teacher))
        audited = audited or (texts, full, hidden.Y)
    unlabelled, _ = documents(240, rng, list(WORDS))
    student = lw.ANTPlus(teachers, random_state=0).fit(unlabelled)
    student.tune_threshold(unlabelled, threshold="cardinality")
    tagger = lw.XML0Plus.from_fitted(student, X=unlabelled, encoder="tfidf", random_state=0)
    tagger.add_labels(list(NEW), NEW)
    folder = tmp_path_factory.mktemp("story") / "tagger"
    tagger.save(folder)
    return {"student": student, "tagger": tagger, "folder": folder, "audited": audited}


def test_the_student_knows_the_labels_of_both_teachers(story):
    texts, labels = documents(150, np.random.default_rng(1), list(WORDS))
    names = list(story["student"].label_names_)
    assert sorted(names) == sorted(WORDS)
    truth = lw.as_labels(labels, names=names)
    scores = lw.evaluate(story["student"], (texts, truth))
    assert scores["map"] > 0.9
    assert scores["f1_example"] > 0.8  # at a cut that no label was looked at for


def test_new_labels_are_ranked_by_their_words(story):
    for name in NEW:
        texts, _ = documents(40, np.random.default_rng(2), [name, name])
        first = [row[0][0] for row in story["tagger"].rank(texts, 1, among="unseen")]
        assert first.count(name) > 30


def test_the_audit_finds_what_was_blanked(story):
    texts, full, partial = story["audited"]
    missing = (full.to_numpy() == 1) & (partial.to_numpy() == 0)
    findings = lw.audit(lw.Dataset(texts, partial), top=40, folds=3, random_state=0)
    column = {name: j for j, name in enumerate(full.names)}
    hits = [missing[entry.row, column[entry.label]] for entry in findings]
    by_chance = missing.sum() / (partial.to_numpy() == 0).sum()
    assert np.mean(hits) > 2.5 * by_chance


@pytest.fixture(scope="module")
def service(story, tmp_path_factory):
    """The process of `labelweave serve` with the saved folder and nothing else, and its address."""
    pytest.importorskip("fastapi", reason="needs labelweave[serve]")
    pytest.importorskip("sqlalchemy", reason="needs labelweave[serve]")
    home = tmp_path_factory.mktemp("service")
    command = [sys.executable, "-m", "labelweave", "serve", story["folder"], "--port", "0"]
    process = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True)
    try:
        at = re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        while not answers(f"{at}/v1/health/live"):
            assert process.poll() is None
            time.sleep(0.2)
        yield process, at
    finally:
        process.kill()
        process.communicate()


def answers(address):
    try:
        return urllib.request.urlopen(address).status == 200
    except urllib.error.URLError:
        return False


def post(address, **body):
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return json.load(urllib.request.urlopen(request))


def test_the_service_gives_old_and_new_labels_over_http_until_it_is_stopped(story, service):
    process, address = service
    rng = np.random.default_rng(4)
    texts = [documents(1, rng, [name, name])[0][0] for name in ("music", *NEW)]
    told = post(f"{address}/v1/models/tagger/predict", inputs=texts, top_k=2, scores=True)
    assert told["predictions"][0]["labels"][0]["label"] == "music"
    for name, answer in zip(NEW, told["predictions"][1:], strict=True):
        scores = {one["label"]: one["score"] for one in answer["scores"]}
        assert max(NEW, key=scores.get) == name, scores
    expected = story["tagger"].predict_proba(texts)
    names = list(story["tagger"].label_names_)
    for row, answer in zip(expected, told["predictions"], strict=True):
        scores = {one["label"]: one["score"] for one in answer["scores"]}
        np.testing.assert_allclose([scores[name] for name in names], row, atol=1e-5)
    process.terminate()
    assert process.wait() in (0, -signal.SIGTERM)
