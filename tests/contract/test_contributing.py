"""What CONTRIBUTING.md tells to write is a method, and joins by the entry point it names."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import labelweave as lw
from labelweave import methods
from labelweave.testing import estimator_checks

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def block(language):
    return re.search(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)[1]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The class of the guide, in the package that its entry point names."""
    folder = tmp_path_factory.mktemp("site")
    points = tomllib.loads(block("toml"))["project"]["entry-points"]["labelweave.methods"]
    ((id, target),) = points.items()
    module = target.partition(":")[0]
    path = folder / (module.replace(".", "/") + ".py")
    path.parent.mkdir()
    path.write_text(block("python"), encoding="utf-8")
    facts = folder / "my_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[labelweave.methods]\n{id} = {target}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        methods._methods.cache_clear()
        yield methods.get_class(id)
    for name in (module, module.partition(".")[0]):
        sys.modules.pop(name, None)
    methods._methods.cache_clear()


def test_it_is_known_by_the_names_that_the_guide_gives(example):
    text = GUIDE.read_text(encoding="utf-8")
    assert f"`lw.{example.__name__}`" in text
    assert "`labelweave train --method window`" in text
    assert getattr(lw, example.__name__) is example
    assert type(lw.make("window")) is example


def test_it_keeps_the_contract(example):
    for name, check in estimator_checks(example()):
        try:
            check()
        except Exception as error:
            error.add_note(f"in the check {name!r}")
            raise
