import subprocess
import sys
from importlib import metadata

import pytest

import labelweave as lw
from labelweave import methods
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.predictor import MultiLabelPredictor


@pytest.mark.parametrize("method", methods.list_methods(), ids=lambda method: method.id)
def test_what_the_source_says_is_what_the_class_is(method):
    cls = method.load()
    assert issubclass(cls, MultiLabelPredictor)
    assert methods.method_of(cls(**getattr(cls, "_test_params", dict)())) is method
    assert getattr(lw, method.class_name) is cls
    assert method.class_name in dir(lw)


def test_listing_imports_neither_torch_nor_the_methods():
    code = (
        "import sys, labelweave as lw; assert lw.list_methods();"
        "print([m for m in ('torch', 'sklearn', 'pandas', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_ids_are_answered_with_a_near_one():
    with pytest.raises(InputError, match="did you mean 'mlknn'"):
        methods.make("ml-knn")
    with pytest.raises(InputError, match="no room 'attic'"):
        methods.list_methods("attic")
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = lw.Nonsense


@pytest.fixture
def plug_in(monkeypatch):
    """A function that lets the table find plug-ins, given by id and place of the class."""

    def find(*pairs):
        points = [metadata.EntryPoint(id, place, "") for id, place in pairs]
        monkeypatch.setattr(methods.metadata, "entry_points", lambda group: points)
        methods._methods.cache_clear()

    yield find
    methods._methods.cache_clear()


@pytest.mark.parametrize("id", ["mlknn", *(wrapper.id for wrapper in methods.WRAPPERS)])
def test_a_plugin_with_an_id_of_ours_is_ignored_and_disables_nothing(plug_in, id):
    expected = {method.id for method in methods.list_methods()} | {"other"}
    plug_in((id, "elsewhere:Twin"), ("other", "elsewhere:Other"))
    message = f"the plug-in elsewhere:Twin is ignored, because its id '{id}' is that of labelweave"
    with pytest.warns(LabelweaveWarning, match=message) as caught:
        assert {method.id for method in methods.list_methods()} == expected
    assert len(caught) == 1
    assert methods.make("mlknn", k=3).k == 3
    assert lw.TextClassifier is methods.make_part("text").__class__


def test_of_two_plugins_with_one_id_the_first_is_used(plug_in):
    plug_in(("twin", "first:Twin"), ("twin", "second:Twin"))
    with pytest.warns(LabelweaveWarning, match="second:Twin is ignored.* is that of first:Twin"):
        (twin,) = methods.list_methods("plug-in")
    assert twin.module == "first"


@pytest.mark.parametrize("value", ["no class", "module", ""])
def test_a_plugin_without_a_class_is_ignored(plug_in, value):
    plug_in(("odd", value), ("other", "elsewhere:Other"))
    with pytest.warns(LabelweaveWarning, match="the plug-in odd is ignored.*'module:Class'"):
        assert [method.id for method in methods.list_methods("plug-in")] == ["other"]


def test_a_plugin_does_not_hide_a_class_of_the_library(plug_in):
    plug_in(("other-knn", "elsewhere:MLkNN"))
    assert lw.MLkNN is methods.get_class("mlknn")


@pytest.mark.parametrize("name", sorted(set(dir(lw)) - {"__version__"}))
def test_every_public_name_can_be_had(name):
    # Not getattr: a module that was imported before would be found without the lazy name.
    assert lw.__getattr__(name) is getattr(lw, name)
