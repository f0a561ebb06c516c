"""Four conditions of labels, each with its method beside simple baselines, scored once.

Every method has its defaults and the seed 0. Nothing was chosen by the scores that are shown, and
the table also shows where a baseline is better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from labelweave.data import Dataset
from labelweave.demo.data import texts, vectors
from labelweave.methods import make
from labelweave.metrics import evaluate, get_metric

__all__ = ["Condition", "Trial", "conditions"]

SETS = ("f1_example", "map")
ORDERS = ("precision@1", "ndcg@5")
CLOSE = 0.02  # differences between seeds are about as large on these sets
_CHAIN = {"lr": 0.01, "batch_size": 32}  # for teachers and students with few hundred rows
Say = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """A fitted method and its scores on the test rows."""

    method: str
    what: str
    scores: dict[str, float]
    seconds: float
    model: Any = None


@dataclass(frozen=True)
class Condition:
    """One condition of labels: baselines first, the method for this condition last."""

    name: str
    description: str
    trials: tuple[Trial, ...]
    test: Dataset

    def verdict(self) -> str:
        """Return which method is better, by the first score."""
        *baselines, method = self.trials
        metric = next(iter(method.scores))
        best = max(baselines, key=lambda trial: trial.scores[metric])
        gap = method.scores[metric] - best.scores[metric]
        if abs(gap) < CLOSE:
            return f"{method.method} and {best.method} are too close to be separated by one seed"
        better, worse = (method, best) if gap > 0 else (best, method)
        return f"{better.method} is better than {worse.method} here, by {abs(gap):.3f}"


def conditions(say: Say, *, n_texts: int = 4000, quick: bool = False) -> Iterator[Condition]:
    """Run the tour; `quick` trains for a few epochs only, to see that everything works."""
    short = {"epochs": 3} if quick else {}
    train, test = vectors()
    yield dependent(train, test, say, short)
    yield partial(train, test, say, short)
    yield scattered(train, test, say, short)
    yield unseen(*texts(n_texts), say)


def dependent(train: Dataset, test: Dataset, say: Say, short: dict[str, Any]) -> Condition:
    """Full annotation: C-GMVAE against one classifier per label and a plain network."""
    say(f"dependent: {len(train):,} rows of {train.name}, every label annotated")
    trials = [
        _fitted(id, what, train.X, train.Y, test, say, threshold="tuned", **more)
        for id, what, more in (
            ("br", "one logistic regression per label", {}),
            ("mlp", "a plain network", short),
            ("c-gmvae", "labels as Gaussians in one latent space", short),
        )
    ]
    description = f"{train.name}, all {train.Y.n_labels} labels annotated"
    return Condition("dependent", description, tuple(trials), test)


def partial(train: Dataset, test: Dataset, say: Say, short: dict[str, Any]) -> Condition:
    """Half of the positives were never annotated; test rows have their full labels."""
    from labelweave.data.scenarios import hide_positives

    hidden = hide_positives(train.Y, 0.5, random_state=0)
    say(f"partial: the same rows, half of their {train.Y.counts()[0].sum():,} positives hidden")
    inner = {f"base__{name}": value for name, value in short.items()}
    trials = [
        _fitted(id, what, train.X, hidden.Y, test, say, **inner)
        for id, what in (
            ("an", "unannotated entries are taken for negatives"),
            ("cls+", "two networks exclude likely missing positives for each other"),
        )
    ]
    return Condition("partial", f"{train.name}, half of the positives hidden", tuple(trials), test)


def scattered(train: Dataset, test: Dataset, say: Say, short: dict[str, Any]) -> Condition:
    """Two teachers with different labels and rows; the student sees unlabelled rows."""
    from labelweave.data.scenarios import share_among_teachers
    from labelweave.scattered.teacher import Teacher

    shares = share_among_teachers(train, 2, random_state=0)
    teachers = []
    for number, share in enumerate(shares.teachers, start=1):
        model = make("ofcc", random_state=0, **_CHAIN, **short)
        teachers.append(Teacher(model.fit(share.data.X, share.data.Y), name=f"teacher {number}"))
    sizes = " and ".join(str(len(share.label_names)) for share in shares.teachers)
    say(f"scattered: two teachers that know {sizes} labels, {len(shares.rest):,} unlabelled rows")
    inner = {f"student__{name}": value for name, value in {**_CHAIN, **short}.items()}
    trials = [
        _fitted(
            id, what, shares.rest.X, None, test, say, teachers=teachers, student="ofcc", **inner
        )
        for id, what in (
            ("bl", "a student of the majority vote"),
            ("ant+", "a student of teachers after knowledge transfer"),
        )
    ]
    description = f"{train.name}, labels in two trained models ({sizes})"
    return Condition("scattered", description, tuple(trials), test)


def unseen(train: Dataset, test: Dataset, say: Say) -> Condition:
    """A fifth of the labels has a name but no example; they are ranked for each test row."""
    from labelweave.data.scenarios import hold_labels_out

    held = hold_labels_out(train, test, 0.2, random_state=0)
    encoder = "minilm" if find_spec("sentence_transformers") else "tfidf"
    say(
        f"unseen: {len(held.train):,} texts of {train.name}, {len(held.unseen)} of "
        f"{train.Y.n_labels} labels without an example; encoder {encoder}"
    )
    described = {n: d for n, d in train.Y.descriptions.items() if n in held.unseen}
    trials = []
    for id, what, more in (
        ("tf-idf", "words that the text shares with the label", {}),
        ("sbert", "similarity of text and label", {"encoder": encoder}),
        ("xml0+", "similarity and fusion of the seen labels", {"encoder": encoder}),
    ):
        start = time.perf_counter()
        model = make(id, random_state=0, **more).fit(held.train.X, held.train.Y)
        model.add_labels(held.unseen, described)
        place = {name: j for j, name in enumerate(model.label_names_)}
        columns = [place[name] for name in held.test_unseen.label_names]
        order = model.predict_proba(held.test_unseen.X)[:, columns]
        scores = {name: get_metric(name)(held.test_unseen.Y, Y_score=order) for name in ORDERS}
        trials.append(Trial(id, what, scores, time.perf_counter() - start, model))
        say(f"  {id}: {_in_words(scores)}, {trials[-1].seconds:.0f} s")
    description = f"{train.name}, {len(held.unseen)} labels without an example"
    return Condition("unseen", description, tuple(trials), held.test_unseen)


def _fitted(
    id: str, what: str, X: Any, Y: Any, test: Dataset, say: Say, **parameters: Any
) -> Trial:
    """A method of the library, fitted and scored on the test rows."""
    from labelweave.pipeline.recipe import Recipe

    recipe = Recipe(id, {"random_state": 0, **parameters})
    start = time.perf_counter()
    model = recipe.make()
    model.fit(X) if Y is None else model.fit(X, Y)
    seconds = time.perf_counter() - start
    names = list(model.label_names_)
    result = evaluate(model, test.select_labels(names), metrics=list(SETS))
    scores = {name: float(result[name]) for name in SETS}
    say(f"  {id}: {_in_words(scores)}, {seconds:.0f} s")
    return Trial(id, what, scores, seconds, model)


def _in_words(scores: dict[str, float]) -> str:
    return ", ".join(f"{get_metric(name).label} {value:.3f}" for name, value in scores.items())


def table_rows(results: Sequence[Condition]) -> list[tuple[Any, ...]]:
    """Return the rows of the table of all conditions."""
    table = []
    for condition in results:
        for trial in condition.trials:
            kind = "method" if trial is condition.trials[-1] else "baseline"
            first, second = (float(np.round(value, 4)) for value in trial.scores.values())
            names = " / ".join(get_metric(name).label for name in trial.scores)
            table.append((condition.name, kind, trial.method, names, first, second, trial.what))
    return table
