"""Reports on benchmark runs, from made-up records."""

import json
import re

import numpy as np
import pytest

from labelweave.bench.storing.store import Store
from labelweave.exceptions import InputError
from labelweave.reporting.report_content import Section, Table
from labelweave.reporting.run_report import run_report
from labelweave.reporting.run_sections.method_curves import (
    CurvePanel,
    best_and_last,
    curve_panels,
)


@pytest.fixture
def report(results, quick_plots):
    return run_report(results)


def section(report, title) -> Section:
    return next(part for part in report.sections if part.title == title)


def tables(part) -> list[Table]:
    return [block for block in part.blocks if isinstance(block, Table)]


def test_measured_and_published_side_by_side(report):
    table = next(t for t in tables(section(report, "Figures")) if "f1_micro" in t.caption)
    assert table.columns == ["data", "method", "honest", "as-published", "published"]
    row = next(row for row in table.rows if row[:2] == ["scene", "BR"])
    assert row[2].startswith(f"0.5050 ± {np.std([0.5, 0.51], ddof=1):.4f} [0.50")
    assert row[3].startswith("0.6050 ± ")
    assert row[4] == "0.706"  # of the paper, under neither of our protocols
    assert [table.is_number(column) for column in range(5)] == [False, False, True, True, True]


def test_the_best_is_marked_by_its_metrics_direction(report):
    for metric in ("f1_micro", "hamming_loss"):
        table = next(t for t in tables(section(report, "Figures")) if f"({metric}," in t.caption)
        best = {row[1] for row in table.rows if row[2].endswith(" *")}
        assert best == {"MLP"}, metric


def test_ranks_and_their_diagrams(report):
    part = section(report, "Ranks")
    ranks = {row[0]: row[1] for row in tables(part)[0].rows}
    assert ranks == {"MLP": 1.0, "MLkNN": 2.0, "BR": 3.0}
    names = [figure.name for figure in report.figures() if figure.name.startswith("ranks")]
    assert "ranks-two-f1-micro-honest" in names
    assert len(names) == 6  # two metrics and both together, two protocols


def test_what_is_missing_and_what_failed(report):
    gaps, failures = tables(section(report, "Missing and failed"))
    assert gaps.rows[0][:2] == ("method", "<b>bold</b>")
    assert "<u>too few</u>" in failures.rows[0][1]


def test_cells_that_are_not_finished_are_counted(results, page, quick_plots):
    assert "not finished" not in page(results)
    for name in ("cell-000", "cell-013"):
        (results / "cells" / f"{name}.json").unlink()
    assert "2 of 36 cells are not finished: emotions 1, scene 1." in page(results)


def test_cost_is_the_median_by_method(report, results):
    table = tables(section(report, "Time and memory"))[0]
    records = [r for r in Store(results).records() if not r["error"] and r["method"] == "br"]
    row = next(row for row in table.rows if row[0] == "BR")
    assert row[1] == len(records)
    assert row[2] == np.median([record["seconds"]["fit"] for record in records])
    assert row[6] == max(record["memory"]["peak"] for record in records)


def test_curves_of_scores_are_shared_and_of_losses_are_not(results):
    records = [r for r in Store(results).records() if r["history"] and r["dataset"] == "scene"]
    panels = curve_panels(records, ["MLP"])
    assert [panel.title for panel in panels] == ["test map", "MLP: loss"]
    epochs, values = panels[0].curves["MLP"][0]
    assert (epochs.tolist(), values.tolist()) == ([1], [0.1])  # None is no point
    assert list(panels[1].curves) == ["training", "validation"]


def test_best_and_last_values_are_means_over_seeds():
    epochs = np.array([1, 2, 3])
    seeds = [(epochs, np.array([0.2, 0.8, 0.5])), (epochs, np.array([0.6, 0.1, 0.3]))]
    losses = CurvePanel("MLP: loss", {"training": seeds}, {"training": 0})
    table = best_and_last("scene", [CurvePanel("test map", {"MLP": seeds}, {"MLP": 0}), losses])
    assert table.rows == [["test map", "MLP", pytest.approx(0.7), 1.5, pytest.approx(0.4)]]
    assert best_and_last("scene", [losses]) is None


def test_the_page(results, page):
    text = page(results)
    assert "<title>Bench: two</title>" in text
    assert "<u>too" not in text
    assert "<b>bold" not in text
    assert "&lt;u&gt;too few&lt;/u&gt;" in text
    assert "a&lt;i&gt;" in text
    assert not re.search(r"https?://", text)
    assert text == page(results)
    assert "Run facts" in text


def test_two_suites_in_one_folder(results, suite, page, quick_plots):
    from dataclasses import replace

    Store(results).write_suite(replace(suite, name="again", notes=("Repeated.",)))
    text = page(results)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {"again-figures", "two-figures"} <= set(ids)
    assert "Repeated." in text


def test_cells_that_all_failed(results, page, quick_plots):
    for path in (results / "cells").glob("*.json"):
        record = json.loads(path.read_text())
        record |= {"scores": {}, "error": {"type": "E", "message": "no", "trace": ""}}
        path.write_text(json.dumps(record))
    text = page(results)
    assert "36 cells failed" in text
    assert "Time and memory" not in text


def test_an_empty_folder_of_results(tmp_path, suite, page):
    store = Store(tmp_path / "empty")
    store.create()
    store.write_suite(suite)
    with pytest.raises(InputError, match="nothing to report"):
        page(store.folder)


def test_a_run_names_its_own_data(results, page):
    with pytest.raises(InputError, match="its own data"):
        page(results, data="scene")
