import errno
import os

import pytest

from labelweave.files import atomic_path, atomic_write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "notes.txt"
    atomic_write_text(target, "old")
    with pytest.raises(RuntimeError), atomic_path(target) as path:
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_folders_are_created_and_permissions_are_the_usual_ones(tmp_path):
    target = tmp_path / "a" / "b.txt"
    atomic_write_text(target, "x")
    plain = tmp_path / "plain"
    plain.write_text("x")
    assert target.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_the_error_of_a_full_disk_names_the_target(tmp_path, code):
    target = tmp_path / "notes.txt"
    with pytest.raises(OSError, match=os.strerror(code)) as caught, atomic_path(target):
        raise OSError(code, os.strerror(code))  # a write names no file
    assert caught.value.filename == str(target)
    assert list(tmp_path.iterdir()) == []


def test_the_error_of_a_missing_permission_names_the_target(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".notes.tmp"))

    monkeypatch.setattr("labelweave.files.tempfile.mkstemp", refuse)
    with pytest.raises(PermissionError) as caught, atomic_path(tmp_path / "notes.txt"):
        pass
    assert caught.value.filename == str(tmp_path / "notes.txt")


def test_errors_about_other_files_are_not_changed(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_path(tmp_path / "notes.txt"):
        (tmp_path / "elsewhere").read_text()
    assert caught.value.filename == str(tmp_path / "elsewhere")
