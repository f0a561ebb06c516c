"""Plots: well-formed, the same for the same numbers, and not in need of colours."""

import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from labelweave.labels import as_labels
from labelweave.plotting import line_style
from labelweave.reporting.heat_maps import HeatMap, draw_heat_maps
from labelweave.reporting.model_sections.label_scores import draw_label_scores
from labelweave.reporting.model_sections.learning_curves import (
    draw_learning_curves,
    history_panels,
)
from labelweave.reporting.model_sections.probability_curves import (
    draw_precision_recall,
    draw_reliability,
    precision_recall,
    reliability,
)
from labelweave.reporting.model_sections.threshold_effect import (
    draw_threshold_effects,
    threshold_effect,
)
from labelweave.reporting.run_sections.average_ranks import draw_critical_difference
from labelweave.reporting.run_sections.method_curves import CurvePanel, draw_method_curves
from labelweave.reporting.run_sections.time_and_memory import draw_costs

NAMES = ["<b>", "$x^2$ & y", "\u6d77", "a very long name that has no room on an axis"]
RNG = np.random.default_rng(0)
Y = as_labels((RNG.random((50, 4)) < 0.4).astype(float), names=NAMES)
P = RNG.random((50, 4))
HEAT = {"rows": "r", "columns": "c", "unit": "u"}
EPOCHS = np.arange(1, 6)


def curves():
    return {name: precision_recall(Y[:, [j]], P[:, [j]]) for j, name in enumerate(NAMES)}


def history():
    columns = {"epoch": [1, 2, 3], "loss": [900.0, 5.0, 1.0], "val_loss": [7.0, 5.0, 4.0]}
    return history_panels(columns | {"kl": [1.0, 2.0, 3.0], "val_map": [0.1, 0.2, 0.3]})


MANY = 60
PLOTS = {
    "heat": lambda: draw_heat_maps("n", [HeatMap("t", P[:4])], NAMES, **HEAT),
    "two heats": lambda: draw_heat_maps(
        "n", [HeatMap("t", P[:4]), HeatMap("t", P[4:8])], NAMES, **HEAT
    ),
    "empty heat": lambda: draw_heat_maps(
        "n", [HeatMap("t", np.full((2, 2), np.nan))], NAMES[:2], **HEAT
    ),
    "many labels": lambda: draw_heat_maps(
        "n",
        [HeatMap("a", np.eye(25)), HeatMap("b", np.eye(25))],
        [f"l{j}" for j in range(25)],
        **HEAT,
    ),
    "learning": lambda: draw_learning_curves("n", history(), best=2, stage_starts=[3]),
    "reliability": lambda: draw_reliability("n", reliability(Y, P)),
    "one bin": lambda: draw_reliability("n", reliability(Y, np.full((50, 4), 0.01))),
    "precision": lambda: draw_precision_recall("n", curves(), together=NAMES[0]),
    "threshold": lambda: draw_threshold_effects(
        "n", [("a", threshold_effect(Y, P))] * 2, threshold=0.4
    ),
    "no threshold": lambda: draw_threshold_effects(
        "n", [("a", threshold_effect(Y, P))], threshold=None
    ),
    "labels": lambda: draw_label_scores(
        "n", np.arange(4), {"F1": P[0], "AP": np.full(4, np.nan)}, NAMES, axis_title="x"
    ),
    "labels, none defined": lambda: draw_label_scores(
        "n", np.zeros(1), {"F1": np.array([np.nan])}, NAMES[:1], axis_title="x"
    ),
    "points": lambda: draw_label_scores(
        "n", np.arange(MANY), {"F1": RNG.random(MANY)}, [""] * MANY, axis_title="x"
    ),
    "ranks": lambda: draw_critical_difference(
        "n", {"a": 1.0, "<b>": 2.5, "c": 2.5}, [["<b>", "c"]], 1.2
    ),
    "two ranks": lambda: draw_critical_difference("n", {"a": 1.5, "b": 1.5}, [["a", "b"]], 9.0),
    "cost": lambda: draw_costs("n", {"s": {"a": [1, np.nan], "b": [500.0, 2]}}, ["d", "e"]),
    "methods": lambda: draw_method_curves(
        "n", [CurvePanel("t", {"<b>": [(EPOCHS, EPOCHS), (EPOCHS, EPOCHS)]}, {"<b>": 0})] * 3
    ),
}


@pytest.mark.parametrize("name", PLOTS)
def test_plot_is_valid_and_raises_no_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = PLOTS[name]()
    ElementTree.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', svg)
    wanted = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    assert set(ids) == wanted
    assert len(ids) == len(set(ids))
    assert "<b>" not in svg
    assert len(svg) < 300_000


@pytest.mark.parametrize("name", ["two heats", "learning", "ranks"])
def test_the_same_numbers_give_the_same_bytes(name):
    assert PLOTS[name]() == PLOTS[name]()


def test_names_are_texts_and_no_formulas():
    svg = PLOTS["heat"]()
    texts = {"".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter()}
    assert {"<b>", "$x^2$ & y", "\u6d77", "a very long name that\u2026"} <= texts


def test_lines_differ_by_more_than_colour():
    assert len({(line_style(k).linestyle, line_style(k).marker) for k in range(7)}) == 7
    assert len({line_style(k) for k in range(49)}) == 49


def test_no_global_setting_is_left_behind():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    PLOTS["learning"]()
    assert dict(mpl.rcParams) == before
