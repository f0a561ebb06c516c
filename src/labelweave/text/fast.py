"""Static vectors of tokens, distilled from a sentence encoder: texts in microseconds."""

from __future__ import annotations

import hashlib
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

from labelweave.exceptions import require
from labelweave.text.checks import checked_texts
from labelweave.text.embedders import unit_rows
from labelweave.text.encoder_files import MINILM, encoder_checksum, encoder_folder
from labelweave.text.tfidf import string_tags

__all__ = ["FastEmbedder", "distil"]

_COMMON = 1e-4  # how far frequent tokens are damped
_TOKENS_AT_ONCE = 512


class FastEmbedder(TransformerMixin, BaseEstimator):
    """Vectors of length one from a table of token vectors, far quicker than the encoder.

    The table holds what the encoder gives for each token of its vocabulary alone, centred,
    reduced to its main components and damped for frequent tokens [1]_; a text is the sum over
    its tokens. It is distilled once, in about half a minute, and kept in the cache folder.

    Parameters
    ----------
    model : str or path, default="all-MiniLM-L6-v2"
        The encoder, as for :class:`~labelweave.text.sentence.SentenceEmbedder`.
    dimensions : int, default=256
        Length of the vectors; at most that of the encoder.
    cache : bool or path, default=True
        Folder of the tables; True is ``embeddings`` in labelweave's cache folder, False keeps
        none.
    verbose : int, default=0

    Attributes
    ----------
    table_ : ndarray of shape (n_tokens, dimensions)
    checksum_ : str
        Of the files of the encoder.

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
        """Distil the encoder, or read the table that was distilled before."""
        self._validate_params()
        folder = encoder_folder(str(self.model))
        self.checksum_ = encoder_checksum(folder)
        kept = self._kept_table()
        if kept is not None and kept.is_file():
            from safetensors.numpy import load_file

            self.table_ = load_file(kept)["table"]
        else:
            self.table_ = distil(folder, self.dimensions, verbose=self.verbose)
            if kept is not None:
                _keep(self.table_, kept)
        self.tokenizer_json_ = (folder / "tokenizer.json").read_text("utf-8")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """One vector per text, as a float32 array; zero for a text without a known token."""
        check_is_fitted(self)
        tokens = _tokenizer(self.tokenizer_json_).encode_batch_fast(
            checked_texts(X), add_special_tokens=False
        )
        lengths = [len(text.ids) for text in tokens]
        indices = np.concatenate([np.asarray(text.ids, dtype=np.int64) for text in tokens])
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

    def _kept_table(self) -> Path | None:
        if self.cache is False:
            return None
        if self.cache is True:
            from labelweave.files import cache_folder

            folder = cache_folder() / "embeddings"
        else:
            folder = Path(self.cache)
        name = hashlib.sha256(f"{self.checksum_} {self.dimensions}".encode()).hexdigest()[:24]
        return folder / f"static-{name}.safetensors"


def distil(folder: Path, dimensions: int, *, verbose: int = 0) -> np.ndarray:
    """Vectors of every token of an encoder's vocabulary, as a float32 table."""
    torch = require("torch", "text")
    from labelweave.progress import track
    from labelweave.text.sentence import _loaded

    network = _loaded(str(folder), "cpu")
    tokenizer = network.tokenizer
    ids = np.arange(len(tokenizer))
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    special = np.array(sorted(tokenizer.all_special_ids))
    vectors = []
    blocks = [ids[at : at + _TOKENS_AT_ONCE] for at in range(0, len(ids), _TOKENS_AT_ONCE)]
    for block in track(blocks, "distilling the encoder", verbose=verbose):
        inputs = torch.tensor([[first, int(token), last] for token in block])
        with torch.inference_mode():
            output = network({"input_ids": inputs, "attention_mask": torch.ones_like(inputs)})
        vectors.append(output["sentence_embedding"].numpy())
    table = np.concatenate(vectors).astype(np.float64)
    ordinary = np.setdiff1d(ids, special)
    table -= table[ordinary].mean(axis=0)
    _, axes = np.linalg.eigh(table[ordinary].T @ table[ordinary])
    table = table @ axes[:, ::-1][:, :dimensions]
    # Vocabularies are sorted by frequency: Zipf's law gives the share of a token.
    share = 1 / np.arange(2, len(table) + 2)
    share /= share.sum()
    table *= (_COMMON / (_COMMON + share))[:, None]
    table[special] = 0
    return table.astype(np.float32)


def _keep(table: np.ndarray, path: Path) -> None:
    from safetensors.numpy import save_file

    from labelweave.files import atomic_path

    with atomic_path(path) as temporary:
        save_file({"table": table}, temporary)


@lru_cache(maxsize=4)
def _tokenizer(text: str) -> Any:  # reading it takes longer than a short text
    tokenizer = require("tokenizers", "text").Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
