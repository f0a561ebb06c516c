"""The audit as a whole: the list, its files, the page, and the commands."""

import csv
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from audit_data import make_hidden
from click.testing import CliRunner

import labelweave as lw
from labelweave.cli.main import main
from labelweave.data.corrections import Verdict, Verdicts
from labelweave.exceptions import InputError

NASTY = '</script><img src=x onerror=alert(1)> & "so", \ud800'


@pytest.fixture(scope="module")
def result():
    return lw.audit(make_hidden()[0], top=50, folds=3)


def test_the_list_is_ranked_and_complete(result):
    scores = [finding.score for finding in result.findings]
    assert scores == sorted(scores, reverse=True)
    probabilities = [finding.annotated for finding in result.findings]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(set(probabilities)) > len(probabilities) // 2  # the order shows where scores reach 1
    assert [finding.rank for finding in result.findings] == list(range(1, 51))
    data, hidden = make_hidden()
    names = list(data.label_names)
    truth = hidden.hidden.toarray()
    hits = [truth[f.row, names.index(f.label)] for f in result.findings]
    assert np.mean(hits) > 0.6
    assert all(f.label not in f.known_labels for f in result.findings)
    assert [list(f.known_labels) for f in result.findings] == [
        data.Y[[f.row]].to_lists()[0] for f in result.findings
    ]


def test_the_audit_learns_from_verdicts_and_does_not_ask_again(result):
    data, _ = make_hidden()
    said = [
        Verdict(f.row, "", f.label, v)
        for f, v in zip(result.findings[:3], ("yes", "no", "unsure"), strict=True)
    ]
    again = lw.audit(data, top=500, folds=3, corrections=Verdicts(said))
    listed = {(f.row, f.label) for f in again.findings}
    assert not listed & {(one.row, one.label) for one in said}
    first = said[0]
    assert all(first.label in f.known_labels for f in again.findings if f.row == first.row)


def test_a_review_is_not_taken_for_random_annotation():
    """The first entries of the list are nearly all positive: counted like random annotations, they
    would suggest that hardly any positive is missing."""
    data, hidden = make_hidden(2000, share=0.5)
    names, truth = list(data.label_names), hidden.hidden.toarray()
    first = lw.audit(data, top=600, folds=3)
    said = [
        Verdict(f.row, "", f.label, "yes" if truth[f.row, names.index(f.label)] else "no")
        for f in first.findings
    ]
    n_yes = sum(one.verdict == "yes" for one in said)
    known = data.Y.to_numpy().sum() + n_yes
    expected = known / (known - n_yes + truth.sum())
    again = lw.audit(data, top=100, folds=3, corrections=Verdicts(said))
    assert first.annotated_share == pytest.approx(0.5, abs=0.15)
    assert again.annotated_share == pytest.approx(expected, abs=0.15)
    hits = [truth[f.row, names.index(f.label)] for f in again.findings]
    assert np.mean([f.score for f in again.findings]) == pytest.approx(np.mean(hits), abs=0.25)


def test_blanks_that_are_unknown():
    data, _ = make_hidden()
    Y = data.Y.to_numpy().copy()
    Y[Y == 0] = np.nan
    blank = lw.Dataset(data.X, lw.as_labels(Y, names=data.label_names))
    no = lw.audit(blank, top=5, folds=3, corrections=Verdicts([Verdict(0, "", "a1", "no")]))
    assert len(no) == 5  # a "no" does not turn the other blanks into zeros


def test_zeros_beside_blanks_are_not_listed():
    data, hidden = make_hidden()
    Y = data.Y.to_numpy().copy()
    truth = hidden.hidden.toarray()
    blank = (Y == 0) & (truth | (np.random.default_rng(0).random(Y.shape) < 0.3))
    Y[blank] = np.nan
    result = lw.audit(lw.Dataset(data.X, lw.as_labels(Y, names=data.label_names)), folds=3)
    names = list(data.label_names)
    assert result.n_unannotated == blank.sum()
    assert all(blank[f.row, names.index(f.label)] for f in result.findings)


def test_a_no_stays_known_where_a_method_for_partial_labels_scores(monkeypatch):
    """In a matrix without blanks as well; all other zeros stay unannotated."""
    from labelweave.partial.base import PartialClassifier

    seen = []
    fit = PartialClassifier._fit

    def watched(model, X, Y, validation):
        seen.append((model.unannotated_, Y.to_numpy()))
        return fit(model, X, Y, validation)

    monkeypatch.setattr(PartialClassifier, "_fit", watched)
    data, _ = make_hidden(60)
    no = np.argwhere(data.Y.to_numpy() == 0)[:20]
    verdicts = Verdicts([Verdict(int(i), "", data.label_names[j], "no") for i, j in no])
    base = lw.MLP(hidden=(4,), epochs=1, patience=None)
    model = lw.make("wan", base=base, threshold=0.5, random_state=0)
    lw.audit(data, method=model, folds=2, top=5, corrections=verdicts)
    assert [rule for rule, _ in seen] == ["unknown", "unknown"]
    assert sum((Y == 0).sum() for _, Y in seen) == 20
    assert sum(np.isnan(Y).sum() for _, Y in seen) == (data.Y.to_numpy() == 0).sum() - 20


