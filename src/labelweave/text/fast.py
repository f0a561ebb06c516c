"""Embeddings of texts by a table of token vectors, distilled from a sentence encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from functools import lru_cache
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from labelweave.exceptions import InputError, require
from labelweave.text.cache import folder_of_cache
from labelweave.text.checks import checked_texts
from labelweave.text.embedders import unit_rows
from labelweave.text.encoder_files import KNOWN_ENCODERS, MINILM, encoder_checksum, encoder_folder
from labelweave.text.tfidf import string_tags

__all__ = ["FastEmbedder", "distil"]

_COMMON = 1e-4  # tokens with a larger share of the text get less weight
_BATCH = 512  # tokens per batch


class FastEmbedder(TransformerMixin, BaseEstimator):
    """Vectors of length one from a table of token vectors, much faster than the encoder.

    The table holds the embedding of each token of the encoder's vocabulary. They are centred,
    reduced to their main components and weighted, frequent tokens less than rare ones [1]_. A text
    is the sum over its tokens. The table is computed once, in about half a minute, and cached.

    Parameters
    ----------
    model : str or path, default="all-MiniLM-L6-v2"
        The encoder, as for :class:`~labelweave.text.sentence.SentenceEmbedder`.
    dimensions : int, default=256
        Dimension of the vectors; at most that of the encoder.
    cache : bool or path, default=True
        Folder of the cached tables; True is ``embeddings`` in labelweave's cache folder, False
        disables the cache.
    verbose : int, default=0
        1 shows a progress bar in a terminal.

    Attributes
    ----------
    table_ : ndarray of shape (n_tokens, dimensions)
    checksum_ : str
        Checksum of the files of the encoder.

    References
    ----------
    .. [1] S. Arora, Y. Liang and T. Ma. A simple but tough-to-beat baseline for sentence
       embeddings. ICLR 2017.

    Examples
    --------
    >>> FastEmbedder(dimensions=128).dimensions
    128
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [str, PathLike],
        "dimensions": [Interval(Integral, 1, None, closed="left")],
        "cache": ["boolean", str, PathLike],
        "verbose": ["verbose"],
    }
    _outside_parameters: ClassVar[dict[str, Container[str]]] = {"model": KNOWN_ENCODERS}
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("cache", "verbose")

    def __init__(
        self,
        model: str | PathLike[str] = MINILM,
        *,
        dimensions: int = 256,
        cache: bool | str | PathLike[str] = True,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.cache = cache
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Distil the encoder, or read the cached table."""
        self._validate_params()
        folder = encoder_folder(str(self.model))
        self.checksum_ = encoder_checksum(folder)
        path = self._cached_table()
        if path is not None and path.is_file():
            from safetensors.numpy import load_file

            self.table_ = load_file(path)["table"]
        else:
            self.table_ = distil(folder, self.dimensions, verbose=self.verbose)
            if path is not None:
                _store(self.table_, path)
        self.tokenizer_json_ = (folder / "tokenizer.json").read_text("utf-8")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return one vector per text, as a float32 array; zero for a text without known tokens."""
        check_is_fitted(self)
        tokens = _tokenizer(self.tokenizer_json_).encode_batch_fast(
            checked_texts(X), add_special_tokens=False
        )
        lengths = [len(text.ids) for text in tokens]
        indices = np.concatenate([np.asarray(text.ids, dtype=np.int64) for text in tokens])
        if indices.max(initial=0) >= len(self.table_):  # the product below would not notice
            raise InputError("the tokenizer of this embedder does not fit its table: fit it again")
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        counts = sp.csr_array(
            (np.ones(len(indices), dtype=np.float32), indices, indptr),
            shape=(len(tokens), len(self.table_)),
        )
        return unit_rows(counts @ self.table_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """embedding_0, embedding_1, ..."""
        return np.array([f"embedding_{i}" for i in range(self.table_.shape[1])], dtype=object)

    def __sklearn_tags__(self) -> Any:
        return string_tags(super().__sklearn_tags__())

    def _cached_table(self) -> Path | None:
        folder = folder_of_cache(self.cache)
        if folder is None:
            return None
        name = hashlib.sha256(f"{self.checksum_} {self.dimensions}".encode()).hexdigest()[:24]
        return folder / f"static-{name}.safetensors"


def distil(folder: Path, dimensions: int, *, verbose: int = 0) -> np.ndarray:
    """Return the vectors of all tokens of an encoder's vocabulary, as a float32 table."""
    torch = require("torch", "text")
    from labelweave.progress import track
    from labelweave.text.sentence import _loaded

    network = _loaded(str(folder), "cpu")
    tokenizer = network.tokenizer
    ids = np.arange(len(tokenizer))
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    special = np.array(sorted(tokenizer.all_special_ids))
    vectors = []
    batches = [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]
    for batch in track(batches, "distilling the encoder", verbose=verbose):
        inputs = torch.tensor([[first, int(token), last] for token in batch])
        with torch.inference_mode():
            output = network({"input_ids": inputs, "attention_mask": torch.ones_like(inputs)})
        vectors.append(output["sentence_embedding"].numpy())
    table = np.concatenate(vectors).astype(np.float64)
    ordinary = np.setdiff1d(ids, special)
    table -= table[ordinary].mean(axis=0)
    _, axes = np.linalg.eigh(table[ordinary].T @ table[ordinary])
    table = table @ axes[:, ::-1][:, :dimensions]
    # Vocabularies are sorted by frequency, so Zipf's law estimates the share of a token.
    share = 1 / np.arange(2, len(table) + 2)
    share /= share.sum()
    table *= (_COMMON / (_COMMON + share))[:, None]
    table[special] = 0
    return table.astype(np.float32)


def _store(table: np.ndarray, path: Path) -> None:
    from safetensors.numpy import save_file

    from labelweave.files import atomic_path

    with atomic_path(path) as temporary:
        save_file({"table": table}, temporary)


@lru_cache(maxsize=4)
def _tokenizer(text: str) -> Any:  # reading it takes longer than tokenizing a short text
    tokenizer = require("tokenizers", "text").Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
