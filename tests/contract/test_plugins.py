"""A method of another package joins through entry points, and is a method like any other."""

import pytest

import labelweave as lw
import plugin_package
from labelweave import methods


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    with plugin_package.installed(folder) as cls:
        yield cls


def test_it_is_listed_made_and_named(plugin):
    listed = {method.id: method for method in lw.list_methods()}["frequency"]
    assert listed.room == "plug-in"
    assert listed.summary == "from weave-frequency"
    assert [method.id for method in methods.list_methods("plug-in")] == ["frequency"]
    assert type(lw.make("frequency", threshold=0.2)) is plugin
    assert lw.Frequency is plugin


def test_it_is_saved_and_loaded(plugin, tmp_path):
    X, Y = [[0.0], [1.0], [2.0]], [["a"], ["b"], ["a"]]
    model = lw.make("frequency", random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    again = lw.load(tmp_path / "model")
    assert type(again) is plugin
    assert (again.predict_proba(X) == model.predict_proba(X)).all()


def test_it_is_unknown_where_it_is_not_installed(plugin, tmp_path, monkeypatch):
    lw.make("frequency").fit([[0.0], [1.0]], [["a"], ["b"]]).save(tmp_path / "model")
    monkeypatch.setattr(methods.metadata, "entry_points", lambda group: ())
    methods._methods.cache_clear()
    with pytest.raises(lw.exceptions.ModelFolderError, match="not installed here"):
        lw.load(tmp_path / "model")


def test_a_plugin_that_cannot_be_imported_harms_only_itself(tmp_path, monkeypatch):
    plugin_package.install(tmp_path)
    (tmp_path / "weave_frequency.py").write_text("import no_such_module_anywhere")
    monkeypatch.syspath_prepend(tmp_path)
    methods._methods.cache_clear()
    try:
        assert "frequency" in [method.id for method in lw.list_methods()]
        assert type(lw.make("mlknn")).__name__ == "MLkNN"
        with pytest.raises(ImportError, match="no_such_module_anywhere"):
            lw.make("frequency")
    finally:
        methods._methods.cache_clear()
