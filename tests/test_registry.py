import subprocess
import sys

import pytest

import labelweave as lw
from labelweave import registry
from labelweave.base import MultiLabelClassifier
from labelweave.exceptions import InputError


@pytest.mark.parametrize("method", registry.list_methods(), ids=lambda method: method.id)
def test_what_the_source_says_is_what_the_class_is(method):
    cls = method.load()
    assert issubclass(cls, MultiLabelClassifier)
    assert cls.method_id == method.id
    assert cls.method_summary == method.summary
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
        registry.make("ml-knn")
    with pytest.raises(InputError, match="no room 'attic'"):
        registry.list_methods("attic")
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = lw.Nonsense


def test_two_methods_of_one_id_are_refused(monkeypatch):
    twin = registry.Method("mlknn", "plug-in", "elsewhere", "Twin", "")
    monkeypatch.setattr(registry, "_methods_of_plugins", lambda: [twin])
    registry._methods.cache_clear()
    try:
        with pytest.raises(InputError, match="two methods have the id 'mlknn'"):
            registry.list_methods()
    finally:
        registry._methods.cache_clear()
