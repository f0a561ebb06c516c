"""Batches of data in memory, sliced from tensors and not collected row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from labelweave.data.images.collection import Images
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.nn.process_rows import RowShare, share_of
from labelweave.nn.scaling import FeatureScaling

__all__ = ["Batch", "Batches"]


class Batch(NamedTuple):
    """Rows of a batch: features, targets (1, 0, NaN) and row numbers.

    `y` is None if there are no labels (at prediction), and `share` is None if this process
    computes all rows of the batch. `weight` holds optional weights of the entries of `y`, and
    `row_weight` those of the rows, whose mean over all rows of the data is 1.
    """

    x: Tensor
    y: Tensor
    rows: Tensor
    share: RowShare | None = None
    weight: Tensor | None = None
    row_weight: Tensor | None = None


class Batches:
    """The rows of X and Y in batches; sparse matrices are made dense one batch at a time.

    The batches of an epoch differ in size by one row at most, so that none is tiny. Their
    rows depend only on the seed and the number of the epoch.

    Parameters
    ----------
    X : ndarray or SciPy sparse of shape (n, d), or Images
        Batches of images are bytes of shape (n, 3, size, size); the next batches are decoded
        while one is used.
    Y : LabelMatrix, optional
    batch_size : int
        The largest number of rows per batch, over all processes.
    seed : int, default=0
    steps_per_epoch : int, optional
        Batches per epoch; by default an epoch is one pass over the rows.
    scaling : FeatureScaling, optional
        Applied once to dense X, and to each batch of sparse X.
    row_weight : ndarray of shape (n,), optional
        Weights of the rows; they are scaled to a mean of 1.
    device : torch.device
    rank, world : int
        The number of this process, and the number of processes.

    Examples
    --------
    >>> batches = Batches(np.zeros((5, 3)), batch_size=2)
    >>> [len(batch.rows) for batch in batches.epoch(0)]
    [1, 2, 2]
    """

    def __init__(
        self,
        X: Any,
        Y: LabelMatrix | None = None,
        *,
        batch_size: int,
        seed: int = 0,
        steps_per_epoch: int | None = None,
        scaling: FeatureScaling | None = None,
        row_weight: np.ndarray | None = None,
        device: str | torch.device = "cpu",
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.n_rows = X.shape[0]
        self.batch_size = batch_size
        self.seed = seed
        self.device = torch.device(device)
        self.rank, self.world = rank, world
        self.images = X if isinstance(X, Images) else None
        self.sparse_X = X if sp.issparse(X) else None
        self.scaling = scaling.on(self.device) if scaling and sp.issparse(X) else None
        if not sp.issparse(X) and self.images is None:
            X = as_tensor(X)
            self.X = X if scaling is None else scaling.apply(X)
        self.sparse_Y = Y if Y is not None and Y.is_sparse else None
        self.Y = None if Y is None or Y.is_sparse else as_tensor(Y.values)
        self.row_weight: Tensor | None = None
        if row_weight is not None:
            share = row_weight / row_weight.max()  # so that no sum is infinite
            self.row_weight = as_tensor(share / share.mean()).to(self.device)
        self.n_steps = steps_per_epoch or math.ceil(self.n_rows / batch_size)
        self.rows_per_epoch = batch_size * steps_per_epoch if steps_per_epoch else self.n_rows
        if world > self.rows_per_epoch // self.n_steps:
            raise InputError(
                f"a batch of {self.rows_per_epoch // self.n_steps} rows cannot be shared by "
                f"{world} processes: use larger batches or fewer processes"
            )

    def __len__(self) -> int:
        """Steps in an epoch."""
        return self.n_steps

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The shuffled batches of an epoch, from batch number `start` on."""
        generator = np.random.default_rng([self.seed, epoch])
        passes = math.ceil(self.rows_per_epoch / self.n_rows)
        order = np.concatenate([generator.permutation(self.n_rows) for _ in range(passes)])
        return self._batches(order[: self.rows_per_epoch], self.n_steps, start)

    def in_order(self) -> Iterator[Batch]:
        """All rows once, in their order."""
        n_batches = math.ceil(self.n_rows / self.batch_size)
        return self._batches(np.arange(self.n_rows), n_batches, 0)

    def _batches(self, order: np.ndarray, n_batches: int, start: int) -> Iterator[Batch]:
        batches: list[tuple[np.ndarray, RowShare | None]] = []
        for k in range(start, n_batches):
            rows = order[len(order) * k // n_batches : len(order) * (k + 1) // n_batches]
            share = None
            if self.world > 1:
                share = share_of(len(rows), self.rank, self.world)
                rows = rows[share.start : share.stop]
            batches.append((rows, share))
        if self.images is None:
            for rows, share in batches:
                yield self._take(rows, share, None)
            return
        pixels = self.images.batches([rows for rows, _ in batches])
        for (rows, share), images in zip(batches, pixels, strict=True):
            yield self._take(rows, share, images)

    def _take(self, rows: np.ndarray, share: RowShare | None, images: np.ndarray | None) -> Batch:
        index = torch.from_numpy(rows)
        if images is not None:
            x = torch.from_numpy(images).permute(0, 3, 1, 2).to(self.device)
        elif self.sparse_X is None:
            x = self.X.index_select(0, index).to(self.device)
        else:
            x = as_tensor(self.sparse_X[rows].toarray()).to(self.device)
            x = x if self.scaling is None else self.scaling.apply(x)
        if self.sparse_Y is not None:
            y = torch.from_numpy(self.sparse_Y[rows].to_numpy()).to(self.device)
        elif self.Y is not None:
            y = self.Y.index_select(0, index).to(self.device)
        else:
            y = None
        index = index.to(self.device)
        row_weight = None if self.row_weight is None else self.row_weight[index]
        return Batch(x, y, index, share, row_weight=row_weight)  # type: ignore[arg-type]


def as_tensor(values: np.ndarray) -> Tensor:
    """An array as a tensor, without a copy if possible; floats become float32."""
    if values.dtype.kind == "f":
        values = values.astype(np.float32, copy=False)
    if not values.flags.writeable:
        values = values.copy()  # torch has no read-only tensors
    return torch.from_numpy(np.ascontiguousarray(values))
