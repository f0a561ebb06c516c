"""ANT against its paper: each component against loops, and all of them row by row."""

import numpy as np
import pytest
from scattered_data import FakeChain, fake_chains, permuted
from scipy.special import expit, logit

from labelweave.exceptions import LabelweaveWarning
from labelweave.probabilities import log_odds
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.teacher_predictions import (
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.ant_transfer import (
    exchange_knowledge,
    knowledge_transfer,
    prediction_integrator,
    transfer_indicator,
)
from labelweave.scattered.teacher import LOGIT_EPS, Teacher


def random_logits(n_teachers=3, n_rows=30, n_labels=5, seed=0):
    """Logits of teachers that each predict some of the labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_teachers, n_rows, n_labels))
    specialized = rng.random((n_teachers, n_labels)) < 0.7
    return np.where(specialized[:, None, :], logits, np.nan)


@pytest.mark.parametrize("seed", range(3))
def test_transfer_indicator_against_all_relations(seed):
    logits = random_logits(seed=seed)
    transferor_logits, transferee = transfer_indicator(logits, logits > 0)
    m, n_rows, n_labels = logits.shape
    for i in range(n_rows):
        for c in range(n_labels):
            best, receivers = -np.inf, set()
            for one in range(m):
                for other in range(m):  # R: pairs of teachers that share y_c
                    if one == other or np.isnan(logits[[one, other], i, c]).any():
                        continue
                    p_one, p_other = expit(logits[one, i, c]), expit(logits[other, i, c])
                    if p_one > 0.5 >= p_other:  # T^one -> T^other
                        best = max(best, logits[one, i, c])
                        receivers.add(other)
            assert set(np.flatnonzero(transferee[:, i, c])) == receivers
            if receivers:
                assert transferor_logits[i, c] == best


def test_knowledge_transfer_against_one_run_at_a_time():
    rng = np.random.default_rng(0)
    logits, transferor_logits = rng.normal(size=(20, 4)), rng.normal(size=(20, 4))
    transferee = rng.random((20, 4)) < 0.3
    x, influence = rng.normal(size=(20, 4)), rng.normal(size=(4, 4))

    def chain(rows, initial):
        return x[rows] + initial @ influence

    rows, revised = knowledge_transfer(logits, transferor_logits, transferee, chain)
    run = 0
    for i in range(20):
        for c in range(4):
            if transferee[i, c]:
                initial = logits[i].copy()
                initial[c] = transferor_logits[i, c]  # Eq. 3
                assert rows[run] == i
                assert np.allclose(revised[run], x[i] + initial @ influence)
                run += 1
    assert run == len(rows)


@pytest.mark.parametrize("seed", range(3))
def test_prediction_integrator_against_equation_5(seed):
    logits = random_logits(seed=seed)
    p = prediction_integrator(logits)
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            candidates = [expit(z) for z in logits[:, i, j] if not np.isnan(z)]  # Eq. 4
            if not candidates:
                assert np.isnan(p[i, j])
            elif all(candidate <= 0.5 for candidate in candidates):
                assert p[i, j] == min(candidates)
            else:
                assert p[i, j] == max(candidates)


def slow_targets(teachers, x, *, keep_original="several", max_rounds=10):
    """Eq. 1 to 5 for one row, with dictionaries of label names."""

    def run(teacher, start=None):
        logits = teacher.model.chain_logits(x[None], start=start)[0]
        return dict(zip(teacher.labels, np.clip(logits, -9.21024, 9.21024), strict=True))

    def highest(t, label):
        return max(logits[label] for logits in predicted[t])

    original = [run(teacher) for teacher in teachers]  # Eq. 1 and 2
    predicted = [[logits] for logits in original]  # of each teacher: L^n, or its revisions L^n'
    received = set()
    positive = {(t, c) for t, logits in enumerate(original) for c in logits if logits[c] > 0}
    for _ in range(max_rounds):
        transferor = {}  # of each shared label y_c: the logit of the most confident T^m
        for t, c in positive:
            transferor[c] = max(transferor.get(c, -np.inf), highest(t, c))
        transfers = [
            (t, c)
            for t in range(len(teachers))
            for c in transferor
            if c in original[t] and highest(t, c) <= 0 and (t, c) not in received
        ]
        if not transfers:
            break
        if not received:
            first = {t for t, _ in transfers}  # the transferees of the first round
            in_several = len(first) > 1
        received.update(transfers)
        before = {(t, c) for t, logits in enumerate(original) for c in logits if highest(t, c) > 0}
        for t, teacher in enumerate(teachers):
            revisions = []
            for c in [c for receiver, c in transfers if receiver == t]:
                initial = {**original[t], c: transferor[c]}
                start = np.array([[initial[label] for label in teacher.labels]])
                revisions.append(run(teacher, start))  # Eq. 3
            is_first = predicted[t][0] is original[t] and len(predicted[t]) == 1
            keep = {True: True, False: False, "several": in_several or t not in first}
            if revisions and is_first and not keep[keep_original]:
                predicted[t] = revisions  # Eq. 3 revises Eq. 2
            else:
                predicted[t] += revisions
        after = {(t, c) for t, logits in enumerate(original) for c in logits if highest(t, c) > 0}
        positive = after - before
    targets = []
    for j in sorted({label for logits in original for label in logits}):
        candidates = [
            logits[j] for of_teacher in predicted for logits in of_teacher if j in logits
        ]  # Eq. 4
        negative = all(expit(value) <= 0.5 for value in candidates)
        targets.append(expit(min(candidates) if negative else max(candidates)))  # Eq. 5
    return np.array(targets), len(received)


def predict(teachers, X):
    return predict_with_teachers(teachers, joint_vocabulary(teachers), X)


@pytest.mark.parametrize("keep_original", [False, True, "several"])
@pytest.mark.parametrize("n_teachers", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_against_the_equations_row_by_row(n_teachers, seed, keep_original):
    teachers = fake_chains(seed=seed)[:n_teachers]
    X = np.random.default_rng(seed).normal(size=(60, 4))
    predictions = predict(teachers, X)
    exchanged = exchange_knowledge(predictions, X, keep_original=keep_original)
    slow = [slow_targets(teachers, x, keep_original=keep_original) for x in X]
    assert np.allclose(integrate(exchanged.logits, "positive"), [row for row, _ in slow], atol=1e-4)
    assert exchanged.n_transfers == sum(n for _, n in slow) > 0


def test_trained_chains_against_the_equations(easy):
    X, _, teachers = easy
    predictions = predict(teachers, X)
    exchanged = exchange_knowledge(predictions, X)
    slow = [slow_targets(teachers, x) for x in X]
    assert np.allclose(integrate(exchanged.logits, "positive"), [row for row, _ in slow], atol=1e-4)
    assert exchanged.n_transfers == sum(n for _, n in slow) > 0


@pytest.mark.parametrize(
    ("keep_original", "logit_of_d"), [(False, -1.0), ("several", -1.0), (True, 1.0)]
)
def test_a_revised_prediction_replaces_the_original(keep_original, logit_of_d):
    one = FakeChain([[2.0]], [[1.0]])  # T^m predicts c positive
    two = FakeChain([[-2.0, 1.0]], [[1.0, -0.5], [0.0, 1.0]])  # T^n: c negative, d positive
    teachers = [Teacher(one, ["c"], name="one"), Teacher(two, ["c", "d"], name="two")]
    X = np.ones((1, 1))
    # T^n runs again with c at 2 in place of -2, which takes d from 1 to 1 - 0.5 * 4 = -1.
    exchanged = exchange_knowledge(predict(teachers, X), X, keep_original=keep_original)
    assert np.allclose(exchanged.logits[:, 0], [[2, np.nan], [2, logit_of_d]], equal_nan=True)


@pytest.mark.parametrize("change", ["threshold", "calibration"])
def test_a_chain_restarts_from_its_own_logits(change):
    """Neither a threshold nor a calibration changes what a chain computes."""
    one = Teacher(FakeChain([[2.0]], [[1.0]]), ["c"], name="one")
    two = FakeChain([[-2.0, 1.0]], [[1.0, -0.5], [0.0, 1.0]])
    X = np.ones((1, 1))
    if change == "threshold":
        teacher = Teacher(two, ["c", "d"], name="two", threshold=[0.2, 0.5])
    else:
        rows = np.linspace(-2, 2, 40)[:, None]
        teacher = Teacher(two, ["c", "d"], name="two").calibrated(rows, rows * [-1, 1] > 0.3)
    exchanged = exchange_knowledge(predict([one, teacher], X), X, keep_original=False)
    # T^n starts from its own -2 and 1, c being replaced by 2 relative to its threshold.
    received = 2 + logit(0.2) if change == "threshold" else 2
    own = np.array([received, 1 - 0.5 * (received + 2)])
    expected = log_odds(teacher._calibrated(expit(own)[None]), LOGIT_EPS)[0] - teacher.offsets
    assert np.allclose(exchanged.logits[1, 0], expected, atol=1e-5)


def program_targets(teachers, x):
    """The targets of one row as the authors' program computes them in its first round.

    Each relation of teachers is revised alone, all predictions are integrated with that one
    revision, and then the results of all relations are integrated.
    """

    def integrated(candidates):
        return min(candidates) if all(z <= 0 for z in candidates) else max(candidates)

    def run(teacher, start=None):
        logits = teacher.model.chain_logits(x[None], start=start)[0]
        return dict(zip(teacher.labels, np.clip(logits, -9.21024, 9.21024), strict=True))

    original = [run(teacher) for teacher in teachers]
    labels = sorted({label for logits in original for label in logits})

    def combined(logits):
        return {j: integrated([of_t[j] for of_t in logits if j in of_t]) for j in labels}

    results = []
    for c in labels:
        owners = [t for t, logits in enumerate(original) if c in logits]
        positive = [t for t in owners if original[t][c] > 0]
        if len(positive) != 1:
            continue
        for t in owners:
            if t != positive[0]:
                initial = {**original[t], c: original[positive[0]][c]}
                start = np.array([[initial[label] for label in teachers[t].labels]])
                revised = run(teachers[t], start)
                results.append(combined([*original[:t], revised, *original[t + 1 :]]))
    results = results or [combined(original)]
    return [expit(integrated([result[j] for result in results])) for j in labels]


def test_relations_are_integrated_one_by_one_as_in_the_program():
    differs = {True: False, False: False}  # whether another reading gives other targets
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(100, 4))
        teachers = fake_chains(seed=seed)[:2]
        predictions = predict(teachers, X)
        expected = [program_targets(teachers, x) for x in X]
        exchanged = exchange_knowledge(predictions, X, max_rounds=1)
        np.testing.assert_allclose(integrate(exchanged.logits, "positive"), expected, atol=1e-4)
        for keep in differs:
            other = exchange_knowledge(predictions, X, max_rounds=1, keep_original=keep)
            targets = integrate(other.logits, "positive")
            differs[keep] |= not np.allclose(targets, expected, atol=1e-4)
    assert differs == {True: True, False: True}


def test_the_number_of_rounds_can_be_limited():
    X = np.random.default_rng(0).normal(size=(400, 4))
    predictions = predict(fake_chains(), X)
    assert exchange_knowledge(predictions, X).n_rounds >= 2
    one = exchange_knowledge(predictions, X, max_rounds=1)
    assert one.n_rounds == 1
    none = exchange_knowledge(predictions, X, max_rounds=0)
    assert none.n_transfers == 0
    assert np.array_equal(none.logits, predictions.logits, equal_nan=True)


def test_order_of_teachers_and_labels_changes_nothing():
    X = np.random.default_rng(1).normal(size=(200, 4))
    teachers = fake_chains()
    expected = exchange_knowledge(predict(teachers, X), X)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixed = [permuted(teachers[t], rng.permutation(3)) for t in rng.permutation(3)]
        predictions = predict(mixed, X)
        assert predictions.names == predict(teachers, X).names
        exchanged = exchange_knowledge(predictions, X)
        assert np.allclose(exchanged.logits, expected.logits, atol=1e-5, equal_nan=True)
        assert exchanged.n_transfers == expected.n_transfers


def test_a_black_box_is_a_transferor_but_no_transferee():
    X = np.random.default_rng(2).normal(size=(100, 4))
    one, two, _ = fake_chains()
    black_box = Teacher(two.model.predict_proba, two.labels, name="two")
    predictions = predict([one, black_box], X)
    exchanged = exchange_knowledge(predictions, X)
    place = predictions.names.index("two")
    assert np.array_equal(exchanged.logits[place], predictions.logits[place], equal_nan=True)
    other = predictions.names.index("one")
    assert not np.array_equal(exchanged.logits[other], predictions.logits[other], equal_nan=True)


def test_teachers_without_a_shared_label_transfer_nothing():
    X = np.random.default_rng(2).normal(size=(50, 4))
    one, two, _ = fake_chains()
    other = Teacher(two.model, ["p", "q", "r"])
    with pytest.warns(LabelweaveWarning, match="no label in common"):
        predictions = predict([one, other], X)
    assert exchange_knowledge(predictions, X).n_transfers == 0


def test_teachers_with_equal_predictions_are_warned_of():
    X = np.random.default_rng(2).normal(size=(50, 4))
    one = fake_chains()[0]
    copy = Teacher(one.model.predict_proba, one.labels, name="copy")
    with pytest.warns(LabelweaveWarning, match="predict the same for every row"):
        predict([one, copy], X)


def test_an_unsure_teacher_abstains():
    X = np.random.default_rng(3).normal(size=(200, 4))
    abstaining = [Teacher(t.model, t.labels, name=t.name, abstain=0.2) for t in fake_chains()]
    predictions = predict(abstaining, X)
    p = expit(predictions.logits)
    unsure = np.abs(p - 0.5) < 0.2
    assert np.isnan(predictions.without_abstentions()[unsure]).all()
    assert np.isfinite(predictions.without_abstentions()[~unsure & ~np.isnan(p)]).all()
    assert (
        exchange_knowledge(predictions, X).n_transfers
        < exchange_knowledge(predict(fake_chains(), X), X).n_transfers
    )
