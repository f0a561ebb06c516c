"""What the labels depend on, in the report on a model."""

import re

import numpy as np
import pandas as pd

import labelweave as lw
from labelweave.data import Dataset
from labelweave.reporting.evaluated_model import evaluate_model
from labelweave.reporting.heat_maps import draw_importance
from labelweave.reporting.model_sections.important_columns import important_columns_section
from labelweave.reporting.report_content import Figure, Paragraph, Table


def tables_of(section):
    return [block for block in section.blocks if isinstance(block, Table)]


def shapes(n_rows=120, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"size": random.normal(size=n_rows), "colour": random.choice(["red", "blue"], n_rows)}
    )
    Y = np.column_stack([frame["size"] > 0, frame["colour"] == "red"]).astype(float)
    return Dataset(frame, lw.as_labels(Y, names=["large", "red"]), name="shapes")


def test_columns_of_a_mixed_table():
    train, rows = shapes(), shapes(seed=1)
    model = lw.BoostedTrees(random_state=0).fit(train.X, train.Y)
    section = important_columns_section(evaluate_model(model, rows), 30)
    measured, stated = tables_of(section)
    for table in (measured, stated):
        best = {row[0]: row[-1].split()[0] for row in table.rows}
        assert best == {"large": "size", "red": "colour"}
    assert "gains of splits" in stated.caption
    (figure,) = [block for block in section.blocks if isinstance(block, Figure)]
    assert ">colour<" in figure.svg
    assert ">large<" in figure.svg
    assert re.search(r"the largest is 0\.\d+, of (size for large|colour for red)\.", figure.alt)
    text = section.blocks[0].text
    assert text.startswith("2 columns, measured on 120 of 120 rows")


def test_only_the_most_frequent_labels_and_a_limited_number_of_columns():
    X = np.random.default_rng(0).random((400, 70))
    Y = lw.as_labels((X[:, :4] > [0.2, 0.4, 0.9, 0.95]).astype(float), names=list("abcd"))
    model = lw.BinaryRelevance().fit(X, Y)
    section = important_columns_section(evaluate_model(model, (X, Y)), 2)
    assert [row[0] for row in tables_of(section)[0].rows] == ["a", "b"]
    assert "50 columns (the other 20 " in section.blocks[0].text
    assert "measured on 133 of 400 rows" in section.blocks[0].text


def test_words():
    texts = ["warm sea", "cold sea", "warm town", "cold town"] * 10
    labels = lw.as_labels([["sea", "warm"], ["sea"], ["warm"], []] * 10)
    model = lw.TextClassifier().fit(texts, labels)
    section = important_columns_section(evaluate_model(model, (texts, labels)), 30)
    assert "each word in turn is left out of the texts" in section.blocks[0].text
    stated = tables_of(section)[1]
    assert set(re.findall(r"[a-z]+", dict(stated.rows)["sea"])) >= {"sea", "town"}


def test_images_have_no_columns():
    rows = Dataset(np.zeros((4, 2, 2, 3), dtype=np.uint8), [["a"], [], ["a"], []])
    section = important_columns_section(evaluate_model(None, rows), 30)
    assert section.blocks == [Paragraph("The importance of pixels is not measured.")]


def test_a_label_without_a_score_stays_empty():
    svg = draw_importance("x", np.array([[0.2, 0.1], [np.nan, np.nan]]), ["a", "b"], ["c", "d"], "")
    assert "0.20" in svg
    assert "nan" not in svg.lower()
    assert "<svg" in draw_importance("x", np.full((1, 1), np.nan), ["a"], ["c"], "column")
