"""A save that is killed, fails or runs twice at once leaves one complete model."""

import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence import (
    atomic_folder,
    check_save_path,
    load,
    manifest,
    save,
    value_writer,
)
from labelweave.persistence import model as persistence_model


def hidden(parent):
    return [path.name for path in parent.iterdir() if path.name.startswith(".")]


def check_old_model(saved):
    assert load(saved).random_state == 1
    assert hidden(saved.parent) == []


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


def test_other_files_are_not_overwritten(model, tmp_path, saved):
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.txt").write_text("ten years of work")
    with pytest.raises(ModelFolderError, match="no labelweave model, so it is not overwritten"):
        save(model, thesis)
    with pytest.raises(ModelFolderError, match="is a file"):
        save(model, thesis / "chapter1.txt")
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ModelFolderError, match=r"contains 'notes\.txt', which labelweave did not"):
        save(model, saved)
    with pytest.raises(ModelFolderError, match="root"):
        check_save_path("/")
    assert (thesis / "chapter1.txt").read_text() == "ten years of work"
    assert (saved / "notes.txt").read_text() == "mine"
    assert hidden(tmp_path) == []


def test_extra_files_are_replaced_with_the_model(saved, model):
    extras = {"training.json": b"{}", "metrics.json": b"[1]"}
    save(model, saved, extra_files=extras, scores={"f1_micro": 0.5})
    for name, content in extras.items():
        assert (saved / name).read_bytes() == content
    (saved / "training.json").unlink()
    assert load(saved).random_state == 2
    save(model, saved)
    assert not (saved / "metrics.json").exists()
    for name in ("../a", "a/b", "config.json", "labels.json", "notes.txt"):
        with pytest.raises(InputError, match="is not an extra file"):
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


NO_SPACE = OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("module", "step", "error", "raised"),
    [
        (atomic_folder, "_sync", NO_SPACE, ModelFolderError),
        (atomic_folder, "_swap_in", NO_SPACE, ModelFolderError),
        (atomic_folder, "_sync_folder", NO_SPACE, ModelFolderError),
        (value_writer, "_write_tensors", KeyboardInterrupt("stopped by hand"), KeyboardInterrupt),
    ],
)
def test_an_error_or_interrupt_leaves_the_old_model(
    saved, model, monkeypatch, module, step, error, raised
):
    def fail(*_):
        raise error

    monkeypatch.setattr(module, step, fail)
    with pytest.raises(raised, match=error.args[-1]):
        save(model, saved)
    check_old_model(saved)


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


