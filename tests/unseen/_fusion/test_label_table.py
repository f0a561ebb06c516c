"""Labels that come and go, against a plain list of names with their vectors."""

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.unseen._fusion.growing_rows import GrowingArray, GrowingRows
from labelweave.unseen._fusion.label_table import LabelNames

NAMES = [f"{a} {b}" for a in ("sea", "sand", "moon", "star") for b in ("fish", "bird", "dust")]
SEEN = ["city street", "desert land", "sea life"]
TEXTS = ["car in a city street", "sand of the desert land", "fish in the sea life"] * 8
DOCUMENTS = ["fish and sea", "dust of the moon", "bird on a star", "city"]

# What to do, and with the how manieth of the names that are there, or of those that are not.
steps = st.lists(
    st.tuples(st.sampled_from(("add", "add three", "remove", "rename")), st.integers(0, 30)),
    min_size=1,
    max_size=12,
)


def free_names(names, start, number):
    free = [name for name in NAMES if name not in names]
    return [free[(start + i) % len(free)] for i in range(min(number, len(free)))]


def walk(model, names, todo):
    """Change the model and the plain list of names in the same way."""
    for what, number in todo:
        if what.startswith("add"):
            new = free_names(names, number, 1 if what == "add" else 3)
            model.add_labels(new)
            names += new
        elif what == "remove" and len(names) > 1:
            model.remove_labels(names.pop(number % len(names)))
        elif what == "rename":
            place = number % len(names)
            for new in free_names(names, number, 1):
                model.rename_label(names[place], new)
                names[place] = new
        yield


@pytest.mark.parametrize("method", ["tf-idf", "xml0-lf"])
def test_any_walk_ends_at_the_model_of_the_names_that_are_left(method):
    options = {} if method == "tf-idf" else {"encoder": "tfidf"}
    base = lw.make(method, random_state=0, **options).fit(TEXTS, [[name] for name in SEEN] * 8)
    every = deepcopy(base).add_labels(NAMES)
    # Word matches score a label on its own; label fusion depends on which seen labels are left.
    expected = dict(zip(every.label_names_, every.predict_proba(DOCUMENTS).T, strict=True))
    alone = set(expected) if method == "tf-idf" else set(SEEN)

    @settings(max_examples=25)
    @given(todo=steps)
    def check(todo):
        model, names = deepcopy(base), list(SEEN)
        for _ in walk(model, names, todo):
            assert model.label_names_.tolist() == names
            n_seen = len(model.table_.seen_rows)
            assert model.n_labels_ == len(names) == model.table_.n_unseen + n_seen
            assert model.seen_labels_ + model.unseen_labels_ == names
        probabilities = model.predict_proba(DOCUMENTS)
        assert probabilities.shape == (len(DOCUMENTS), len(names))
        for column, name in zip(probabilities.T, names, strict=True):
            if name in alone:
                np.testing.assert_allclose(column, expected[name], atol=1e-6)
        for row in model.rank(DOCUMENTS, 3):
            assert {name for name, _ in row} <= set(names)

    check()


@settings(max_examples=40)
@given(todo=steps)
def test_names_keep_their_rows(todo):
    names, rows, given_out = LabelNames(SEEN), {name: i for i, name in enumerate(SEEN)}, 3
    order = list(SEEN)
    for what, number in todo:
        if what.startswith("add"):
            new = free_names(order, number, 3)
            names.add(new)
            rows.update(zip(new, range(given_out, given_out + len(new)), strict=True))
            given_out += len(new)
            order += new
        elif what == "remove" and order:
            gone = order.pop(number % len(order))
            names.remove([gone])
            del rows[gone]
            assert names.row(gone) is None
        elif order:
            place = number % len(order)
            for new in free_names(order, number, 1):
                names.rename(order[place], new)
                rows[new] = rows.pop(order[place])
                order[place] = new
        assert len(names) == len(order)
        assert names.array().tolist() == order
        assert {name: names.row(name) for name in order} == rows
        kept = np.array([rows[name] for name in order], dtype=np.int64)
        assert names.at(kept).tolist() == order


def test_an_array_grows_and_an_old_list_of_names_stays():
    numbers = GrowingArray(np.arange(3))
    for start in range(3, 90, 29):
        numbers.append(np.arange(start, start + 29))
    np.testing.assert_array_equal(numbers.values, np.arange(90))
    names = LabelNames(SEEN)
    before = names.array()
    names.rename("sea life", "ocean")
    assert before.tolist() == SEEN
    assert names.array().tolist() == [*SEEN[:2], "ocean"]


def test_one_change_among_many_copies_no_matrix(monkeypatch):
    rows = GrowingRows(sp.csr_array(np.eye(50)))
    rows.append(sp.csr_array(np.eye(50)))
    monkeypatch.setattr(rows, "merged", lambda: pytest.fail("the rows were merged"))
    changed = sp.csr_array(np.full((1, 50), 2.0))
    rows.replace(3, changed)
    rows.replace(60, changed)
    taken = rows.take(np.array([60, 4, 3])).toarray()
    np.testing.assert_array_equal(taken, [[2.0] * 50, np.eye(50)[4], [2.0] * 50])


def test_a_failing_encoder_leaves_the_labels_as_they_were(tiny_encoder):
    embedder = lw.SentenceEmbedder(tiny_encoder, cache=False)
    model = lw.SBERT(encoder=embedder).fit(TEXTS, [[name] for name in SEEN] * 8)
    model.add_labels("moon", {"moon": "in the sky"})
    model.encoder_.checksum_ = "f" * 64
    for change in (
        lambda: model.add_labels("star", {"star": "far"}),
        lambda: model.rename_label("moon", "sun", "hot"),
    ):
        with pytest.raises(InputError, match="is not the one that this model was made with"):
            change()
    assert model.label_names_.tolist() == [*SEEN, "moon"]
    assert model.label_descriptions_ == {"moon": "in the sky"}
    assert len(model.table_.rows) == 4
