"""Stored results: single cells and aggregated figures are read alike."""

import json
from pathlib import Path

import pytest

from labelweave.bench.comparing.comparison_tables import figure_tables
from labelweave.bench.comparing.stored_results import read_stored
from labelweave.exceptions import DataFileError

FOLDER = Path(__file__).parents[3] / "benchmarks" / "results"
HEADER = {
    "labelweave": "bench figures",
    "schema": 1,
    "suite": "mulsupcon-2",
    "date": "2026-01-02",
    "cells": 4,
    "hardware": "a machine",
    "versions": "python 3",
}
FIGURES = ["scene", "", "MulSupCon", "honest", {"f1_example": [3, 0.79, 0.01, 0.78, 0.8]}]
ONE_SEED = ["yeast", "", "MulSupCon", "honest", {"f1_example": [1, 0.65]}]
RANKING = {
    "ranking": {
        "metric": "f1_example",
        "protocol": "honest",
        "average_ranks": {"MulSupCon": 1.25, "C-GMVAE": 1.75},
        "critical_difference": 1.39,
        "different": [["MulSupCon", "C-GMVAE", 0.01]],
    }
}


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_figures_stand_beside_the_published_ones(tmp_path):
    stored = read_stored(write(tmp_path / "a.jsonl", HEADER, FIGURES, ONE_SEED, RANKING))
    assert (stored.name, stored.n_cells, stored.date) == ("a", 4, "2026-01-02")
    rows = {row.dataset: row for row in stored.comparison.rows if row.mean is not None}
    scene, yeast = rows["scene"], rows["yeast"]
    assert (scene.n_seeds, scene.mean, scene.std, scene.low) == (3, 0.79, 0.01, 0.78)
    assert scene.published == pytest.approx(0.787)
    assert (yeast.n_seeds, yeast.std, yeast.low) == (1, 0.0, None)
    table = figure_tables(stored.comparison)[0]
    assert "0.7900 ± 0.0100 [0.7800, 0.8000] n=3" in [cell for row in table.rows for cell in row]
    (ranking,) = stored.comparison.rankings
    assert ranking.datasets == ("yeast", "scene") or ranking.datasets == ("scene", "yeast")
    assert ranking.groups == [["MulSupCon", "C-GMVAE"]]
    assert ranking.pairs[0]["different"]


@pytest.mark.parametrize("line", ["[1, 2]", "{}", "no JSON"])
def test_a_bad_line_of_figures_is_named(tmp_path, line):
    path = write(tmp_path / "a.jsonl", HEADER, FIGURES)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DataFileError) as error:
        read_stored(path)
    assert error.value.line == 3


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_stored_file_has_figures_of_its_suite(path):
    stored = read_stored(path)
    scored = [row for row in stored.comparison.rows if row.mean is not None]
    assert stored.name.startswith(stored.comparison.suite.name)
    assert scored
    assert stored.n_cells <= sum(row.n_seeds for row in scored)
