"""Measured beside published: the arithmetic, the ranks, and the tables that show them."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from bench_data import make_record
from scipy.stats import rankdata

from labelweave.bench.comparing.comparison import Comparison, Row, compare, latest, mean_intervals
from labelweave.bench.comparing.comparison_tables import (
    figure_tables,
    gap_lines,
    heading_lines,
    to_csv,
    to_markdown,
)
from labelweave.bench.comparing.method_ranks import draw_diagram, rank_methods, rank_together
from labelweave.bench.comparing.published import Figure
from labelweave.bench.running.plan import Quick, all_cells
from labelweave.bench.suite import DataEntry, MethodEntry, load_suite
from labelweave.metrics.significance import average_ranks, friedman_test, wilcoxon_holm

PUBLISHED = (Figure("Paper", "1", "one", "all", "BR", "f1_micro", 0.75, 0.02),)


@pytest.fixture
def measured(suite):
    """A suite of three seeds with made-up scores; BR is better, and honest scores are lower."""
    data = tuple(replace(one, published=one.name) for one in suite.data)
    methods = tuple(replace(one, line=one.name) for one in suite.methods)
    place = {"paper": "Paper", "table": "1", "setting": "all"}
    suite = replace(suite, seeds=(0, 1, 2), data=data, methods=methods, **place)
    records = []
    for cell in all_cells(suite):
        base = 0.7 if cell.method == "br" else 0.6
        value = base + 0.01 * cell.seed + 0.1 * (cell.protocol.name == "as-published")
        records.append(make_record(cell, {"f1_micro": value, "map": value / 2}))
    return suite, records


def rows_by_place(comparison):
    return {(r.dataset, r.method, r.metric, r.protocol): r for r in comparison.rows}


# -- figures ---------------------------------------------------------------------------------


def test_mean_spread_and_published_figure_of_each_cell(measured):
    suite, records = measured
    rows = rows_by_place(compare(records, suite, PUBLISHED))
    assert len(rows) == 2 * 2 * 2 * 2
    honest = rows[("one", "BR", "f1_micro", "honest")]
    assert honest.mean == pytest.approx(0.71)
    assert honest.std == pytest.approx(0.01)
    assert honest.seeds == (0, 1, 2)
    assert 0.70 <= honest.low < honest.mean < honest.high <= 0.72
    assert (honest.published, honest.published_std) == (0.75, 0.02)
    assert rows[("two", "BR", "f1_micro", "honest")].published is None


def test_two_protocols_stay_two_columns(measured):
    suite, records = measured
    comparison = compare(records, suite, ())
    rows = rows_by_place(comparison)
    for method in ("BR", "MLkNN"):
        honest, published = (
            rows[("one", method, "f1_micro", name)] for name in ("honest", "as-published")
        )
        assert published.mean - honest.mean == pytest.approx(0.1)
    assert figure_tables(comparison)[0].columns == ["data", "method", "honest", "as-published"]
    assert {(r.metric, r.protocol) for r in comparison.rankings} == {
        (metric, protocol)
        for metric in ("f1_micro", "map", "all metrics together")
        for protocol in ("honest", "as-published")
    }


def test_the_newest_record_of_a_cell_counts_and_mixtures_are_told(measured):
    suite, records = measured
    newer = {
        **records[0],
        "cell": "another",
        "scores": {"f1_micro": 0.1, "map": 0.1},
        "finished": "2026-06-01T00:00:00+00:00",
        "code_version": "newer",
    }
    comparison = compare([newer, *records], suite, ())
    row = rows_by_place(comparison)[("one", "BR", "f1_micro", "honest")]
    assert row.values == pytest.approx((0.1, 0.71, 0.72))
    assert comparison.n_old == 2  # the other two seeds
    assert any("run the suite again" in line for line in gap_lines(comparison))
    failed = {**newer, "error": {"type": "E", "message": "m", "trace": ""}, "scores": {}}
    kept, _ = latest([records[0], failed])
    assert kept == [records[0]]  # a later failure does not hide a score


def test_failures_and_records_of_other_suites(measured):
    suite, records = measured
    error = {"type": "ValueError", "message": "too bad", "trace": ""}
    records = [{**records[0], "error": error, "scores": {}}, *records[1:]]
    strange = {**records[1], "identity": "of another suite"}
    comparison = compare([*records, strange], suite, ())
    row = rows_by_place(comparison)[("one", "BR", "f1_micro", "honest")]
    assert (row.n_failed, len(row.values)) == (1, 2)
    assert "ValueError: too bad" in comparison.failures[0][1]
    assert "1 failed" in figure_tables(comparison)[0].rows[0][2]


def test_more_seeds_than_the_suite_names_count_too(measured):
    suite, records = measured
    fewer = replace(suite, seeds=(0,))
    assert (
        len(rows_by_place(compare(records, fewer, ()))[("one", "BR", "map", "honest")].seeds) == 3
    )


def test_a_smoke_run_is_marked(measured):
    suite, _ = measured
    records = [make_record(cell, {"f1_micro": 0.5}) for cell in all_cells(suite, quick=Quick())]
    comparison = compare(records, suite, ())
    assert comparison.is_quick
    assert any("SMOKE RUN" in line for line in heading_lines(comparison))


def test_methods_that_share_their_cells_share_their_figures(measured):
    suite, records = measured
    twin = MethodEntry("BR again", "br")
    rows = rows_by_place(compare(records, replace(suite, methods=(*suite.methods, twin)), ()))
    assert (
        rows[("one", "BR again", "map", "honest")].values
        == rows[("one", "BR", "map", "honest")].values
    )


# -- bootstrap -------------------------------------------------------------------------------


def slow_interval(values, n_draws, seed, level=0.95):
    """Draw each sample by itself and average it."""
    rng = np.random.default_rng(seed)
    means = [np.mean(rng.choice(values, len(values))) for _ in range(n_draws)]
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2])


@pytest.mark.parametrize("n", [3, 5, 20])
def test_intervals_equal_those_drawn_one_by_one(n):
    values = np.random.default_rng(n).normal(0.7, 0.05, n)
    (quick,) = mean_intervals([values], n_draws=20_000)
    slow = slow_interval(values, 20_000, seed=1)
    spread = values.std() / np.sqrt(n)
    assert quick == pytest.approx(slow, abs=0.1 * spread)


def test_intervals_of_samples_of_all_lengths_come_in_order():
    samples = [[0.5], [0.1, 0.3], [], [0.2, 0.4, 0.9], [0.6, 0.6]]
    intervals = mean_intervals(samples)
    assert [one is None for one in intervals] == [True, False, True, False, False]
    assert intervals[4] == (0.6, 0.6)
    assert intervals == [mean_intervals([sample])[0] for sample in samples]


def test_intervals_cover_the_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    samples = rng.normal(0.0, 1.0, (400, 30))
    covered = np.mean([low <= 0 <= high for low, high in mean_intervals(samples)])
    assert 0.9 <= covered <= 0.98


# -- ranks -----------------------------------------------------------------------------------


def some_means(n_data=8, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.random((n_data, 3)) * 0.1 + [0.9, 0.6, 0.3]
    names = ("best", "good", "bad")
    return {
        (f"d{i}", name): table[i, j] for i in range(n_data) for j, name in enumerate(names)
    }, table


def test_ranks_and_tests_are_those_of_the_metrics_package():
    means, table = some_means()
    ranking = rank_methods("map", "honest", means)
    assert list(ranking.average_ranks.values()) == average_ranks(table).tolist()
    assert ranking.friedman == friedman_test(table)
    assert [p["p_holm"] for p in ranking.pairs] == wilcoxon_holm(table)["p_holm"].tolist()
    assert ranking.groups == [["best", "good"], ["good", "bad"]]
    losses = rank_methods("hamming_loss", "honest", means)
    assert list(losses.average_ranks) == ["bad", "good", "best"]


def test_methods_are_compared_where_all_have_scores():
    means, _ = some_means(4)
    del means[("d2", "good")]
    means[("d0", "newcomer")] = 0.5
    ranking = rank_methods("map", "honest", means)
    assert list(ranking.average_ranks) == ["best", "good", "bad"]
    assert ranking.datasets == ("d0", "d1", "d3")
    assert set(ranking.left_out) == {"d2", "newcomer"}


def test_too_little_for_a_test():
    means, _ = some_means(1)
    ranking = rank_methods("map", "honest", means)
    assert ranking.friedman is None
    assert ranking.critical_difference is None
    assert rank_methods("map", "honest", {("d", "only"): 0.5}) is None


def test_a_diagram_puts_the_best_to_the_left_and_joins_equals():
    means, _ = some_means()
    lines = draw_diagram(rank_methods("map", "honest", means), width=50)
    where = {
        name: line.index(name) for name in ("best", "good", "bad") for line in lines if name in line
    }
    assert where["best"] < where["good"] < where["bad"]
    assert sum(set(line.strip()) == {"="} for line in lines) == 2
    assert all(len(line) <= 50 for line in lines)


# -- tables ----------------------------------------------------------------------------------


def test_csv_and_markdown_hold_every_figure(measured):
    suite, records = measured
    comparison = compare(records, suite, PUBLISHED)
    rows = list(csv.DictReader(io.StringIO(to_csv(comparison))))
    assert len(rows) == len(comparison.rows)
    assert float(rows[0]["mean"]) == comparison.rows[0].mean
    assert rows[0]["seeds"] == "0 1 2"
    text = to_markdown(comparison)
    assert "| one | BR | 0.7100 ± 0.0100" in text
    assert "| 0.75 ± 0.02 |" in text
    assert "critical difference" in text


def test_data_without_a_measured_figure_are_gaps_not_rows(measured):
    suite, records = measured
    gone = DataEntry("faraway", published="faraway", external="pictures")
    suite = replace(suite, data=(*suite.data, gone))
    published = (Figure("Paper", "1", "faraway", "all", "BR", "f1_micro", 0.9, None),)
    comparison = compare(records, suite, published)
    assert not any("faraway" in row for table in figure_tables(comparison) for row in table.rows)
    assert any("data faraway (pictures" in line for line in gap_lines(comparison))


def test_a_stand_in_says_so(measured):
    suite, records = measured
    comparison = compare(records, replace(suite, stand_in="paper-1"), PUBLISHED)
    assert any("STAND-IN for paper-1" in line for line in heading_lines(comparison))
    assert all(row.published is None for row in comparison.rows)


# -- grids and ranks over all metrics ------------------------------------------------------


def grid_comparison(n_data, n_methods, holes=()):
    """Figures m + d / 10 of method m on data d, and their negatives as a loss."""
    suite = replace(
        load_suite("vectors"),
        data=tuple(DataEntry(f"d{d}") for d in range(n_data)),
        methods=tuple(MethodEntry(f"m{m}", "br", settings={"C": m}) for m in range(n_methods)),
        metrics=("map", "hamming_loss"),
    )
    rows = []
    for d in range(n_data):
        for m in range(n_methods):
            for metric, value in (("map", m + d / 10), ("hamming_loss", -m - d / 10)):
                is_hole = (d, m) in holes
                row = Row(
                    dataset=f"d{d}",
                    scenario="",
                    method=f"m{m}",
                    metric=metric,
                    protocol="honest",
                    values=() if is_hole else (value, value),
                    seeds=() if is_hole else (0, 1),
                    n_seeds=0 if is_hole else 2,
                    n_failed=0,
                    published=None,
                    published_std=None,
                    mean=None if is_hole else value,
                    std=None if is_hole else 0.0,
                    low=None if is_hole else value,
                    high=None if is_hole else value,
                )
                rows.append(row)
    return Comparison(suite, tuple(rows), (), (), ())


def test_many_methods_on_many_data_stand_in_grids():
    comparison = grid_comparison(7, 4, holes={(6, 0)})
    first, second, *loss = figure_tables(comparison)
    assert len(loss) == 2
    assert first.columns == ["method", "d0", "d1", "d2", "d3", "d4"]
    assert second.columns == ["method", "d5", "d6"]
    assert [row[0] for row in first.rows] == ["m0", "m1", "m2", "m3"]
    assert first.rows[3][1] == "3.000 ± 0.000 n=2 *"  # the best; two of three seeds
    assert first.rows[0][1] == "0.000 ± 0.000 n=2"
    assert second.rows[0][2] == "-"
    assert loss[0].rows[3][1].endswith("*")  # a loss is best where it is lowest


def test_few_methods_or_data_are_listed():
    assert figure_tables(grid_comparison(3, 4))[0].columns == ["data", "method", "honest"]


def test_ranks_over_all_metrics_count_a_data_set_once():
    rng = np.random.default_rng(0)
    tables = {
        metric: {(f"d{d}", f"m{m}"): float(rng.random()) for d in range(6) for m in range(4)}
        for metric in ("map", "f1_micro", "hamming_loss")
    }
    expected = []
    for d in range(6):
        per_metric = []
        for metric, table in tables.items():
            sign = 1 if metric == "hamming_loss" else -1
            per_metric.append(rankdata([sign * table[f"d{d}", f"m{m}"] for m in range(4)]))
        expected.append(rankdata(np.mean(per_metric, axis=0)))
    ranking = rank_together("honest", tables)
    for m, rank in enumerate(np.mean(expected, axis=0)):
        assert ranking.average_ranks[f"m{m}"] == pytest.approx(rank)
    assert rank_together("honest", {"map": {("d0", "m0"): 1.0}, "f1_micro": {}}) is None
    del tables["map"]["d2", "m1"]  # a data set that lacks a score in one metric
    ranking = rank_together("honest", tables)
    assert ranking.left_out == ("d2",)
    assert len(ranking.datasets) == 5
