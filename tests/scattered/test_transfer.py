"""ANT's targets: transfer and integration against a plain re-computation, one row at a time."""

import numpy as np
import pytest
from scattered_data import fake_chains, permuted
from scipy.special import expit

from labelweave.exceptions import LabelweaveWarning
from labelweave.scattered.integration import integrate
from labelweave.scattered.opinions import ask_teachers, join_teachers
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.transfer import transfer


def slow_targets(teachers, x, max_rounds=10):
    """Eq. 1 to 5 for one row, with dictionaries of label names."""

    def bounded(values):
        return np.clip(values, -9.21024, 9.21024)

    first = [
        dict(zip(t.labels, bounded(t.model.chain_logits(x[None]))[0], strict=True))
        for t in teachers
    ]
    variants = [[own] for own in first]
    told = set()
    news = [(t, label) for t, own in enumerate(first) for label in own if own[label] > 0]
    for _ in range(max_rounds):
        best = [{c: max(v[c] for v in variants[t]) for c in first[t]} for t in range(len(first))]
        loudest = {}
        for t, label in news:
            loudest[label] = max(loudest.get(label, -np.inf), best[t][label])
        found = []
        for t, own in enumerate(first):
            for label, value in loudest.items():
                if label in own and best[t][label] <= 0 and (t, label) not in told:
                    start = np.array([{**own, label: value}[name] for name in teachers[t].labels])
                    new = bounded(teachers[t].model.chain_logits(x[None], start=start[None]))[0]
                    found.append((t, label, dict(zip(teachers[t].labels, new, strict=True))))
        if not found:
            break
        for t, label, new in found:
            told.add((t, label))
            variants[t].append(new)
        news = [
            (t, label)
            for t in range(len(first))
            for label in first[t]
            if best[t][label] <= 0 < max(v[label] for v in variants[t])
        ]
    targets = {}
    for label in sorted({label for own in first for label in own}):
        candidates = [v[label] for own in variants for v in own if label in v]
        positive = any(value > 0 for value in candidates)
        targets[label] = expit(max(candidates) if positive else min(candidates))
    return np.array(list(targets.values())), len(told)


def opinions_of(teachers, X):
    return ask_teachers(teachers, join_teachers(teachers), X)


@pytest.mark.parametrize("n_teachers", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_against_the_equations_row_by_row(n_teachers, seed):
    teachers = fake_chains(seed=seed)[:n_teachers]
    X = np.random.default_rng(seed).normal(size=(60, 4))
    opinions = opinions_of(teachers, X)
    found = transfer(opinions, X)
    slow = [slow_targets(teachers, x) for x in X]
    assert np.allclose(integrate(found.logits, "positive"), [row for row, _ in slow], atol=1e-4)
    assert found.n_told == sum(n for _, n in slow) > 0


def test_later_rounds_happen_and_can_be_cut():
    X = np.random.default_rng(0).normal(size=(400, 4))
    opinions = opinions_of(fake_chains(), X)
    assert transfer(opinions, X).n_rounds >= 2
    one = transfer(opinions, X, max_rounds=1)
    assert one.n_rounds == 1
    none = transfer(opinions, X, max_rounds=0)
    assert none.n_told == 0
    assert np.array_equal(none.logits, opinions.logits, equal_nan=True)


def test_order_of_teachers_and_labels_changes_nothing():
    X = np.random.default_rng(1).normal(size=(200, 4))
    teachers = fake_chains()
    expected = transfer(opinions_of(teachers, X), X)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixed = [permuted(teachers[t], rng.permutation(3)) for t in rng.permutation(3)]
        opinions = opinions_of(mixed, X)
        assert opinions.names == opinions_of(teachers, X).names
        found = transfer(opinions, X)
        assert np.allclose(found.logits, expected.logits, atol=1e-5, equal_nan=True)
        assert found.n_told == expected.n_told


def test_a_black_box_tells_but_is_told_nothing():
    X = np.random.default_rng(2).normal(size=(100, 4))
    one, two, _ = fake_chains()
    deaf = Teacher(two.model.predict_proba, two.labels, name="two")
    opinions = opinions_of([one, deaf], X)
    found = transfer(opinions, X)
    place = opinions.names.index("two")
    assert np.array_equal(found.logits[place], opinions.logits[place], equal_nan=True)
    other = opinions.names.index("one")
    assert not np.array_equal(found.logits[other], opinions.logits[other], equal_nan=True)


def test_teachers_that_share_nothing_tell_nothing():
    X = np.random.default_rng(2).normal(size=(50, 4))
    one, two, _ = fake_chains()
    other = Teacher(two.model, ["p", "q", "r"])
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        opinions = opinions_of([one, other], X)
    assert transfer(opinions, X).n_told == 0


def test_teachers_that_say_the_same_are_pointed_out():
    X = np.random.default_rng(2).normal(size=(50, 4))
    one = fake_chains()[0]
    twin = Teacher(one.model.predict_proba, one.labels, name="twin")
    with pytest.warns(LabelweaveWarning, match="say the same of every row"):
        opinions_of([one, twin], X)


def test_an_unsure_teacher_has_no_say():
    X = np.random.default_rng(3).normal(size=(200, 4))
    shy = [Teacher(t.model, t.labels, name=t.name, abstain=0.2) for t in fake_chains()]
    opinions = opinions_of(shy, X)
    p = expit(opinions.logits)
    unsure = np.abs(p - 0.5) < 0.2
    assert np.isnan(opinions.heard()[unsure]).all()
    assert np.isfinite(opinions.heard()[~unsure & ~np.isnan(p)]).all()
    assert transfer(opinions, X).n_told < transfer(opinions_of(fake_chains(), X), X).n_told
