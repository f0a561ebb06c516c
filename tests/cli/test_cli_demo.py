"""`labelweave demo`: four conditions, honest words, a report; with and without real data."""

import json

import pytest

from labelweave.demo.tour import Condition, Trial


def test_the_tour_runs_without_data(run, tmp_path, monkeypatch):
    monkeypatch.delenv("LABELWEAVE_DATA", raising=False)
    monkeypatch.setattr("labelweave.demo.tour.find_spec", lambda name: None)  # no text extra
    done = run("demo", "--quick", "--json", "--out", tmp_path / "demo")
    told = json.loads(done.stdout)
    assert [c["labels"] for c in told["conditions"]] == [
        "dependent", "partial", "scattered", "unseen",
    ]  # fmt: skip
    for condition in told["conditions"]:
        assert len(condition["trials"]) >= 2
        for trial in condition["trials"]:
            assert all(0 <= value <= 1 for value in trial["scores"].values())
        assert condition["trials"][-1]["method"] in ("c-gmvae", "cls+", "ant+", "xml0+")
    assert (tmp_path / "demo" / "report.html").exists()
    assert (tmp_path / "demo" / "model" / "config.json").exists()


@pytest.mark.parametrize(
    ("plain", "cls", "words"),
    [
        (0.6, 0.7, "cls is better than an here, by 0.100"),
        (0.7, 0.6, "an is better than cls here, by 0.100"),
        (0.7, 0.701, "too close"),
    ],
)
def test_the_verdict_says_who_wins(plain, cls, words):
    trials = tuple(
        Trial(id, "", {"f1_example": value}, 0.0) for id, value in (("an", plain), ("cls", cls))
    )
    assert words in Condition("partial", "", trials, None).verdict()
