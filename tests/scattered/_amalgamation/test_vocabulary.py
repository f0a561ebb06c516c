"""The common vocabulary of several teachers."""

import numpy as np
import pytest

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.vocabulary import join_vocabularies


def test_union_shared_and_orphans():
    vocabulary = join_vocabularies([["car", "tree"], ["street", "car"]])
    assert vocabulary.names == ("car", "street", "tree")
    assert vocabulary.shared == ("car",)
    assert vocabulary.orphans == ("street", "tree")
    assert [columns.tolist() for columns in vocabulary.columns] == [[0, 2], [1, 0]]
    assert vocabulary.to_frame(["a", "b"])["teachers"].tolist() == ["a, b", "b", "a"]


def test_case_is_ignored_unless_asked_otherwise():
    assert join_vocabularies([["Car"], ["car"], ["CAR", "x"]]).names == ("car", "x")
    assert join_vocabularies([["Car"], ["car"], ["car"]]).names == ("car",)  # the commonest
    assert join_vocabularies([[" Big  Car "], ["tree"]]).names == ("Big Car", "tree")
    assert join_vocabularies([["  Car"], ["Car "], ["car"]]).names == ("Car",)  # blanks aside
    assert join_vocabularies([["Car"], ["car"]], match="exact").names == ("Car", "car")
    assert join_vocabularies([[" big  car"], ["big car"]], match="exact").shared != ()


def test_aliases_join_and_name():
    vocabulary = join_vocabularies(
        [["automobile", "tree"], ["auto"], ["Car"]], aliases={"automobile": "car", "auto": "car"}
    )
    assert vocabulary.names == ("car", "tree")
    assert vocabulary.spellings[0] == ("Car", "auto", "automobile")
    assert vocabulary.places(["auto", "tree", "sea"]) == [0, 1, None]


@pytest.mark.parametrize(
    ("labels", "options", "said"),
    [
        ([["Car", "car"], ["x"]], {}, "teacher 'A' has the labels 'Car' and 'car'"),
        ([["a", "b"], ["x"]], {"aliases": {"b": "a"}}, "'a' and 'b', which join to one"),
        ([["car"], ["x"]], {"aliases": {"caar": "x"}}, "no teacher has .*'caar'.*mean 'car'"),
        ([["a", "b"], ["x"]], {"aliases": {"a": "b", "b": "x"}}, "which is itself renamed"),
        ([["a"], ["x"]], {"match": "fuzzy"}, "match must be"),
    ],
)
def test_clashes_are_refused(labels, options, said):
    with pytest.raises(InputError, match=said):
        join_vocabularies(labels, names=["A", "B"], **options)


def test_no_order_matters():
    labels = [["b", "A", "c"], ["c", "d"], ["a", "e", "D"]]
    vocabulary = join_vocabularies(labels)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        teachers = rng.permutation(3)
        mixed = [rng.permutation(labels[t]).tolist() for t in teachers]
        other = join_vocabularies(mixed)
        assert other.names == vocabulary.names
        for t, ordered, columns in zip(teachers, mixed, other.columns, strict=True):
            place = dict(zip(labels[t], vocabulary.columns[t], strict=True))
            assert columns.tolist() == [place[label] for label in ordered]


def test_near_misses_are_pointed_out():
    vocabulary = join_vocabularies([["mountain", "sea"], ["mountains", "sun"]])
    assert vocabulary.near_misses() == [("mountain", "mountains")]
