"""The plan: by the size of the data and the effort."""

import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.dependent.weave_members import Member, list_members
from labelweave.dependent.weave_plan import EFFORTS, make_plan
from labelweave.labels import as_labels

YEAST = DataSize(1500, 103, 103.0, 14, 6355)
MILLION = DataSize(1_000_000, 50, 50.0, 20, 4_000_000)


def plan(size, effort):
    chosen = EFFORTS[effort]
    X = np.ones((20, size.features))
    members = list_members("auto", X, size.labels, n_trees=chosen.n_trees)
    return make_plan(members, size, chosen, chosen.max_folds, chosen=False)


def test_a_wide_table_of_many_labels_has_several_members():
    """Boosted trees of all labels are beyond the effort here; they must not be tried alone."""
    table = lw.Table(pd.DataFrame(np.ones((20, 260))).assign(place=["a", "b"] * 10))
    size = DataSize.of(table, as_labels(np.ones((20, 40))))
    assert size.features == 264
    members = list_members("auto", table, 40)
    standard = EFFORTS["standard"]
    made = make_plan(members, size.with_rows(500), standard, standard.max_folds, chosen=False)
    names = [member.name for member in made.members]
    assert "boosted-trees" not in names
    assert names[:4] == ["extra-trees", "random-forest", "br", "ls-svm"]


@pytest.mark.parametrize("size", [YEAST, MILLION])
def test_more_effort_tries_more(size):
    quick, standard, best = (plan(size, effort) for effort in EFFORTS)
    for less, more in ((quick, standard), (standard, best)):
        assert less.trial_seconds < more.trial_seconds or less == more
        assert less.n_rows * less.n_folds <= more.n_rows * more.n_folds


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_plan_stays_within_the_effort(effort):
    made = plan(YEAST, effort)
    assert made.trial_seconds <= EFFORTS[effort].seconds
    assert made.n_folds == EFFORTS[effort].max_folds
    assert made.n_rows == YEAST.rows
    tried = {member.name for member in made.members}
    for member, reason in made.left_out:
        assert member.name not in tried
        assert "beyond the effort" in reason


def test_large_data_are_tried_on_a_sample():
    made = plan(MILLION, "standard")
    assert made.n_folds == 1
    assert made.n_rows < MILLION.rows
    cheap = {
        member.name: last for member, last in zip(made.members, made.refit_seconds, strict=True)
    }
    assert cheap["br"] < 100  # to compare the others with
    assert made.describe(MILLION.rows).startswith(
        f"{len(made.members)} members, 1 fold of {made.n_rows:,} of 1,000,000 rows: about "
    )


def test_members_that_the_caller_chose_are_all_tried():
    members = [Member(f"mlp-{k}", lw.make("mlp"), True) for k in range(9)]
    made = make_plan(members, YEAST, EFFORTS["quick"], 5, chosen=True)
    assert made.members == members
    assert made.left_out == []


def test_costs_grow_with_the_data():
    small, large = YEAST, DataSize(15_000, 206, 206.0, 28, 60_000)
    for member in list_members("auto", np.ones((20, 103)), 14):
        assert 0 < seconds_per_fit(member, small) < seconds_per_fit(member, large)
    assert seconds_per_fit(Member("x", lw.make("haram"), False), small) is None
