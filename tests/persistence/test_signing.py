"""Signed model folders: who signed them, and what counts as changed."""

import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

import labelweave as lw
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence import model_info, new_key, sign
from labelweave.persistence.manifest import read_config, write_config

pytest.importorskip("cryptography", reason="needs labelweave[sign]")


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "release.pem"
    new_key(path)
    return path


@pytest.fixture(scope="module")
def public(key):
    return [f"{key}.pub"]


@pytest.fixture
def signed(saved, key):
    assert sign(saved, key) == len([p for p in saved.rglob("*") if p.is_file()]) - 1
    return saved


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def rewrite_consistently(folder):
    """What someone who knows the format can do: change a file and every checksum of saving."""
    edit(folder / "labels.json", lambda labels: labels["names"].reverse())
    config = read_config(folder)
    names = config.pop("files")
    config.pop("sha256")
    write_config(folder, config, names)


def test_a_signed_folder_is_loaded_with_the_key_and_without(signed, public, rows):
    expected = lw.load(signed).predict_proba(rows)
    np.testing.assert_array_equal(
        lw.load(signed, trusted_keys=public).predict_proba(rows), expected
    )
    assert model_info(signed, trusted_keys=public) == model_info(signed)


CHANGES = {
    "a file and its checksums": rewrite_consistently,
    "a byte": lambda folder: (folder / "state.json").write_bytes(
        (folder / "state.json").read_bytes().replace(b" ", b"\t", 1)
    ),
    "the model card": lambda folder: (folder / "README.md").write_text("other"),
    "a file added": lambda folder: (folder / "training.json").write_text("{}"),
    "a file added below": lambda folder: (
        (folder / "inner").mkdir(),
        (folder / "inner" / "signature.json").write_text("{}"),
    ),
    "a file removed": lambda folder: (folder / "README.md").unlink(),
    "a link": lambda folder: (folder / "inner").symlink_to(folder.parent),
    "a link in place of a file": lambda folder: (
        shutil.move(folder / "README.md", folder.parent / "README.md"),
        (folder / "README.md").symlink_to(folder.parent / "README.md"),
    ),
    "the list of files": lambda folder: edit(
        folder / "signature.json", lambda document: document["files"].pop("README.md")
    ),
    "no signature": lambda folder: (folder / "signature.json").unlink(),
    "an empty signature": lambda folder: (folder / "signature.json").write_text("{}"),
    "a newer version": lambda folder: edit(
        folder / "signature.json", lambda document: document.update(version=2)
    ),
    "a signature that is no text": lambda folder: edit(
        folder / "signature.json", lambda document: document.update(signature=[1])
    ),
    "a signature that is a link": lambda folder: (
        shutil.move(folder / "signature.json", folder.parent / "s.json"),
        (folder / "signature.json").symlink_to(folder.parent / "s.json"),
    ),
    "a deep list": lambda folder: edit(
        folder / "signature.json",
        lambda document: document.update(files=json.loads("[" * 900 + "]" * 900)),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_that_was_changed_after_signing_is_refused(signed, public, change):
    CHANGES[change](signed)
    for read in (lw.load, model_info):
        with pytest.raises(ModelFolderError) as refusal:
            read(signed, trusted_keys=public)
        assert len(str(refusal.value).splitlines()) == 1


def test_a_consistent_change_is_what_only_the_signature_shows(signed):
    rewrite_consistently(signed)
    lw.load(signed)


def test_another_key_is_not_enough_and_one_of_several_is(signed, public, tmp_path):
    other = new_key(tmp_path / "other.pem")
    with pytest.raises(ModelFolderError, match="not signed by one of the trusted keys"):
        lw.load(signed, trusted_keys=[other])
    lw.load(signed, trusted_keys=[other, *public])
    together = tmp_path / "all.pub"
    together.write_bytes(other.read_bytes() + Path(public[0]).read_bytes())
    lw.load(signed, trusted_keys=[together])


def test_saving_removes_the_signature(signed, public):
    model = lw.load(signed)
    model.save(signed)
    assert not (signed / "signature.json").exists()
    with pytest.raises(ModelFolderError, match="is not signed"):
        lw.load(signed, trusted_keys=public)


def test_signing_again_replaces_the_signature(signed, public, tmp_path):
    (signed / "README.md").write_text("a better model card")
    new_key(tmp_path / "other.pem")
    sign(signed, tmp_path / "other.pem")
    lw.load(signed, trusted_keys=[tmp_path / "other.pem.pub"])
    with pytest.raises(ModelFolderError, match="trusted keys"):
        lw.load(signed, trusted_keys=public)
    assert {path.name for path in tmp_path.iterdir()} == {"model", "other.pem", "other.pem.pub"}


def test_a_signature_that_cannot_be_written(saved, key):
    (saved / "signature.json").mkdir()
    with pytest.raises(ModelFolderError, match=r"signature\.json cannot be written: Is a"):
        sign(saved, key)
    assert not list(saved.parent.glob(".*signature*"))


def test_a_damaged_folder_is_not_signed(saved, key):
    (saved / "state.json").write_text("{}")
    with pytest.raises(ModelFolderError, match=r"state\.json"):
        sign(saved, key)
    assert not (saved / "signature.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_only_the_owner_reads_a_private_key_and_no_key_is_overwritten(key, tmp_path):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="not overwritten"):
        new_key(key)
    (tmp_path / "k.pub").write_text("another file")
    with pytest.raises(InputError, match="not overwritten"):
        new_key(tmp_path / "k")
    assert not (tmp_path / "k").exists()


def test_files_that_are_no_keys_are_named(signed, key, public, tmp_path):
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    for keys, words in [
        ([], "empty"),
        (public[0], "list of files"),
        ([tmp_path / "none"], "No such file"),
        ([key], "no public key"),
        ([nonsense], "cannot be read"),
    ]:
        with pytest.raises(InputError, match=words):
            lw.load(signed, trusted_keys=keys)
    for path, words in [(nonsense, "not the PEM file"), (tmp_path / "none", "No such file")]:
        with pytest.raises(InputError, match=words):
            sign(signed, path)


def test_keys_of_another_kind_or_with_a_passphrase_are_refused(signed, tmp_path):
    from cryptography.hazmat.primitives import serialization as ser
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    curve, ours = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    path = tmp_path / "key"
    form = (ser.Encoding.PEM, ser.PrivateFormat.PKCS8)
    path.write_bytes(curve.private_bytes(*form, ser.NoEncryption()))
    with pytest.raises(InputError, match="another kind than Ed25519"):
        sign(signed, path)
    path.write_bytes(ours.private_bytes(*form, ser.BestAvailableEncryption(b"secret")))
    with pytest.raises(InputError, match="encrypted"):
        sign(signed, path)
    public = curve.public_key().public_bytes(form[0], ser.PublicFormat.SubjectPublicKeyInfo)
    path.write_bytes(public)
    with pytest.raises(InputError, match="another kind than Ed25519"):
        lw.load(signed, trusted_keys=[path])
