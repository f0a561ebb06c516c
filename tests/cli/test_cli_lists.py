"""`labelweave datasets` and `labelweave methods`."""

import json

import pytest
from cli_data import make_rows, write_csv

from labelweave.data.catalog import list_datasets
from labelweave.methods import list_methods


def test_every_data_set_is_listed(run):
    shown = run("datasets").stdout
    assert all(entry.name in shown for entry in list_datasets())
    listed = json.loads(run("datasets", "--json").stdout)
    assert {"name", "rows", "features", "labels", "where"} <= set(listed[0])


def test_a_data_set_that_is_not_here_is_described_by_the_catalog(run, monkeypatch, workdir):
    monkeypatch.delenv("LABELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(workdir / "cache"))
    where = {row["name"]: row["where"] for row in json.loads(run("datasets", "--json").stdout)}
    assert where["aapd-test"] == "not here"
    assert where["scene"].startswith("download from")
    described = json.loads(run("datasets", "aapd-test", "--json").stdout)
    assert (described["rows"], described["where"]) == (1000, "not here")
    assert "label_counts" not in described


def test_a_file_is_described(run, workdir):
    X, Y = make_rows(30)
    Y = Y.astype(object)
    Y[:5, 0] = ""
    write_csv(workdir / "some.csv", X, Y)
    shown = run("datasets", "some.csv", "--labels", 3).stdout
    assert "share of known" in shown
    described = json.loads(run("datasets", "some.csv", "--labels", 3, "--json").stdout)
    assert described["unknown"] == 5
    assert described["label_counts"][0] == {
        "label": "red",
        "positive": int((Y[5:, 0] == 1).sum()),
        "known": 25,
    }


def test_many_labels_are_cut(run, workdir):
    rows = [json.dumps({"text": "x", "labels": [f"l{i}"]}) for i in range(40)]
    (workdir / "many.jsonl").write_text("\n".join(rows) + "\n")
    assert "... and 25 more labels" in run("datasets", "many.jsonl").stdout
    assert "l39" in run("datasets", "many.jsonl", "--all-labels").stdout


def test_unknown_names(run):
    assert "did you mean 'scene'" in run("datasets", "sceen", status=2).stderr
    assert "did you mean 'mlknn'" in run("methods", "mlkn", status=2).stderr


@pytest.mark.data
def test_named_set_with_label_counts(run, data_home):
    described = json.loads(run("datasets", "emotions", "--json").stdout)
    assert described["official_parts"] == {"train": 391, "test": 202}
    assert len(described["label_counts"]) == 6


def test_methods_of_the_registry_and_of_a_room(run):
    assert all(method.id in run("methods").stdout for method in list_methods())
    listed = json.loads(run("methods", "--room", "dependent", "--json").stdout)
    assert [row["id"] for row in listed] == [m.id for m in list_methods("dependent")]


def test_methods_with_a_capability(run):
    listed = json.loads(
        run("methods", "--room", "dependent", "--accepts", "known_labels", "--json").stdout
    )
    assert {"chain", "c-tran", "lamp"} <= {row["id"] for row in listed}
    assert all(row["capabilities"]["known_labels"] and not row["setting"] for row in listed)
    assert "mlknn" not in {row["id"] for row in listed}
    shown = run("methods", "--room", "unseen", "--accepts", "new_labels").stdout
    assert "xml0" in shown
    assert "attentionxml" not in shown


def test_a_capability_that_a_parameter_brings_is_listed_with_it(run):
    listed = json.loads(run("methods", "--accepts", "images", "--json").stdout)
    settings = {row["id"]: row["setting"] for row in listed}
    assert settings["mlp"] == "encoder=resnet18"
    assert settings["cls"] == "base__encoder=resnet18"
    assert not {"c2ae", "mlknn", "xml0"} & set(settings)


def test_a_capability_that_there_is_not(run):
    shown = run("methods", "--accepts", "known-labels", status=2).stderr
    assert "there is no capability 'known-labels': did you mean 'known_labels'" in shown


@pytest.mark.parametrize("method", [m.id for m in list_methods()])
def test_every_parameter_of_every_method_is_described(run, method):
    described = json.loads(run("methods", method, "--json").stdout)
    assert described["parameters"]
    undocumented = [p["name"] for p in described["parameters"] if not (p["doc"] or p["type"])]
    assert undocumented == []
    shown = run("methods", method).stdout
    assert f"--method {method} --set " in shown.splitlines()[-1]
    declared = [name for name, has in described["capabilities"].items() if has]
    assert f"capabilities: {', '.join(declared)}\n" in shown
