import numpy as np
import pytest

import plugin_package


@pytest.fixture(scope="module")
def frequency(tmp_path_factory):
    """The class of a plug-in method, registered through entry points."""
    with plugin_package.installed(tmp_path_factory.mktemp("site")) as cls:
        yield cls


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(40, 6))


@pytest.fixture(scope="module")
def labels(rows):
    return (rows[:, :3] + rows[:, 3:] > 0).astype(int)


@pytest.fixture
def saved(frequency, rows, labels, tmp_path):
    """A model folder."""
    folder = tmp_path / "model"
    frequency(random_state=1).fit(rows, labels).save(folder)
    return folder
