"""Batches: every row once an epoch, the same from sparse and dense, shares that add up."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.batches import Batches
from labelweave.nn.process_rows import draw_rows, held_share, share_of
from labelweave.nn.scaling import fit_scaling


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.random((23, 4)) * (rng.random((23, 4)) < 0.5)
    Y = (rng.random((23, 3)) < 0.3).astype(float)
    Y[4, 1] = np.nan
    return X, Y


def test_an_epoch_holds_every_row_once_with_its_labels(data):
    X, Y = data
    batches = Batches(X, as_labels(Y), batch_size=5, seed=3)
    seen = list(batches.epoch(0))
    assert len(seen) == len(batches) == 5
    assert sorted(len(batch.rows) for batch in seen) == [4, 4, 5, 5, 5]
    rows = torch.cat([batch.rows for batch in seen]).numpy()
    assert sorted(rows) == list(range(23))
    np.testing.assert_array_equal(torch.cat([b.x for b in seen]), X[rows].astype(np.float32))
    np.testing.assert_array_equal(torch.cat([b.y for b in seen]), Y[rows])


def test_the_order_depends_on_seed_and_epoch_alone(data):
    def order(seed, epoch):
        batches = Batches(data[0], batch_size=5, seed=seed).epoch(epoch)
        return torch.cat([batch.rows for batch in batches]).tolist()

    assert order(3, 1) == order(3, 1)
    assert order(3, 1) != order(3, 2)
    assert order(3, 1) != order(4, 1)


def test_an_epoch_can_be_entered_in_the_middle(data):
    batches = Batches(data[0], batch_size=5)
    rows = [batch.rows.tolist() for batch in batches.epoch(2)]
    assert [batch.rows.tolist() for batch in batches.epoch(2, start=3)] == rows[3:]


@pytest.mark.parametrize("scale", ["none", "standard", "max-abs", "auto"])
@pytest.mark.parametrize("absent", ["negative", "unknown"])
def test_sparse_equals_dense(data, scale, absent):
    X, Y = data
    sparse_X = sp.csr_array(X)
    labels = as_labels(sp.csr_array(np.nan_to_num(Y)), absent=absent)
    dense = Batches(X, labels.to_dense(), batch_size=6, scaling=fit_scaling(X, scale))
    sparse = Batches(sparse_X, labels, batch_size=6, scaling=fit_scaling(sparse_X, scale))
    for one, other in zip(dense.epoch(0), sparse.epoch(0), strict=True):
        torch.testing.assert_close(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)


def test_the_shares_of_the_processes_make_up_the_global_batch(data):
    X, Y = data
    batches = Batches(X, as_labels(Y), batch_size=7)
    parts = [Batches(X, as_labels(Y), batch_size=7, rank=rank, world=3) for rank in range(3)]
    for batch, *shares in zip(batches.epoch(1), *(part.epoch(1) for part in parts), strict=True):
        assert torch.cat([share.rows for share in shares]).tolist() == batch.rows.tolist()
        assert {share.share.total for share in shares} == {len(batch.rows)}


def test_too_small_batches_for_the_processes_are_refused(data):
    with pytest.raises(InputError, match="1 rows cannot be shared by 2 processes"):
        Batches(data[0], batch_size=1, world=2)


def test_an_epoch_of_a_given_number_of_steps(data):
    batches = Batches(data[0], batch_size=10, steps_per_epoch=7)
    seen = [batch.rows for batch in batches.epoch(0)]
    assert [len(rows) for rows in seen] == [10] * 7
    counts = torch.bincount(torch.cat(seen), minlength=23)
    assert counts.min() >= 3
    assert counts.max() <= 4


def test_random_numbers_of_a_row_do_not_depend_on_the_shares():
    torch.manual_seed(0)
    numbers = draw_rows(torch.zeros(7, 30), torch.Tensor.normal_)
    for rank in range(3):
        share = share_of(7, rank, 3)
        torch.manual_seed(0)
        with held_share(share):
            drawn = draw_rows(torch.zeros(share.stop - share.start, 30), torch.Tensor.normal_)
        torch.testing.assert_close(drawn, numbers[share.start : share.stop], rtol=0, atol=0)
    with held_share(share_of(7, 0, 2)), pytest.raises(ValueError, match="not this process's"):
        draw_rows(torch.zeros(7, 2), torch.Tensor.normal_)


def test_read_only_and_integer_features(data):
    X = data[0].astype(np.float32)
    X.flags.writeable = False
    next(Batches(X, batch_size=5).epoch(0)).x.zero_()
    assert X.any()
    tokens = np.arange(12).reshape(6, 2)
    assert next(Batches(tokens, batch_size=6).in_order()).x.dtype == torch.int64
