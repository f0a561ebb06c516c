"""The report on a model of many labels, from the best labels of each row."""

import re

import numpy as np
import pytest

import labelweave as lw
from labelweave import top_labels
from labelweave.data import Dataset


@pytest.fixture
def many(monkeypatch):
    """Sixty labels, each with a word; the model was not trained on the rows of the report."""
    monkeypatch.setattr(top_labels, "MANY_LABELS", 50)
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 60
    X = np.eye(60)[labels] + 0.01 * rng.random((240, 60))
    data = Dataset(X, lw.as_labels(np.eye(60)[labels]), name="words")
    return lw.LabelTree(1, max_leaves=4, random_state=0).fit(data.X[:180], data.Y[:180]), data[180:]


def test_labels_by_frequency_in_place_of_a_row_for_each(many, page):
    text = page(*many)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", text[text.index("Labels by their positives") :])
    # All sixty labels have one positive among the scored rows, and each is found.
    assert cells[7:14] == ["1-4", "60", "60", "1.0000", "1.0000", "1.0000", "1.0000"]
    assert "are left out" in text
    assert "Rows evenly spread over all" in text
    assert "Co-occurrence" not in text
