"""Saving is all or nothing: killed, out of space, without permission, or twice at once."""

import itertools
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence import check_save_path, encoding, load, save
from labelweave.persistence import folder as folder_module


def hidden(parent):
    return [path.name for path in parent.iterdir() if path.name.startswith(".")]


@pytest.fixture
def model(frequency, rows, labels):
    return frequency(random_state=2).fit(rows, labels)


def test_an_earlier_model_is_replaced_as_a_whole(saved, frequency, rows, labels):
    frequency(extra=np.ones(3)).fit(rows, labels).save(saved)
    frequency(random_state=5).fit(rows, labels).save(saved)
    assert load(saved).random_state == 5
    assert hidden(saved.parent) == []


def test_folders_and_files_have_the_usual_permissions(model, tmp_path):
    save(model, tmp_path / "model")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain.txt").write_text("")
    same = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "model").stat().st_mode == same
    for path in (tmp_path / "model").iterdir():
        assert path.stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_missing_parents_are_made_and_empty_folders_used(model, tmp_path):
    save(model, tmp_path / "a" / "b" / "model")
    load(tmp_path / "a" / "b" / "model")
    (tmp_path / "empty").mkdir()
    save(model, tmp_path / "empty")
    load(tmp_path / "empty")


def test_what_is_no_model_is_not_overwritten(model, tmp_path, saved):
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.txt").write_text("ten years of work")
    with pytest.raises(ModelFolderError, match="no labelweave model, so it is not overwritten"):
        save(model, thesis)
    with pytest.raises(ModelFolderError, match="is a file"):
        save(model, thesis / "chapter1.txt")
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ModelFolderError, match=r"holds 'notes\.txt', which labelweave did not"):
        save(model, saved)
    with pytest.raises(ModelFolderError, match="root"):
        check_save_path("/")
    assert (thesis / "chapter1.txt").read_text() == "ten years of work"
    assert (saved / "notes.txt").read_text() == "mine"
    assert hidden(tmp_path) == []


def test_extra_files_come_and_go_with_the_model(saved, model):
    extras = {"training.json": b"{}", "metrics.json": b"[1]"}
    save(model, saved, extra_files=extras, scores={"f1_micro": 0.5})
    for name, content in extras.items():
        assert (saved / name).read_bytes() == content
    (saved / "training.json").unlink()
    assert load(saved).random_state == 2
    save(model, saved)
    assert not (saved / "metrics.json").exists()
    for name in ("../a", "a/b", "config.json", "labels.json", "notes.txt"):
        with pytest.raises(InputError, match="no extra file"):
            save(model, saved, extra_files={name: b""})


@pytest.mark.parametrize("limit", [0, 100, 600, 1500])
def test_no_space(frequency, rows, labels, saved, limit):
    """Files may not grow beyond `limit` bytes, which is what a full disk looks like."""
    before = load(saved).predict_proba(rows)
    large = frequency(extra=np.zeros(5000)).fit(rows, labels)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(ModelFolderError, match=r": File too large \(what was"):
            save(large, saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    np.testing.assert_array_equal(load(saved).predict_proba(rows), before)
    assert hidden(saved.parent) == []


@pytest.mark.parametrize("step", ["_sync", "_swap_in", "_sync_folder"])
def test_an_error_at_any_step_leaves_the_old_model(saved, model, monkeypatch, step):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, step, fail)
    with pytest.raises(ModelFolderError, match="No space left on device"):
        save(model, saved)
    assert load(saved).random_state == 1
    assert hidden(saved.parent) == []


