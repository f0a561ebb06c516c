"""The page "What replicated": its claims are about lines that exist, and it counts right."""

import sys
import tomllib
from pathlib import Path

import pytest

from labelweave.bench.suite import load_suite

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from replication_page import CLAIMS, by_rank, compared, measured, published, tally

ALL_CLAIMS = tomllib.loads(CLAIMS.read_text("utf-8"))["claims"]


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=lambda claim: claim["claim"][:40])
def test_a_claim_names_lines_of_its_tables(claim):
    line = claim.get("published_line", claim["line"])
    than = claim.get("published_than", claim.get("than", []))
    is_plot = claim["table"].startswith("Figure")
    assert (compared(claim, published(claim), line, than) is None) == is_plot
    for name in claim["suites"]:
        suite = load_suite(name)
        lines = {method.name for method in suite.methods}
        assert {claim["line"], claim.get("measured_line", claim["line"])} <= lines
        assert {*claim.get("than", []), *claim.get("measured_than", [])} <= lines
        assert set(claim["metrics"]) <= set(suite.metrics)


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=lambda claim: claim["claim"][:40])
def test_a_claim_has_a_verdict_where_it_is_measured(claim):
    ours = measured(claim)
    assert (ours is None) == ("verdict" not in claim)
    if ours is not None:
        assert claim["verdict"].endswith(".")
        assert ours.result.places > 0


FIGURES = {
    ("a", "map"): {"ours": 0.5, "x": 0.4, "y": 0.3},
    ("a", "hamming_loss"): {"ours": 0.2, "x": 0.1, "y": 0.3},
    ("b", "map"): {"x": 0.4},
}


def test_a_line_is_compared_with_the_best_of_the_others():
    assert tally(FIGURES, "ours", ["x", "y"])[:2] == (1, 2)
    assert tally(FIGURES, "ours", ["x", "y"]).difference == pytest.approx((0.1 - 0.1) / 2)
    assert tally(FIGURES, "ours", ["y"])[:2] == (2, 2)
    assert tally(FIGURES, "ours", []) == tally(FIGURES, "ours", ["x", "y"])
    assert tally(FIGURES, "nobody", ["x"]) is None


def test_a_place_without_all_compared_lines_does_not_count():
    assert tally(FIGURES, "x", ["y"])[:2] == (2, 2)
    assert tally(FIGURES, "x", ["y", "ours"])[:2] == (1, 2)
    assert tally({**FIGURES, ("c", "map"): {"ours": 1.0, "x": 0.0}}, "ours", ["x", "y"])[1] == 2


def test_ranks_are_averaged_over_the_metrics_of_a_place():
    ranked = by_rank(FIGURES, ["ours", "x", "y"])
    assert ranked == {("a", "average rank"): {"ours": 1.5, "x": 1.5, "y": 3.0}}
    assert tally(ranked, "ours", ["y"]) == (1, 1, 1.5)
