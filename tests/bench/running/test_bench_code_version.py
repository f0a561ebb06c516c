"""Code versions: which changes of code make new cells."""

from dataclasses import replace

import pytest

from labelweave.bench.running import code_version as versions
from labelweave.bench.running.plan import make_plan
from labelweave.bench.running.runner import prepare
from labelweave.bench.suite import MethodEntry


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Two modules that stand for labelweave's: one imports the other."""
    files = {
        "labelweave.method": '"""Doc."""\nimport labelweave.helper\n\nX = 1\n',
        "labelweave.helper": "Y = 1  # why\n",
        "labelweave.other": "Z = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def source(module):
        path = tmp_path / module
        return path if path.is_file() else None

    monkeypatch.setattr(versions, "_source", source)
    versions._facts.cache_clear()
    yield tmp_path
    versions._facts.cache_clear()


def version_after(package, module, text):
    (package / module).write_text(text)
    versions._facts.cache_clear()
    return versions.code_version(["labelweave.method"])


def test_code_counts_with_what_it_imports_and_without_comments(package):
    first = versions.code_version(["labelweave.method"])
    assert version_after(package, "labelweave.helper", "Y = 1\n\n# because\n") == first
    said = '"""Other."""\nimport labelweave.helper\nX = 1\n'
    assert version_after(package, "labelweave.method", said) == first
    assert version_after(package, "labelweave.other", "Z = 2\n") == first
    assert version_after(package, "labelweave.helper", "Y = 2\n") != first


def test_modules_that_compute_no_score_do_not_count(package, monkeypatch):
    monkeypatch.setattr(versions, "HARMLESS", ("labelweave.helper",))
    first = versions.code_version(["labelweave.method"])
    assert version_after(package, "labelweave.helper", "Y = 2\n") == first


def test_a_method_made_by_its_id_counts(package, monkeypatch):
    """In the code of a room, or among the settings; in other modules a word is but a word."""
    monkeypatch.setattr(versions, "_modules_by_id", lambda: {"other": "labelweave.other"})
    before = "MEMBERS = ['other']\n"
    for module in ("labelweave.dependent.stack", "labelweave.plumbing"):
        (package / module).write_text(before)

    def version(module):
        versions._facts.cache_clear()
        return versions.code_version([module])

    stack, plumbing = version("labelweave.dependent.stack"), version("labelweave.plumbing")
    (package / "labelweave.other").write_text("Z = 2\n")
    assert version("labelweave.dependent.stack") != stack
    assert version("labelweave.plumbing") == plumbing
    assert versions.methods_named_in({"a": {"b": ["x", "other"]}}) == ("labelweave.other",)


def test_weave_depends_on_its_members_and_a_setting_on_the_method_it_names(suite):
    _, named = versions._facts("labelweave.dependent.weave_members")
    assert {"labelweave.dependent.mlp", "labelweave.dependent.extra_trees"} <= set(named)
    entries = (
        MethodEntry("plain", "weave"),
        MethodEntry("same", "weave", {"members": ["mlp"]}),
        MethodEntry("more", "weave", {"members": ["haram"]}),
    )
    plan = prepare(make_plan(replace(suite, methods=entries)))
    version = {cell.method_name: cell.code_version for cell in plan.cells}
    assert version["plain"] == version["same"] != version["more"]


def test_the_modules_listed_as_harmless_exist():
    missing = [name for name in versions.HARMLESS if versions._source(name) is None]
    assert missing in ([], ["labelweave.reporting"])
