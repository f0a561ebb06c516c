"""The files that deploy the service fit the package, and what they and the checks use is pinned."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs labelweave[serve]")
from packaging.requirements import Requirement

from labelweave.serve.app import SHUTDOWN_SECONDS

ROOT = Path(__file__).parents[1]
REQUIREMENTS = (ROOT / "deploy/requirements.txt").read_text()
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()


def stated(extra):
    """The requirements of the package with an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"][extra]):
        one = Requirement(line)
        if one.name == "labelweave":
            yield from (part for name in one.extras for part in stated(name))
        else:
            yield one


def test_the_image_installs_what_the_package_needs_by_hash():
    versions = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", REQUIREMENTS, re.MULTILINE))
    for one in stated("serve"):
        assert one.specifier.contains(versions[one.name]), one
    blocks = re.split(r"^(?=[a-z])", REQUIREMENTS, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(versions)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert "--require-hashes" in DOCKERFILE
    assert "hatchling" in versions  # nothing else is fetched to build the package
    assert "--no-build-isolation" in DOCKERFILE


def test_the_image_has_the_tried_versions():
    tried = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    for name, version in tried:
        pinned = re.search(rf"^{name}==([^\s+]+)", REQUIREMENTS, re.MULTILINE)
        assert pinned is None or pinned[1] == version, name


def test_the_base_image_is_pinned():
    assert re.search(r"^FROM \S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)


def test_a_stop_has_the_time_that_the_service_takes():
    unit = (ROOT / "deploy/labelweave.service").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]) > SHUTDOWN_SECONDS
    assert int(re.search(r"docker run --stop-timeout (\d+)", DOCKERFILE)[1]) > SHUTDOWN_SECONDS


def test_actions_are_pinned_to_commits():
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        uses = re.findall(r"uses: *(\S+)", path.read_text())
        assert uses
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in uses), uses