def test_positives_that_look_wrong():
    data, _ = make_hidden(share=0.0)
    Y = data.Y.to_numpy().copy()
    wrong = np.flatnonzero((Y == 0).all(axis=1))[:5]
    Y[wrong, 0] = 1
    spoilt = lw.Dataset(data.X, lw.as_labels(Y, names=data.label_names))
    listed = lw.audit(spoilt, suspects="wrong", top=40, folds=3).findings
    assert all(Y[f.row, list(data.label_names).index(f.label)] == 1 for f in listed)
    spotted = {(int(row), "a1") for row in wrong} & {(f.row, f.label) for f in listed}
    assert len(spotted) >= 4  # of the five, among 40 of some 850


def test_a_method_for_partial_labels():
    data, _ = make_hidden(80)
    base = lw.make("mlp", epochs=2, patience=None)
    assert len(lw.audit(data, method=lw.make("an", base=base), top=7, folds=2)) == 7


def test_your_own_scores(tmp_path):
    data, _ = make_hidden()
    scores = np.random.default_rng(0).random(data.Y.shape)
    np.savez(tmp_path / "s.npz", scores=scores)
    by_file = lw.audit(data, scores=tmp_path / "s.npz", top=5)
    assert by_file.findings == lw.audit(data, scores=scores, top=5).findings
    with pytest.raises(InputError, match=r"shape \(400, 5\)"):
        lw.audit(data, scores=scores[:, :5])
    scores[2, 1] = np.nan
    with pytest.raises(InputError, match="nan at row 2, label 'b1': they must be probabilities"):
        lw.audit(data, scores=scores)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top": 0}, "top must be"),
        ({"folds": 1}, "folds must be"),
        ({"suspects": "odd"}, "suspects must be"),
        ({"unannotated": "ones"}, "unannotated must be"),
    ],
)
def test_wrong_arguments(wrong, message):
    with pytest.raises(InputError, match=message):
        lw.audit(make_hidden(30)[0], **wrong)


def test_more_entries_than_fit_are_refused():
    X = np.ones((30_000, 1), dtype=np.float32)
    data = lw.Dataset(X, sp.csr_array((30_000, 20_000)), name="many")
    with pytest.raises(InputError, match=r"30,000 rows x 20,000 labels.*some of the rows"):
        lw.audit(data)


def test_no_positive_is_refused():
    data = lw.Dataset(np.eye(6), np.zeros((6, 2)))
    with pytest.raises(InputError, match="no annotated positive"):
        lw.audit(data)


def test_files_hold_the_findings(tmp_path, result):
    result.write(tmp_path / "a.csv", tmp_path / "a.jsonl")
    with (tmp_path / "a.csv").open(newline="") as lines:
        table = list(csv.DictReader(lines))
    objects = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(table) == len(objects) == 50
    assert table[7]["label"] == objects[7]["label"] == result[7].label
    assert int(table[7]["row"]) == objects[7]["row"] == result[7].row
    assert objects[7]["known_labels"] == list(result[7].known_labels)
    assert table[7]["verdict"] == ""
    with pytest.raises(InputError, match=r"must end in \.csv, \.jsonl, \.html"):
        result.write(tmp_path / "a.txt")


def test_nothing_in_the_data_becomes_markup(tmp_path):
    texts = [f"{word} {NASTY} {i}" for i, word in enumerate(("sea", "sun") * 20)]
    labels = [["sea" + NASTY], ["sun"]] * 20
    data = lw.Dataset(texts, labels, name=NASTY, row_ids=[NASTY + str(i) for i in range(40)])
    path = lw.audit(data, top=10, folds=2).write(tmp_path / "a.html")[0]
    page = path.read_text(encoding="utf-8")
    assert "<img" not in page
    assert page.count("</script>") == 2
    stored = re.search(r'id="audit-data">(.*?)</script>', page, re.DOTALL)
    entries = json.loads(stored[1])["entries"]
    assert any("<img src=x" in entry["text"] for entry in entries)
    assert not re.search(r'(?:src|href)="(?!#)', page)  # needs no other file, no network
    assert 'content="default-src &#x27;none&#x27;' in page


def test_commands_from_the_audit_to_the_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, status=0):
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert result.exit_code == status, result.output + repr(result.exception)
        return result

    data, _ = make_hidden(200)
    header = [f"f{j}" for j in range(6)] + list(data.label_names)
    rows = np.hstack([data.X.round(3), data.Y.to_numpy()])
    lines = [",".join(header), *(",".join(f"{v:g}" for v in row) for row in rows)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    result = json.loads(
        run("audit", "pairs.csv", "--labels", 6, "--top", 20, "--folds", 3, "--json", "-q").stdout
    )
    assert result["files"] == ["pairs-audit.html", "pairs-audit.csv"]
    with (tmp_path / "pairs-audit.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    for entry in table[:4]:
        entry["verdict"] = "yes"
    with (tmp_path / "verdicts.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    common = ("--labels", 6, "--corrections", "verdicts.csv")
    trained = run("train", "pairs.csv", *common, "-m", "br", "--out", "model")
    assert "corrections of verdicts.csv: 4 yes, 0 no, 0 unsure" in trained.output
    facts = json.loads((tmp_path / "model" / "metrics.json").read_text())
    before = data.summary()["cardinality"]
    assert facts["data"]["cardinality"] == pytest.approx(before + 4 / 200)
    run("evaluate", "model", "pairs.csv", *common)
    (tmp_path / "verdicts.csv").write_text("row,label,verdict\n7,moon,yes\n")
    failed = run("train", "pairs.csv", *common, "-m", "br", status=2)
    assert "verdicts.csv, line 2: pairs has no label 'moon'" in failed.output
