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


def test_folders_are_made_and_permissions_are_the_usual_ones(tmp_path):
    target = tmp_path / "a" / "b.txt"
    atomic_write_text(target, "x")
    plain = tmp_path / "plain"
    plain.write_text("x")
    assert target.stat().st_mode == plain.stat().st_mode