def test_an_interrupt_leaves_the_old_model(saved, model, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(encoding, "_write_tensors", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(model, saved)
    assert load(saved).random_state == 1
    assert hidden(saved.parent) == []


def test_no_permission(model):
    """Tried as a user who may look at the folder but not change it."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        save(model, folder)
        Path(parent).chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(ModelFolderError, match=r"Permission denied .*unchanged"):
                save(model, folder)
        finally:
            if user == 0:
                os.seteuid(user)
            Path(parent).chmod(0o755)
        load(folder)
        assert hidden(Path(parent)) == []


def test_a_folder_that_cannot_be_made(model):
    with pytest.raises(ModelFolderError, match="could not be written"):
        save(model, "/proc/model")


# -- without the one-step exchange -----------------------------------------------------


@pytest.fixture
def two_renames(monkeypatch):
    monkeypatch.setattr(folder_module, "_exchange", lambda first, second: False)


@pytest.mark.usefixtures("two_renames")
def test_two_renames_do_the_same(saved, model):
    save(model, saved)
    assert load(saved).random_state == 2
    assert hidden(saved.parent) == []


@pytest.mark.usefixtures("two_renames")
def test_killed_between_the_two_renames(saved, model):
    aside = saved.with_name(".model.previous")
    saved.rename(aside)
    assert load(saved).random_state == 1
    save(model, saved)
    assert load(saved).random_state == 2
    assert hidden(saved.parent) == []


@pytest.mark.usefixtures("two_renames")
def test_killed_before_the_old_one_was_removed(saved, model):
    shutil.copytree(saved, saved.with_name(".model.previous"))
    save(model, saved)
    assert load(saved).random_state == 2
    assert hidden(saved.parent) == []


@pytest.mark.usefixtures("two_renames")
def test_the_second_rename_fails(saved, model, monkeypatch):
    rename = Path.rename

    def fail_for_the_new(self, target):
        if self.name.endswith(".saving"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(ModelFolderError, match="Input/output error"):
        save(model, saved)
    assert load(saved).random_state == 1
    assert hidden(saved.parent) == []


# -- killed ----------------------------------------------------------------------------


@pytest.fixture
def two_models(frequency, rows, labels):
    return [
        frequency(extra=np.full((300, 300), float(k)), random_state=k).fit(rows, labels)
        for k in (0, 1)
    ]


def keep_saving(models, folder):
    """Save one model after the other in a process of its own, until it is killed."""
    process = os.fork()
    if process == 0:
        try:
            for model in itertools.cycle(reversed(models)):
                save(model, folder)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return process


def is_whole(model):
    return bool((model.extra == model.random_state).all())


@pytest.mark.parametrize("how", ["exchange", "two renames"])
def test_killed_at_any_moment(two_models, tmp_path, monkeypatch, how):
    """SIGKILL at random moments: what is there is always one whole model."""
    if how == "two renames":
        monkeypatch.setattr(folder_module, "_exchange", lambda first, second: False)
    folder = tmp_path / "model"
    save(two_models[0], folder)
    begin = time.monotonic()
    save(two_models[0], folder)
    one_save = time.monotonic() - begin
    moment = random.Random(0)
    seen, leftovers = set(), 0
    for attempt in range(200):  # on a busy machine it takes more to meet all there is
        if attempt >= 25 and seen == {0, 1} and leftovers:
            break
        process = keep_saving(two_models, folder)
        time.sleep(moment.uniform(0, 4 * one_save))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        found = load(folder)
        assert is_whole(found)
        seen.add(found.random_state)
        leftovers += len(hidden(tmp_path))
    assert seen == {0, 1}
    assert leftovers > 0  # otherwise no save was ever killed half-way
    # The next save that is not killed clears away what the killed ones left.
    save(two_models[0], folder)
    assert hidden(tmp_path) == []


def test_a_folder_that_another_save_is_about_to_delete_is_not_written_to(tmp_path, monkeypatch):
    """It lies there unlocked for a moment, and looks like a leftover."""
    lock, made = folder_module._lock, []

    def taken_at_first(folder):
        made.append(folder)
        if len(made) == 1:
            raise BlockingIOError
        return lock(folder)

    monkeypatch.setattr(folder_module, "_lock", taken_at_first)
    found, handle = folder_module._locked_sibling(tmp_path / "model")
    os.close(handle)
    assert len(made) == 2
    assert found == made[1] != made[0]


def test_two_processes_saving_to_one_folder(two_models, tmp_path):
    folder = tmp_path / "model"
    save(two_models[0], folder)
    processes = [keep_saving(two_models, folder) for _ in range(2)]
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            time.sleep(0.05)
            for process in processes:
                assert os.waitpid(process, os.WNOHANG) == (0, 0)  # no error ended it
    finally:
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    assert is_whole(load(folder))
