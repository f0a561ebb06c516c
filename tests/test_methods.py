import subprocess
import sys

import pytest

import labelweave as lw
from labelweave import methods
from labelweave.base import MultiLabelPredictor
from labelweave.exceptions import InputError


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
    """A function that lets the table find one plug-in with this id and class name."""

    def find(id, class_name):
        method = methods.Method(id, "plug-in", "elsewhere", class_name, "")
        monkeypatch.setattr(methods, "_plugin_methods", lambda: [method])
        methods._methods.cache_clear()

    yield find
    methods._methods.cache_clear()


def test_two_methods_of_one_id_are_refused(plug_in):
    plug_in("mlknn", "Twin")
    with pytest.raises(InputError, match="two methods have the id 'mlknn'"):
        methods.list_methods()


@pytest.mark.parametrize("wrapper", methods.WRAPPERS, ids=lambda wrapper: wrapper.id)
def test_ids_that_model_folders_use_for_wrappers_are_refused(plug_in, wrapper):
    plug_in(wrapper.id, "Twin")
    with pytest.raises(InputError, match=f"has the id '{wrapper.id}', which labelweave reserves"):
        methods.list_methods()


def test_a_plugin_does_not_hide_a_class_of_the_library(plug_in):
    plug_in("other-knn", "MLkNN")
    assert lw.MLkNN is methods.get_class("mlknn")


@pytest.mark.parametrize("name", sorted(set(dir(lw)) - {"__version__"}))
def test_every_public_name_can_be_had(name):
    # Not getattr: a module that was imported before would be found without the lazy name.
    assert lw.__getattr__(name) is getattr(lw, name)
