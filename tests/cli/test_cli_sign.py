"""The command sign, and serve with trusted keys short of serving."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="needs labelweave[sign]")


def test_a_key_is_made_and_a_model_signed_with_it(run, model):
    assert json.loads(run("sign", "--new-key", "key.pem", "--json").stdout) == {
        "key": "key.pem",
        "public_key": "key.pem.pub",
    }
    assert "signed" in run("sign", model, "--key", "key.pem").output
    assert "not overwritten" in run("sign", "--new-key", "key.pem", status=2).output
    assert "Name the model" in run("sign", status=2).output
    assert "--key FILE" in run("sign", model, status=2).output
    assert "Name the model" in run("sign", model, "--new-key", "other.pem", status=2).output
    assert not Path("other.pem").exists()


def test_serve_refuses_a_folder_that_the_trusted_keys_did_not_sign(run, model, monkeypatch):
    uvicorn = pytest.importorskip("uvicorn")
    monkeypatch.setattr(uvicorn, "run", lambda app, **keywords: None)
    run("sign", "--new-key", "key.pem")
    serve = ("serve", model, "--trusted-keys", "key.pem.pub")
    (refusal,) = run(*serve, status=2).output.splitlines()
    assert "is not signed" in refusal
    run("sign", model, "--key", "key.pem")
    run(*serve)
    run("sign", "--new-key", "other.pem")
    wrong = run("serve", model, "--trusted-keys", "other.pem.pub", status=2).output
    assert "not signed by one of the trusted keys" in wrong
    Path(model, "README.md").write_text("changed")
    assert "README.md" in run(*serve, status=2).output
