"""A batch for the objectives, and what must hold of it when processes share it."""

import torch

from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import held_share, share_of


def make_batch(n_rows=7, n_features=4, n_labels=5, unknown=0.0):
    """Random rows, the first without a label; a share of the labels is unknown."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n_rows, n_features, generator=generator)
    y = (torch.rand(n_rows, n_labels, generator=generator) < 0.4).float()
    y[0] = 0
    hide = torch.rand(n_rows, n_labels, generator=generator) < unknown
    return Batch(x, y.masked_fill(hide, torch.nan), torch.arange(n_rows))


def check_shares_add_up(task, terms_of):
    """Two processes with half the rows each see the noise and the dropout of one with all."""
    batch = make_batch(8, unknown=0.2)
    terms = terms_of(task, batch)
    halves = []
    for rank in range(2):
        share = share_of(8, rank, 2)
        rows = slice(share.start, share.stop)
        with held_share(share):
            part = Batch(batch.x[rows], batch.y[rows], batch.rows[rows], share)
            halves.append(terms_of(task, part))
    for name, value in terms.items():
        assert torch.isclose((halves[0][name] + halves[1][name]) / 2, value, rtol=1e-4), name
