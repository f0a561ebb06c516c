"""A fast classifier for thousands of seen labels: probabilistic label trees by napkinXC."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError, require
from labelweave.labels import LabelMatrix
from labelweave.unseen.label_tree_files import read_node_classifiers

__all__ = ["LabelTree"]


class LabelTree(MultiLabelClassifier):
    """A tree of linear classifiers over labels, for sparse features and thousands of labels [1]_.

    Labels with similar features are leaves of the same branch; a row is scored by the classifiers
    on the path to a leaf. Each row trains about log(labels) linear models, whereas in binary
    relevance it trains one per label. It needs ``pip install 'labelweave[trees]'``.

    Parameters
    ----------
    n_trees : int, default=1
        Trees whose probabilities are averaged.
    max_leaves : int, default=100
        Largest number of labels of a branch that is not divided further.
    C : float, default=10
        Inverse strength of the penalty of the linear classifiers.
    n_jobs : int, default=1
        Number of threads of the training; -1 uses all cores.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    files_ : dict of ndarray
        The files that napkinXC wrote, as bytes.

    Notes
    -----
    Unknown labels are refused, because a label tree would have to treat them as negative.

    napkinXC trains the trees. Their files are read, checked and used for predictions by this
    library: napkinXC trusts its files, and in the mean of several trees it leaves out the first
    label.

    References
    ----------
    .. [1] K. Jasinska-Kobus, M. Wydmuch, K. Dembczynski, M. Kuznetsov and R. Busa-Fekete.
       Probabilistic label trees for extreme multi-label classification. arXiv:2009.11218, 2020.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "max_leaves": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("n_jobs",)

    def __init__(
        self,
        n_trees: int = 1,
        *,
        max_leaves: int = 100,
        C: float = 10.0,
        n_jobs: int = 1,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.C = C
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        if Y.has_unknown:
            raise InputError(
                "a label tree cannot use unknown labels: use br, or a method for partial labels"
            )
        self.__dict__.pop("_members", None)
        positive = sp.csr_array(Y.to_numpy() == 1)
        ends = positive.indptr.tolist()
        columns = positive.indices.tolist()  # napkinXC needs Python integers
        labels = [columns[start:stop] for start, stop in pairwise(ends)]
        with tempfile.TemporaryDirectory() as folder:
            self._tree_in(folder).fit(_features(X), labels)
            self.files_ = {
                path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8)
                for path in sorted(Path(folder).rglob("*"))
                if path.is_file()
            }

    def _predict_proba(self, X: Any) -> np.ndarray:
        if not hasattr(self, "_members"):
            self._read_files()
        scored = [member.label_probabilities(X, self.n_labels_) for member in self._members]
        return np.mean(scored, axis=0)

    def _read_files(self) -> None:
        """Read the trees, without napkinXC, which trusts its files."""
        folders = [name.removesuffix("tree.bin") for name in self.files_ if "tree.bin" in name]
        if len(folders) != self.n_trees:
            raise InputError(f"there are files of {len(folders)} label trees, not {self.n_trees}")
        self._members = [
            read_node_classifiers(
                self.files_[folder + "tree.bin"].tobytes(),
                self.files_[folder + "weights.bin"].tobytes(),
                n_features=self._n_columns,
                n_labels=self.n_labels_,
            )
            for folder in folders
        ]

    def _tree_in(self, folder: str) -> Any:
        models = require("napkinxc.models", "trees")
        return models.PLT(
            folder,
            ensemble=self.n_trees if self.n_trees > 1 else 0,
            max_leaves=self.max_leaves,
            liblinear_c=self.C,
            liblinear_solver="L2R_LR",  # the default shuffles by a generator without a seed
            threads=self.n_jobs,
            seed=int(self._generator().randint(2**31 - 1)),
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name != "_members"}

    def _state(self) -> dict[str, Any]:
        return {"names": list(self.files_), **_numbered(self.files_)}

    def _set_state(self, state: Any) -> None:
        self.files_ = {name: state[f"file_{k}"] for k, name in enumerate(state["names"])}
        self._read_files()


def _numbered(files: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"file_{k}": content for k, content in enumerate(files.values())}


def _features(X: Any) -> sp.csr_matrix:
    return sp.csr_matrix(X, dtype=np.float32)
