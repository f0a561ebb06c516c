"""Weights in packages: they are located without an import, and compared with a checksum."""

import sys

import pytest

from labelweave.exceptions import InputError, MissingExtraError
from labelweave.nn.image_network import EfficientNetLite, ResNet
from labelweave.nn.pretrained import PRETRAINED, is_installed, pretrained_file

NAME = "efficientnet-lite0"


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """A package of the right name with another file; its code must not run."""
    known = PRETRAINED[NAME]
    file = tmp_path / known.package / known.file
    file.parent.mkdir(parents=True)
    file.write_bytes(b"other weights")
    (tmp_path / known.package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, known.package, raising=False)
    return file


def test_another_file_is_refused_and_its_package_not_imported(other_package):
    assert is_installed(NAME)
    with pytest.raises(InputError, match="SHA-256 differs"):
        EfficientNetLite(0)()
    other_package.unlink()
    with pytest.raises(InputError, match="reinstall"):
        pretrained_file(NAME)


def test_what_is_not_installed_names_its_extra(monkeypatch):
    monkeypatch.setattr("labelweave.nn.pretrained.find_spec", lambda name: None)
    assert not is_installed(NAME)
    with pytest.raises(MissingExtraError, match=r"labelweave\[vision\]"):
        EfficientNetLite(0)()
    assert EfficientNetLite(0, weights=None)().n_out == 1280


def test_other_networks_have_no_package():
    with pytest.raises(InputError, match="pass the path"):
        ResNet(18, size=8, width=4, weights="imagenet")()
