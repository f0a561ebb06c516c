"""A package with a method of its own, as another project would ship it.

`install(folder)` writes a module and its `dist-info` to a folder; with that folder on
`sys.path` Python's own entry points find it, and nothing has to be installed.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelweave import methods

MODULE = '''
import numpy as np
import scipy.sparse as sp

from labelweave.base import MultiLabelClassifier


class Frequency(MultiLabelClassifier):
    """Tilts the frequency of each label by a random direction of the features."""

    def __init__(self, extra=None, threshold=0.5, validation_fraction=0.2, random_state=None):
        self.extra = extra
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X, Y, validation):
        positives, known = Y.counts()
        seed = np.random.default_rng(self.random_state)
        self.frequency_ = (positives + 1.0) / (known + 2.0)
        self.direction_ = np.asfortranarray(seed.normal(size=(X.shape[1], Y.n_labels)))
        self.memory_ = sp.csr_array(X)
        self.facts_ = {"rows": len(Y), 3: (1.5, float("inf")), "names": list(Y.names)}
        self.held_ = self.extra

    def _predict_proba(self, X):
        tilt = np.asarray(X @ self.direction_) + self.memory_.sum()
        odds = np.log(self.frequency_ / (1 - self.frequency_)) + 0.1 * np.tanh(tilt)
        return 1 / (1 + np.exp(-odds))
'''

ENTRY_POINTS = """
[labelweave.methods]
frequency = weave_frequency:Frequency
"""


def install(folder: Path) -> None:
    (folder / "weave_frequency.py").write_text(MODULE)
    facts = folder / "weave_frequency-0.3.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: weave-frequency\nVersion: 0.3\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)


@contextmanager
def installed(folder: Path) -> Iterator[type]:
    """The plug-in's class, known to the table of methods inside the block only."""
    install(folder)
    sys.path.insert(0, str(folder))
    methods._methods.cache_clear()
    try:
        yield methods.get_class("frequency")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("weave_frequency", None)
        methods._methods.cache_clear()
