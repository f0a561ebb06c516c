"""Parts of a suite, as `labelweave bench run --only` names them."""

import pytest

from labelweave.bench.suite import load_suite
from labelweave.bench.suite_selection import select, with_settings
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
    assert methods("em*") == ["EM + APL", "em-forest"]


def test_sorts_narrow_down_and_patterns_of_a_sort_add_up():
    part = select(load_suite("cls-2-stand-in"), ["yeast", "scene", "single label", "wan"])
    assert sorted(data.name for data in part.data) == ["scene", "yeast"]
    assert [scenario.name for scenario in part.scenarios] == ["single label"]
    assert [method.name for method in part.methods] == ["WAN"]


def test_what_names_nothing_is_an_error():
    with pytest.raises(InputError, match="'nothing'"):
        methods("nothing")


def settings(*texts, suite="cls-2-images"):
    return {one.name: one.settings for one in with_settings(load_suite(suite), texts).methods}


def test_a_setting_goes_to_every_method_that_has_the_parameter():
    before = settings()
    after = settings("base__encoder__weights=none", "ASL:lr=5e-4")
    with_base = [name for name in before if "base__lr" in before[name]]
    assert len(with_base) > 1
    for name in before:
        more = {"base__encoder__weights": None} if name in with_base else {}
        more |= {"lr": 5e-4} if name == "ASL" else {}
        assert after[name] == {**before[name], **more}


def test_a_setting_reaches_the_source_of_a_transfer():
    suite = with_settings(load_suite("mulsupcon-7-images"), ["encoder__width=8"])
    for method in suite.methods:
        assert method.settings["encoder__width"] == 8
        assert method.options["source_settings"]["encoder__width"] == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour=red", "no method with the parameter 'colour'"),
        ("Nobody:lr=1", "no method 'Nobody'"),
        ("ASL:colour=red", "no parameter of .* called 'colour'"),
        ("lr", "takes name=value"),
    ],
)
def test_a_setting_that_fits_nothing_is_an_error(text, message):
    with pytest.raises(InputError, match=message):
        settings(text)
