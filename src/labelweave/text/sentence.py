"""Embeddings of texts by a sentence-transformers model, with a cache."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError, require
from labelweave.text.cache import EmbeddingCache, folder_of_cache
from labelweave.text.checks import checked_texts
from labelweave.text.embedders import unit_rows
from labelweave.text.encoder_files import KNOWN_ENCODERS, MINILM, encoder_checksum, encoder_folder
from labelweave.text.tfidf import string_tags

__all__ = ["SentenceEmbedder"]

_LONGEST_WORD = 100  # characters; wordpiece does not split longer words
_SAVE_EVERY = 16  # batches
_MAX_WIDTH = 1 << 16  # numbers of a vector


class SentenceEmbedder(TransformerMixin, BaseEstimator):
    """Vectors of length one by a sentence-transformers model.

    The default model, all-MiniLM-L6-v2, is installed with the ``text`` extra and needs no network
    access. Each text is embedded once: vectors are cached by a hash of the text, in one file per
    encoder.

    Parameters
    ----------
    model : str or path, default="all-MiniLM-L6-v2"
        A folder that holds a sentence-transformers model, or a name of the Hugging Face hub. A
        saved model with another encoder than the default is loaded by
        ``lw.load(path, trusted=[model])``.
    batch_size : int, default=32
        Number of texts per batch; a batch holds texts of similar length.
    max_tokens : int, optional
        Number of tokens of a text that are read; by default the limit of the model (MiniLM: 256).
    cache : bool or path, default=True
        Folder of the cached vectors; True is ``embeddings`` in labelweave's cache folder
        (``LABELWEAVE_CACHE``), False disables the cache.
    device : str, default="cpu"
    verbose : int, default=0
        1 shows a progress bar in a terminal.

    Attributes
    ----------
    checksum_ : str
        Checksum of the files of the encoder. A model that was saved with another encoder is
        refused.
    weights_ : dict of str to tensor, or None
        Weights that fine-tuning has changed.
    n_features_out_ : int

    Notes
    -----
    A text that is empty or white space has the vector zero, so it is similar to no other text.

    Examples
    --------
    >>> embedder = SentenceEmbedder("path/of/a/model", max_tokens=64)
    >>> embedder.max_tokens
    64
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str, PathLike],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_tokens": [Interval(Integral, 1, None, closed="left"), None],
        "cache": ["boolean", str, PathLike],
        "device": [str],
        "verbose": ["verbose"],
    }
    _outside_parameters: ClassVar[dict[str, Container[str]]] = {"model": KNOWN_ENCODERS}
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("cache", "device", "verbose")

    def __init__(
        self,
        model: str | PathLike[str] = MINILM,
        *,
        batch_size: int = 32,
        max_tokens: int | None = None,
        cache: bool | str | PathLike[str] = True,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.batch_size = batch_size
        self.max_tokens = max_tokens
        self.cache = cache
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Locate the encoder; the texts are not used."""
        self._validate_params()
        folder = encoder_folder(str(self.model))
        self.checksum_ = encoder_checksum(folder)
        self.weights_: Mapping[str, Any] | None = None
        self.n_features_out_ = _width(folder, self._load)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one vector per text, as a float32 array."""
        check_is_fitted(self)
        texts = checked_texts(X)
        self._check_encoder()
        vectors = np.zeros((len(texts), self.n_features_out_), dtype=np.float32)
        by_text: dict[str, list[int]] = {}
        for i, text in enumerate(texts):
            if text.strip():
                by_text.setdefault(text, []).append(i)
        unique = list(by_text)
        cache = self._cache()
        known = {} if cache is None else cache.get(unique)
        for position, vector in known.items():
            vectors[by_text[unique[position]]] = vector
        missing = [text for i, text in enumerate(unique) if i not in known]
        if missing:
            self._encode(missing, by_text, vectors, cache)
        return vectors

    def _encode(
        self,
        texts: Sequence[str],
        by_text: Mapping[str, list[int]],
        out: np.ndarray,
        cache: EmbeddingCache | None,
    ) -> None:
        """Embed texts, the longest first, so that a batch holds texts of similar length."""
        from labelweave.progress import ProgressBar

        network = self.network()
        most = (self.max_tokens or network.max_seq_length or 512) * (_LONGEST_WORD + 1)
        texts = sorted(texts, key=len, reverse=True)
        step = self.batch_size * _SAVE_EVERY
        with ProgressBar("embedding texts", len(texts), verbose=self.verbose) as bar:
            for start in range(0, len(texts), step):
                part = texts[start : start + step]
                embedded = network.encode(
                    [text[:most] for text in part],  # the tokenizer would read the whole text
                    batch_size=self.batch_size,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
                embedded = unit_rows(np.asarray(embedded, dtype=np.float32))
                for text, vector in zip(part, embedded, strict=True):
                    out[by_text[text]] = vector
                if cache is not None:
                    cache.put(part, embedded)
                bar.advance(len(part))

    # -- the encoder -------------------------------------------------------------------

    def network(self) -> Any:
        """The SentenceTransformer, with fine-tuned weights if there are any."""
        import copy

        network = self._load(encoder_folder(str(self.model)))
        if self.weights_ is not None or self.max_tokens is not None:
            network = copy.deepcopy(network)  # the loaded network is shared
        if self.weights_ is not None:
            network.load_state_dict(dict(self.weights_))
        if self.max_tokens is not None:
            network.max_seq_length = self.max_tokens
        return network

    def with_weights(self, weights: Mapping[str, Any]) -> SentenceEmbedder:
        """Return the same embedder with other weights of its network."""
        from sklearn.base import clone

        tuned = clone(self)
        tuned.checksum_, tuned.n_features_out_ = self.checksum_, self.n_features_out_
        tuned.weights_ = {name: value.detach().clone() for name, value in weights.items()}
        return tuned

    def _load(self, folder: Path) -> Any:
        return _loaded(str(folder), self.device)

    def _check_encoder(self) -> None:
        checksum = encoder_checksum(encoder_folder(str(self.model)))
        if checksum != self.checksum_:
            raise InputError(
                f"the encoder {self.model} (checksum {checksum[:12]}) is not the one that this "
                f"model was made with ({self.checksum_[:12]}): install that one, or fit again"
            )

    def _cache(self) -> EmbeddingCache | None:
        folder = folder_of_cache(self.cache)
        if folder is None:
            return None
        tuned = "" if self.weights_ is None else f"-{_weights_checksum(self.weights_)}"
        return EmbeddingCache(folder / f"{self.checksum_[:24]}{tuned}-{self.max_tokens}.sqlite")

    # -- scikit-learn and persistence --------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """embedding_0, embedding_1, ..."""
        return np.array([f"embedding_{i}" for i in range(self.n_features_out_)], dtype=object)

    def _state(self) -> dict[str, Any]:
        return {
            "checksum": self.checksum_,
            "width": self.n_features_out_,
            "weights": None if self.weights_ is None else dict(self.weights_),
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.checksum_ = str(state["checksum"])
        self.n_features_out_ = int(state["width"])
        if not 1 <= self.n_features_out_ <= _MAX_WIDTH:
            raise InputError(f"an encoder has no vectors of {self.n_features_out_} numbers")
        self.weights_ = state["weights"]

    def __sklearn_tags__(self) -> Any:
        return string_tags(super().__sklearn_tags__())


@lru_cache(maxsize=2)
def _loaded(folder: str, device: str) -> Any:
    library = require("sentence_transformers", "text")
    from transformers.utils import logging

    has_bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # loading takes a second
    try:
        return library.SentenceTransformer(folder, device=device, local_files_only=True)
    finally:
        if has_bar:
            logging.enable_progress_bar()


def _width(folder: Path, load: Any) -> int:
    """Dimension of the vectors, read from the configuration if possible."""
    import json

    pooling = folder / "1_Pooling" / "config.json"
    modules = folder / "modules.json"
    if pooling.is_file() and modules.is_file() and "Dense" not in modules.read_text("utf-8"):
        facts = json.loads(pooling.read_text("utf-8"))
        named = [value for name, value in facts.items() if name.startswith("pooling_mode")]
        width = facts.get("embedding_dimension") or facts.get("word_embedding_dimension")
        if width and sum(bool(value) for value in named) == 1 and list not in map(type, named):
            return int(width)
    return int(load(folder).encode(["a"], show_progress_bar=False).shape[1])


def _weights_checksum(weights: Mapping[str, Any]) -> str:
    checksum = hashlib.sha256()
    for name in sorted(weights):
        checksum.update(name.encode())
        checksum.update(weights[name].detach().cpu().contiguous().numpy().tobytes())
    return checksum.hexdigest()[:16]
