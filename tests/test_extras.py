"""What is optional says which extra brings it when its package is not there."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from click import ClickException

from labelweave.exceptions import MissingExtraError
from labelweave.text import sentence
from optional_parts import PARTS, write_files


@pytest.mark.parametrize("name", PARTS)
def test_a_missing_package_is_named_with_its_extra(name, tmp_path, monkeypatch):
    part = PARTS[name]
    pytest.importorskip(part.module, reason=f"needs labelweave[{part.extra}]")
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    # What another test has loaded or embedded needs no package any more.
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path / "cache"))
    sentence._loaded.cache_clear()
    monkeypatch.setitem(sys.modules, part.module, None)
    with pytest.raises(
        (MissingExtraError, ClickException)
    ) as refusal:  # as the command line puts it
        part.use()
    (said,) = str(refusal.value).splitlines()
    match = re.search(r"(\w+) is needed for this: pip install 'labelweave\[(\w+)\]'$", said)
    assert match is not None, said
    assert match.groups() == (part.module.partition(".")[0], part.extra)


def test_every_extra_of_the_package_is_tried():
    stated = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    for_developers = {"all", "test", "docs", "dev", "bench"}
    for_a_data_set = {"demo"}  # see tests/data/test_catalog.py
    extras = set(stated["project"]["optional-dependencies"]) - for_developers - for_a_data_set
    assert {part.extra for part in PARTS.values()} == extras