def test_without_the_one_step_exchange_the_second_rename_fails(saved, model, monkeypatch):
    rename = Path.rename

    def fail_for_the_new(self, target):
        if self.name.endswith(".saving"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(atomic_folder, "_exchange", lambda first, second: False)
    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(ModelFolderError, match="Input/output error"):
        save(model, saved)
    check_old_model(saved)


# -- killed ----------------------------------------------------------------------------


@pytest.fixture
def two_models(frequency, rows, labels):
    return [
        frequency(extra=np.full((30, 30), float(k)), random_state=k).fit(rows, labels)
        for k in (0, 1)
    ]


def in_child(action):
    """Run `action` in a process of its own; the process ends with 0 when it returns."""
    process = os.fork()
    if process == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return process


def is_complete(model):
    return bool((model.extra == model.random_state).all())


CHANGES = ("os.mkdir", "os.chmod", "os.rename", "os.remove", "os.rmdir", "ctypes.dlsym")


def kill_before(step):
    """Kill this process before its change number `step` to files, counted from zero.

    Python announces every change to audit hooks before it is made; the exchange of two folders
    is announced by the look-up of its system call (``ctypes.dlsym``).
    """
    steps = itertools.count()

    def hook(event, arguments):
        makes_a_file = event == "open" and arguments[2] & os.O_CREAT
        if (makes_a_file or event in CHANGES) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def kill_in_write(size):
    """Kill this process while it writes a file that grows beyond `size` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("start", ["one model", "leftovers of a killed save"])
@pytest.mark.parametrize("method", ["exchange", "two renames"])
def test_killed_before_any_step(two_models, tmp_path, monkeypatch, method, start):
    """Whichever step of a save is the last one, the folder contains one complete model."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # slow, and of no use after a kill
    if method == "two renames":
        monkeypatch.setattr(atomic_folder, "_exchange", lambda first, second: False)
    prepared = tmp_path / "prepared"
    save(two_models[0], prepared / "model")
    if start != "one model":
        shutil.copytree(prepared / "model", prepared / ".model.killed.saving")
        if method == "two renames":
            (prepared / "model").rename(prepared / ".model.previous")
    loaded, leftovers = [], 0
    for step in itertools.count():
        parent = tmp_path / str(step)
        shutil.copytree(prepared, parent)
        folder = parent / "model"

        def save_until_killed(step=step, folder=folder):
            kill_before(step)
            save(two_models[1], folder)

        _, status = os.waitpid(in_child(save_until_killed), 0)
        model = load(folder)
        assert is_complete(model)
        loaded.append(model.random_state)
        leftovers += len(hidden(parent))
        # The next save that is not killed clears away what the killed one left.
        save(two_models[0], folder)
        assert load(folder).random_state == 0
        assert hidden(parent) == []
        if not os.WIFSIGNALED(status):
            break
    assert status == 0
    assert loaded == sorted(loaded)  # there is one step that replaces the model
    assert loaded[0] == 0
    assert loaded[-2:] == [1, 1]  # of a save that was killed after it, and of a finished one
    assert leftovers > 0


@pytest.mark.parametrize("size", [0, 100, 600, 1500])
def test_killed_in_the_middle_of_a_write(two_models, tmp_path, size):
    folder = tmp_path / "model"
    save(two_models[0], folder)

    def save_until_killed():
        kill_in_write(size)
        save(two_models[1], folder)

    _, status = os.waitpid(in_child(save_until_killed), 0)
    assert os.WTERMSIG(status) == signal.SIGXFSZ
    assert is_complete(load(folder))
    assert load(folder).random_state == 0
    assert hidden(tmp_path) != []
    save(two_models[1], folder)
    assert hidden(tmp_path) == []


def test_a_folder_that_another_save_is_about_to_delete_is_not_written_to(tmp_path, monkeypatch):
    """It is not locked for a moment, and looks like a leftover."""
    lock, folders = atomic_folder._lock, []

    def locked_by_another_at_first(folder):
        folders.append(folder)
        if len(folders) == 1:
            raise BlockingIOError
        return lock(folder)

    monkeypatch.setattr(atomic_folder, "_lock", locked_by_another_at_first)
    sibling, handle = atomic_folder._locked_sibling(tmp_path / "model")
    os.close(handle)
    assert len(folders) == 2
    assert sibling == folders[1] != folders[0]


def test_a_folder_that_another_process_replaces_while_it_is_listed(saved, model, monkeypatch):
    iterdir = Path.iterdir

    def list_nothing_in_the_folder(self):
        if self == saved:
            return iter(())  # what a handle of the replaced folder shows
        return iterdir(self)

    swap_in = atomic_folder._swap_in

    def swap_in_unlisted(new, target):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "iterdir", list_nothing_in_the_folder)
            swap_in(new, target)

    monkeypatch.setattr(atomic_folder, "_swap_in", swap_in_unlisted)
    save(model, saved)
    assert load(saved).random_state == 2
    assert hidden(saved.parent) == []


def test_a_reader_that_meets_a_save_reads_again(saved, model, monkeypatch):
    """The folder is replaced after its files were checked, and again after config.json was read."""
    moments = iter(["verified", "config", "nothing"])

    def replaced_at(moment, function):
        def wrapped(*arguments):
            result = function(*arguments)
            if next(moments) == moment:
                save(model, saved)
            return result

        return wrapped

    patched = replaced_at("verified", persistence_model.verify_files)
    monkeypatch.setattr(persistence_model, "verify_files", patched)
    assert load(saved).random_state == 2
    patched = replaced_at("config", persistence_model.read_config)
    monkeypatch.setattr(persistence_model, "read_config", patched)
    monkeypatch.setattr(persistence_model, "verify_files", manifest.verify_files)
    moments = iter(["config", "", "", "", ""])
    model.random_state = 3
    assert load(saved).random_state == 3


def test_a_folder_that_never_rests_is_said_to_be_so(saved, model, monkeypatch):
    monkeypatch.setattr(atomic_folder, "_WAITS", (0, 0))

    def replace_and_fail(folder):
        save(model, saved)
        raise ModelFolderError("damaged")

    with pytest.raises(ModelFolderError, match="again and again: try again later"):
        atomic_folder.read_unchanged(saved, replace_and_fail)


def test_readers_beside_a_process_that_saves(two_models, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    folder = tmp_path / "model"
    save(two_models[0], folder)

    def save_repeatedly():
        for model in [*two_models, *two_models] * 10:
            save(model, folder)

    process = in_child(save_repeatedly)
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        assert is_complete(load(folder))


def test_two_processes_saving_to_one_folder(two_models, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    folder = tmp_path / "model"
    save(two_models[0], folder)

    def save_repeatedly():
        for model in [*two_models, *two_models] * 5:
            save(model, folder)

    processes = [in_child(save_repeatedly) for _ in range(2)]
    for process in processes:
        assert os.waitpid(process, 0) == (process, 0)  # no error ended it
    assert is_complete(load(folder))
    assert hidden(tmp_path) == []
