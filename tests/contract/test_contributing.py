"""The method that CONTRIBUTING.md shows keeps the contract that it speaks of."""

import re
import sys
from pathlib import Path

import pytest

from labelweave import registry
from labelweave.testing import check_estimator

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def method(tmp_path, monkeypatch):
    """The class of the guide, as a package of one's own would bring it."""
    (source,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "guide_example.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = registry.Method("nearest", "plug-in", "guide_example", "NearestRow", "")
    monkeypatch.setattr(registry, "_methods_of_plugins", lambda: [found])
    registry._methods.cache_clear()
    yield found.load()
    registry._methods.cache_clear()
    sys.modules.pop("guide_example", None)


def test_the_example_keeps_the_contract(method):
    assert method.method_id == "nearest"
    check_estimator(method())
