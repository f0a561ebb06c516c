"""Base of the methods that predict unseen labels and whose label set can change after `fit`."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self, final

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from labelweave.base import MultiLabelClassifier
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix
from labelweave.text.checks import checked_texts
from labelweave.text.embedders import make_embedder, unit_rows
from labelweave.text.finetuning import fine_tune, learn_map
from labelweave.text.tfidf import string_tags
from labelweave.thresholds import PerLabelThreshold
from labelweave.unseen._fusion.label_table import (
    LabelNames,
    LabelTable,
    checked_new_labels,
    label_text,
)

__all__ = ["GROUPS", "PUBLISHED_STEPS", "ZeroShotClassifier"]

GROUPS = ("all", "seen", "unseen")
FINETUNE = ("map", "full")
PUBLISHED_STEPS = 2_000_000 // 32  # the XML0 paper's two million pairs, in batches of 32


def is_per_label(threshold: Any) -> bool:
    """Whether a rule has one threshold per label.

    >>> is_per_label("per-label"), is_per_label("tuned")
    (True, False)
    """
    return isinstance(threshold, PerLabelThreshold) or str(threshold).startswith("per-label")


class ZeroShotClassifier(MultiLabelClassifier):
    """Base of the methods for labels without training examples.

    Parameters
    ----------
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="minilm"
        Embedder of label texts and documents; see :mod:`labelweave.text`.
    finetune : {"map", "full"} or None, default=None
        Fine-tune on the seen labels, so that documents are closer to the texts of their labels.
        "map" learns a matrix that is applied after the encoder, in seconds; "full" trains the
        encoder itself.
    finetune_steps : int, optional
        Number of training steps; by default 200 for a map and 100 for the encoder.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`. One threshold per label
        (``"per-label"``) is refused, because it cannot be tuned for unseen labels.

    Attributes
    ----------
    label_names_ : ndarray of str
        Seen labels, followed by the labels that were added.
    encoder_ : transformer
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "encoder": [HasMethods(["fit", "transform"]), str],
        "finetune": [StrOptions(set(FINETUNE)), None],
        "finetune_steps": [Interval(Integral, 1, None, closed="left"), None],
    }
    finetune: str | None = None
    finetune_steps: int | None = None
    document_map_: np.ndarray | None = None
    encoder: Any

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _label_probabilities(self, X: Any, rows: np.ndarray) -> np.ndarray:
        """P(label | x) for the labels in these rows of the table."""

    # -- fitting -----------------------------------------------------------------------

    @final
    def fit(self, X: Any, y: Any, *, labels: Any = None, validation: Any = None) -> Self:
        """Fit to documents and the labels that have examples.

        Parameters
        ----------
        X : list of texts
        y : labels of the documents
        labels : mapping of str to str, or sequence of str, optional
            Label names, with descriptions if it is a mapping. Names that do not occur in `y` are
            added as unseen labels.
        validation : Dataset or (X, Y), optional
            Validation documents; see :class:`~labelweave.base.MultiLabelClassifier`.
        """
        if not isinstance(labels, Mapping | None):
            labels = list(labels)
            twice = [name for name, times in Counter(labels).items() if times > 1]
            if twice:
                raise InputError(f"the label name {twice[0]!r} is given twice: names must differ")
        described = labels if isinstance(labels, Mapping) else dict.fromkeys(labels or (), "")
        self._descriptions = {str(name): str(text or "") for name, text in described.items()}
        if is_per_label(self.threshold):
            raise InputError(
                "one threshold per label cannot be tuned for unseen labels: use threshold='tuned'"
            )
        super().fit(X, y, validation=validation)
        known = set(self.label_names_)
        unseen = {name: text for name, text in self._descriptions.items() if name not in known}
        if unseen:
            self.add_labels(list(unseen), unseen)
        return self

    def _checked_targets(self, Y: Any) -> LabelMatrix:
        labels = super()._checked_targets(Y)
        for name, text in self._descriptions.items():
            if text and name in labels.names:
                self.label_descriptions_[name] = text
        checked_new_labels(labels.names, self.label_descriptions_, {})
        return labels

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if capabilities(self).vectors and not is_texts(X) and not self._lacks_texts(X, reset):
            return super()._checked_features(X, reset=reset)
        texts = np.empty(len(checked := checked_texts(X)), dtype=object)
        texts[:] = checked
        return texts

    def _lacks_texts(self, X: Any, reset: bool) -> bool:
        """Whether X is a list without texts, for a model that was fitted to texts."""
        is_fitted_to_texts = not reset and not hasattr(self, "n_features_in_")
        return is_fitted_to_texts and np.asarray(X, dtype=object).ndim == 1

    def _start_table(self, documents: Sequence[str], n_columns: int) -> None:
        """Fit the encoder and fill the table with the seen labels."""
        texts = self._texts_of(self.label_names_)
        self.encoder_ = make_embedder(self.encoder).fit([*documents, *texts])
        self.table_ = LabelTable(self._embed(texts), np.arange(n_columns))

    def _fine_tune(self, X: Any, Y: LabelMatrix, columns: np.ndarray) -> None:
        """Fine-tune the encoder, or learn a map after it, on the labels of these columns."""
        self.document_map_: np.ndarray | None = None
        if self.finetune is None:
            return
        positive = sp.csr_array(Y.positive())[:, columns].astype(np.float32)
        seed = int(self._generator().randint(np.iinfo(np.int32).max))
        documents = X.tolist()
        texts = self._texts_of(self.label_names_[columns])
        options = {} if self.finetune_steps is None else {"steps": self.finetune_steps}
        if self.finetune == "full":
            self.encoder_ = fine_tune(
                self.encoder_, documents, texts, positive, seed=seed, **options
            )
            vectors = self._embed(self._texts_of(self.label_names_))
            self.table_ = LabelTable(vectors, self.table_.columns)
        else:
            vectors = self.encoder_.transform(documents)
            if sp.issparse(vectors):
                raise InputError("a map needs dense vectors: use the encoder 'minilm' or 'fast'")
            labels = self.table_.vectors(columns)
            self.document_map_ = learn_map(vectors, labels, positive, seed=seed, **options)

    def _embed(self, texts: Sequence[str]) -> Any:
        return self.encoder_.transform(list(texts))

    def _embed_documents(self, texts: Sequence[str]) -> Any:
        vectors = self._embed(texts)
        return vectors if self.document_map_ is None else unit_rows(vectors @ self.document_map_)

    def _texts_of(self, names: Iterable[str]) -> list[str]:
        return [label_text(name, self.label_descriptions_.get(name)) for name in names]

    # -- changes of the label set ------------------------------------------------------

    @property
    def label_names_(self) -> np.ndarray:
        """Names of all labels: seen labels, followed by the labels that were added."""
        if "_label_names" not in vars(self):
            raise AttributeError("label_names_")  # the estimator is not fitted
        return self._label_names.array()

    @label_names_.setter
    def label_names_(self, names: Sequence[str] | np.ndarray) -> None:
        self._label_names = LabelNames(names)

    @property
    def seen_labels_(self) -> list[str]:
        """Names of the labels with training examples."""
        return self._label_names.at(self.table_.seen_rows).tolist()

    @property
    def unseen_labels_(self) -> list[str]:
        """Names of the labels without training examples."""
        return self._label_names.at(self.table_.unseen_rows).tolist()

    def add_labels(
        self,
        names: Iterable[str] | str,
        descriptions: Mapping[str, str] | Sequence[str] | None = None,
    ) -> Self:
        """Add labels without training examples. Nothing is trained.

        Parameters
        ----------
        names : sequence of str
        descriptions : mapping of str to str, or sequence of str, optional
            Longer texts, which are embedded together with the names.
        """
        check_is_fitted(self)
        names = [names] if isinstance(names, str) else list(names)
        added = checked_new_labels(names, descriptions, self._states_of(names))
        if not added:
            return self
        texts = [label_text(name, text) for name, text in added.items()]
        vectors = self._embed(texts)
        self.label_descriptions_.update({name: text for name, text in added.items() if text})
        self._labels_added(self.table_.append(vectors), texts)
        self._label_names.add(list(added))
        self._count_labels()
        return self

    def remove_labels(self, names: Iterable[str] | str) -> Self:
        """Remove labels, seen or unseen. Label fusion ignores a removed seen label as well."""
        check_is_fitted(self)
        names = list(dict.fromkeys([names] if isinstance(names, str) else names))
        rows = np.array([self._row_of(name) for name in names], dtype=np.int64)
        if len(rows) == len(self._label_names):
            raise InputError("the last label cannot be removed: a model has at least one")
        self._labels_removed(rows)
        self.table_.remove(rows)
        for name in names:
            self.label_descriptions_.pop(name, None)
        self._label_names.remove(names)
        self._count_labels()
        return self

    def rename_label(self, old: str, new: str, description: str | None = None) -> Self:
        """Rename a label. `description` replaces the old description; None keeps it."""
        check_is_fitted(self)
        row = self._row_of(old)
        known = self._states_of([new]) if new != old else {}
        text = self.label_descriptions_.get(old, "") if description is None else description
        checked_new_labels([new], [text], known)
        words = label_text(new, text)
        vector = self._embed([words])
        self.label_descriptions_.pop(old, None)
        if text:
            self.label_descriptions_[new] = text
        self.table_.replace(row, vector)
        self._label_renamed(row, words)
        self._label_names.rename(old, new)
        return self

    def _row_of(self, name: str) -> int:
        row = self._label_names.row(name)
        if row is None:
            raise InputError(f"there is no label {name!r} in the model")
        return row

    def _states_of(self, names: Iterable[str]) -> dict[str, str]:
        """Map each name that is a label of the model to "seen" or "unseen"."""
        columns = self.table_.columns
        rows = {name: self._label_names.row(name) for name in names if isinstance(name, str)}
        return {
            name: "seen" if columns[row] >= 0 else "unseen"
            for name, row in rows.items()
            if row is not None
        }

    def _count_labels(self) -> None:
        self.n_labels_ = len(self._label_names)
        self.classes_ = np.broadcast_to([0, 1], (self.n_labels_, 2))

    def _labels_added(self, rows: np.ndarray, texts: list[str]) -> None:
        """Called after labels were added in these rows of the table."""

    def _labels_removed(self, rows: np.ndarray) -> None:
        """Called before the labels of these rows are removed."""

    def _label_renamed(self, row: int, text: str) -> None:
        """Called after the text of the label in this row was changed."""

    # -- prediction --------------------------------------------------------------------

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self._label_probabilities(X, self.table_.rows)

    def rank(self, X: Any, k: int = 10, *, among: str = "all") -> list[list[tuple[str, float]]]:
        """Return the k likeliest labels of each document with their probabilities.

        Parameters
        ----------
        X : list of texts
        k : int, default=10
        among : {"all", "seen", "unseen"}, default="all"
            Which labels are ranked.
        """
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        rows = self._rows_of_group(among)
        scores = self._label_probabilities(X, rows)
        names = self._label_names.at(rows)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [
            [(str(names[j]), float(row[j])) for j in order]
            for row, order in zip(scores, best, strict=True)
        ]

    def _rows_of_group(self, among: str) -> np.ndarray:
        if among not in GROUPS:
            raise InputError(f"among is one of {', '.join(GROUPS)}, not {among!r}")
        table = self.table_
        return {"all": table.rows, "seen": table.seen_rows, "unseen": table.unseen_rows}[among]

    # -- persistence and tags ----------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        vectors, columns = self.table_.compact()
        return {
            "text_encoder": self.encoder_,
            "vectors": vectors,
            "columns": columns,
            "mapped": self.document_map_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.encoder_ = state["text_encoder"]
        self.table_ = LabelTable(state["vectors"], state["columns"])
        self.document_map_ = state["mapped"]

    def __sklearn_tags__(self) -> Any:
        tags = string_tags(super().__sklearn_tags__())
        tags.capabilities.new_labels = True
        tags.capabilities.label_prevalence = False  # unknown for unseen labels
        return tags
