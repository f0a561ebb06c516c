"""Hierarchies of labels: completed labels and consistent predictions, against slow loops."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.exceptions import DataFileError, InputError
from labelweave.labels import LabelMatrix

NAMES = ["cat", "dog", "animal", "thing", "oak", "plant"]
# "pet" is no label of the data: what is above it still is above "cat" and "dog".
BROADER = {
    "cat": ["pet"],
    "dog": ["pet"],
    "pet": ["animal"],
    "animal": ["thing"],
    "plant": ["thing"],
    "oak": ["plant"],
}
ABOVE = {
    "cat": {"animal", "thing"},
    "dog": {"animal", "thing"},
    "animal": {"thing"},
    "thing": set(),
    "oak": {"plant", "thing"},
    "plant": {"thing"},
}
HIERARCHY = lw.LabelHierarchy(BROADER)


def completed(values):
    """What follows from each known entry, one rule at a time."""
    values = values.copy()
    has_unknown = np.isnan(values).any()
    for row in values:
        before = row.copy()
        for i, name in enumerate(NAMES):
            for j, other in enumerate(NAMES):
                if before[i] == 1 and other in ABOVE[name]:
                    row[j] = 1
                if has_unknown and before[i] == 0 and name in ABOVE[other]:
                    row[j] = 0
    return values


def random_labels(seed, unknown):
    """Random label sets that agree with the hierarchy, and some entries made unknown."""
    random = np.random.RandomState(seed)
    values = completed((random.rand(40, len(NAMES)) < 0.15).astype(np.float32))
    values[random.rand(*values.shape) < unknown] = np.nan
    return values


@pytest.mark.parametrize("unknown", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_complete_is_what_a_loop_over_rows_and_pairs_gives(seed, unknown):
    values = random_labels(seed, unknown)
    expected = completed(values)
    dense = lw.as_labels(values, names=NAMES)
    rows, columns = np.nonzero(values != 0)  # NaN is stored
    zeros_unstored = LabelMatrix(sp.csr_array(values), NAMES)
    rows, columns = np.nonzero(~np.isnan(values))
    stored = sp.csr_array((values[rows, columns], (rows, columns)), shape=values.shape)
    unknown_unstored = LabelMatrix(stored, NAMES, absent=np.nan)
    for labels in (dense, zeros_unstored, unknown_unstored):
        result = HIERARCHY.complete(labels)
        assert result.is_sparse == labels.is_sparse
        np.testing.assert_array_equal(result.to_numpy(), expected)
    assert unknown == 0 or np.isnan(expected).sum() < np.isnan(values).sum()


def test_complete_adds_broader_labels_to_lists_of_names():
    labels = lw.as_labels([["cat"], ["oak", "dog"], []], names=NAMES)
    assert HIERARCHY.complete(labels).to_lists() == [
        ["cat", "animal", "thing"],
        ["dog", "animal", "thing", "oak", "plant"],
        [],
    ]


@pytest.mark.parametrize(
    "form", [np.array, lambda values: LabelMatrix(sp.csr_array(values), NAMES)]
)
def test_a_positive_label_below_a_checked_negative_one_is_refused(form):
    values = np.zeros((3, len(NAMES)), dtype=np.float32)
    values[0, 1] = np.nan  # some entry is unknown: zeros are checked
    values[2, 0] = values[2, 2] = 1  # a cat, an animal, but no thing
    with pytest.raises(
        InputError, match=r"row 2 has the label '(cat|animal)' .* 'thing', which is 0"
    ):
        HIERARCHY.complete(lw.as_labels(form(values), names=NAMES))


def test_consistent_probabilities_are_the_highest_below():
    random = np.random.RandomState(0)
    probabilities = random.rand(30, len(NAMES))
    expected = probabilities.copy()
    for i, name in enumerate(NAMES):
        for above in ABOVE[name]:
            j = NAMES.index(above)
            expected[:, j] = np.maximum(expected[:, j], probabilities[:, i])
    np.testing.assert_array_equal(HIERARCHY.consistent(probabilities, NAMES), expected)
    top = sp.csr_array(np.where(probabilities > 0.7, probabilities, 0))
    dense = HIERARCHY.consistent(top.toarray(), NAMES)
    np.testing.assert_array_equal(HIERARCHY.consistent(top, NAMES).toarray(), dense)


def test_hierarchical_scores_count_the_broader_labels_too():
    """Predicted cat, true dog: animal and thing are right, dog is missed and cat is wrong."""
    scores = HIERARCHY.scores(
        lw.as_labels([["dog"], ["oak"]], names=NAMES), lw.as_labels([["cat"], []], names=NAMES)
    )
    assert scores["hierarchical_precision"] == pytest.approx(2 / 3)
    assert scores["hierarchical_recall"] == pytest.approx(2 / 6)
    assert scores["hierarchical_f1"] == pytest.approx(2 * 2 / (3 + 6))


def test_a_circle_is_refused():
    with pytest.raises(InputError, match="in a circle: b < c < b"):
        lw.LabelHierarchy({"a": ["b"], "b": ["c"], "c": ["b"]})


def test_a_long_chain_needs_no_deep_recursion():
    n = 5000
    chain = lw.LabelHierarchy({str(i): [str(i + 1)] for i in range(n)})
    assert chain.ancestors(["0", str(n)]).toarray().tolist() == [[False, True], [False, False]]


FILES = {
    "labels.csv": "label,broader\ncat,animal|pet\nanimal,\npet,\n",
    "labels.jsonl": '{"label":"cat","broader":["animal","pet"]}\n"animal"\n"pet"\n',
    "labels.json": '[{"label":"cat","broader":["animal","pet"]},{"label":"animal"},"pet"]',
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_labels_names_the_broader_ones(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    assert lw.LabelHierarchy.read(tmp_path / name).broader == {"cat": ("animal", "pet")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label\ncat\n", "no label has the column or key 'broader'"),
        ("label,broader\ncat,animal\n", "labels.csv, line 2: the broader label 'animal' of 'cat'"),
    ],
)
def test_a_file_without_a_hierarchy_is_refused(tmp_path, text, message):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataFileError, match=message):
        lw.LabelHierarchy.read(tmp_path / "labels.csv")
