"""The command serve, short of serving."""

import json

import pytest

pytest.importorskip("fastapi", reason="needs labelweave[serve]")
pytest.importorskip("sqlalchemy", reason="needs labelweave[serve]")


def test_keys_are_made_once_and_revoked(run):
    made = json.loads(run("serve", "--add-key", "ci", "--json").stdout)
    assert len(made["key"]) > 40
    assert made["key"] not in run("serve", "--add-key", "other").output
    assert "already" in run("serve", "--add-key", "ci", status=2).output
    assert "no longer" in run("serve", "--revoke-key", "ci").output
    assert "no key" in run("serve", "--revoke-key", "ci", status=2).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no model"),
        (["nowhere"], "nowhere"),
        (["a b=model"], "'a b'"),
        (["model", "model"], "two models"),
        (["model", "--review", "none.csv"], "none.csv"),
        (["model", "--database", "mysql://x"], "PostgreSQL"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(run, model, arguments, words):
    assert words in run("serve", *arguments, status=2).output


def test_it_tells_where_it_serves_and_makes_a_key_for_the_session(run, model, monkeypatch):
    uvicorn = pytest.importorskip("uvicorn")
    options = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **keywords: options.update(keywords))
    told = json.loads(run("serve", model, "--port", 8123, "--json").stdout)
    assert told["models"] == ["model"]
    assert told["address"] == f"http://127.0.0.1:8123/#key={told['key']}"
    assert (options["host"], options["port"], options["proxy_headers"]) == (
        "127.0.0.1",
        8123,
        False,
    )
    told = json.loads(run("serve", model, "--port", 0, "--json").stdout)
    assert options["port"] > 0
    assert told["address"].startswith(f"http://127.0.0.1:{options['port']}/")
    monkeypatch.setenv("LABELWEAVE_API_KEY", "x" * 30)
    assert "#key" not in run("serve", model).output
    monkeypatch.setenv("LABELWEAVE_API_KEY", "short")
    assert "too short" in run("serve", model, status=2).output


def test_data_are_read_as_those_of_the_training(run, model, csv_file, workdir, monkeypatch):
    services = []
    monkeypatch.setattr("labelweave.serve.app.run", lambda service, **_: services.append(service))
    run("serve", model, "--data", csv_file)
    (workdir / "later.csv").write_text(csv_file.read_text().replace(",", ";"))
    run("serve", model, "--data", "later.csv", "--delimiter", ";")
    names = ["red", "blue", "round"]
    pairs = [service.cooccurrence.pairs(names, 10) for service in services]
    assert pairs[0] == pairs[1] != []
    assert "--labels" in run("serve", model, "--labels", 3, status=2).output
