"""`--set`, TOML and the documentation of parameters."""

import tomllib

import pytest

from labelweave.exceptions import InputError
from labelweave.pipeline.parameters import (
    check_names,
    describe_parameters,
    example_setting,
    parse_settings,
    parse_value,
    to_toml,
)


class Documented:
    """A method.

    Parameters
    ----------
    k : int, default=10
        How many.

        Second paragraph.
    low, high : float, optional
        The two
        ends.
    **rest
        Left out.

    Attributes
    ----------
    k_ : int
        Not a parameter.
    """

    def __init__(self, k=10, low=0.1, high=None, *, plain=True):
        pass


class Derived(Documented):
    """Another.

    Parameters
    ----------
    k : {"a", "b"}, default="a"
        Overrides.
    """

    def __init__(self, k="a", low=1.0):
        pass


def test_parameters_come_from_signature_and_docstring():
    parameters = {p.name: p for p in describe_parameters(Documented)}
    assert list(parameters) == ["k", "low", "high", "plain"]
    assert (parameters["k"].default, parameters["k"].type) == (10, "int")
    assert parameters["k"].doc == "How many. Second paragraph."
    assert (parameters["low"].type, parameters["low"].doc) == ("float", "The two ends.")
    assert parameters["high"].doc == "The two ends."
    assert parameters["plain"].doc == ""


def test_a_subclass_documents_over_its_base():
    parameters = {p.name: p for p in describe_parameters(Derived)}
    assert (parameters["k"].type, parameters["k"].doc) == ('{"a", "b"}', "Overrides.")
    assert parameters["low"].doc == "The two ends."


def test_example_can_be_parsed():
    assert parse_settings([example_setting(describe_parameters(Documented))]) == {"k": 10}
    assert parse_settings([example_setting([])]) == {"threshold": 0.4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        (" 1e-3 ", 0.001),
        ("true", True),
        ("False", False),
        ("'5'", "5"),
        ("[1, 2]", [1, 2]),
        ("{a = 1}", {"a": 1}),
        ("None", None),
        ("null", None),
        ("relu", "relu"),
        ("", ""),
        ("2024-01-02", "2024-01-02"),
        ("1\nother = 2", "1\nother = 2"),
        ("top-3", "top-3"),
    ],
)
def test_values(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("setting", ["k", "=3", ""])
def test_settings_need_name_and_value(setting):
    with pytest.raises(InputError, match="name=value"):
        parse_settings([setting])


def test_value_may_hold_an_equals_sign():
    assert parse_settings(["a=b=c"]) == {"a": "b=c"}


def test_unknown_name_lists_the_choices_when_nothing_is_near():
    with pytest.raises(InputError, match="choose among k, low"):
        check_names(["zzz"], ["k", "low"], "parameter")


def test_toml_can_be_read_back():
    sections = {
        "method": {"name": 'quo"te', "none": None},
        "parameters": {"a": 1, "b": [0.5, 1e-7], "c": False, "d e": (1, "x")},
    }
    assert tomllib.loads(to_toml(sections)) == {
        "method": {"name": 'quo"te', "none": "none"},
        "parameters": {"a": 1, "b": [0.5, 1e-7], "c": False, "d e": [1, "x"]},
    }
