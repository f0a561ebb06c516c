"""Parts of a suite, as `labelweave bench run --only` names them."""

import pytest

from labelweave.bench.suite import load_suite
from labelweave.bench.suite_selection import select
from labelweave.exceptions import InputError


def methods(*only):
    return [method.name for method in select(load_suite("cls-2-stand-in"), only).methods]


def test_a_name_means_that_line_alone_whatever_ids_others_have():
    assert methods("CLS") == ["CLS"]
    assert methods("cls") == ["CLS"]


def test_an_id_that_is_no_name_means_every_line_of_the_method():
    lines = [entry for entry in load_suite("cls-2-stand-in").methods if entry.id == "an"]
    assert len(lines) > 1
    assert methods("an") == [entry.name for entry in lines]


def test_wildcards_take_all_that_fit():
    assert methods("cls*") == ["CLS", "CLS, entries left out"]


def test_sorts_narrow_down_and_patterns_of_a_sort_add_up():
    part = select(load_suite("cls-2-stand-in"), ["yeast", "scene", "single label", "wan"])
    assert sorted(data.name for data in part.data) == ["scene", "yeast"]
    assert [scenario.name for scenario in part.scenarios] == ["single label"]
    assert [method.name for method in part.methods] == ["WAN"]


def test_what_names_nothing_is_an_error():
    with pytest.raises(InputError, match="'nothing'"):
        methods("nothing")
