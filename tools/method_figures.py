"""Draw the figures of the methods' pages: `python tools/method_figures.py [NAME ...]`.

One figure per family of methods, computed by the functions of the library on generated data, so
that a page shows what the code does. ``FIGURES`` lists which pages show which figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "assets" / "methods"
sys.path.insert(0, str(ROOT / "src"))

from labelweave.plotting import HEAT, draw, line_style, log_scale  # noqa: E402  after the path is set

Paint = Callable[[Any], None]


def planes() -> tuple[float, float, Paint]:
    """Probability of one label over two features, by eight methods."""
    import labelweave as lw

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    Y = np.column_stack([X[:, 0] ** 2 + X[:, 1] ** 2 < 0.4, X[:, 0] > 0.2]).astype(int)
    models = {
        "br": lw.BinaryRelevance(),
        "mlknn": lw.MLkNN(),
        "sleec": lw.SLEEC(random_state=0),
        "haram": lw.HARAM(random_state=0),
        "extra-trees": lw.ExtraTrees(n_estimators=100, random_state=0),
        "boosted-trees": lw.BoostedTrees(random_state=0),
        "ls-svm": lw.LSSVM(random_state=0),
        "mlp": lw.MLP(hidden=[64, 64], epochs=60, random_state=0),
    }
    side = np.linspace(-1, 1, 31)
    places = np.column_stack([values.ravel() for values in np.meshgrid(side, side)])
    surfaces = {
        name: model.fit(X, Y).predict_proba(places)[:, 0].reshape(31, 31)
        for name, model in models.items()
    }

    def paint(figure: Any) -> None:
        axes = figure.subplots(2, 4, sharex=True, sharey=True)
        shade = None
        for axis, (name, surface) in zip(axes.flat, surfaces.items(), strict=True):
            shade = axis.contourf(side, side, surface, np.linspace(0, 1, 6), cmap=HEAT)
            axis.contour(side, side, surface, [0.5], colors="white", linewidths=1)
            turn = np.linspace(0, 2 * np.pi, 60)
            axis.plot(0.4**0.5 * np.cos(turn), 0.4**0.5 * np.sin(turn), "k:", linewidth=1)
            axis.set(title=name, xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
            axis.grid(visible=False)
        figure.colorbar(shade, ax=axes, shrink=0.7, label="probability")

    return 8.0, 4.2, paint


def known_labels() -> tuple[float, float, Paint]:
    """What methods make of a label that is known at prediction time."""
    import labelweave as lw

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    sea = X[:, 0] + rng.normal(size=600) > 0
    beach = sea & (X[:, 1] + 0.7 * rng.normal(size=600) > -0.3)
    city = ~sea & (X[:, 2] + rng.normal(size=600) > 0)
    Y = np.column_stack([sea, beach, city]).astype(int)
    short: dict[str, Any] = {"epochs": 30, "random_state": 0}
    models = {
        "chain": lw.ClassifierChain(random_state=0),
        "chain-ensemble": lw.EnsembleOfChains(random_state=0),
        "label-powerset": lw.LabelPowerset(random_state=0),
        "rakel": lw.RAkEL(random_state=0),
        "ofcc": lw.OFCC(**short),
        "rbcc": lw.RBCC(hidden_size=32, **short),
        "c-tran": lw.CTran(size=32, hidden=[32], **short),
        "lamp": lw.LaMP(size=32, hidden=[32], **short),
    }
    row = np.zeros((1, 4))
    cases = {"nothing known": np.nan, "known: sea": 1.0, "known: no sea": 0.0}
    probabilities = {}
    for name, model in models.items():
        model.fit(X, Y)
        known = [np.array([[value, np.nan, np.nan]]) for value in cases.values()]
        probabilities[name] = [float(model.predict_proba(row, known=k)[0, 1]) for k in known]

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        for k, (words, hatch) in enumerate(zip(cases, ("", "//", ".."), strict=True)):
            heights = [values[k] for values in probabilities.values()]
            where = np.arange(len(probabilities)) + 0.27 * (k - 1)
            axis.bar(where, heights, 0.25, label=words, color=line_style(k).color, hatch=hatch)
        axis.set_xticks(range(len(probabilities)), list(probabilities), rotation=20)
        axis.set_ylabel("P(beach)")
        axis.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.18))

    return 7.0, 3.0, paint


def label_graph() -> tuple[float, float, Paint]:
    """Frequencies of labels beside each other, and what ML-GCN makes of them."""
    import labelweave as lw
    from labelweave.dependent._networks.label_graph import conditional_frequencies
    from labelweave.dependent.mlgcn import reweighted_graph

    sets = [["sea", "beach"]] * 6 + [["sea", "boat"]] * 3 + [["sea"], ["city", "car"]]
    sets += [["city", "car", "night"]] * 3 + [["city"], ["night"], ["beach"]]
    Y = lw.as_labels(sets, names=["sea", "beach", "boat", "city", "car", "night"])
    panels = {
        "P(column | row)": conditional_frequencies(Y).toarray(),
        "the graph, tau = 0.4, p = 0.2": reweighted_graph(Y, tau=0.4, p=0.2).toarray(),
    }
    return 6.4, 3.2, heat_maps(panels, list(Y.names), list(Y.names))


def heat_maps(
    panels: dict[str, np.ndarray], rows: list[str], columns: list[str], *, shared: bool = True
) -> Paint:
    """Matrices side by side, their values written in."""

    def paint(figure: Any) -> None:
        axes = np.atleast_1d(figure.subplots(1, len(panels)))
        top = max(values.max() for values in panels.values())
        for axis, (title, values) in zip(axes, panels.items(), strict=True):
            most = top if shared else values.max()
            axis.pcolormesh(values[::-1], cmap=HEAT, vmin=0, vmax=most, edgecolors="white")
            for (i, j), value in np.ndenumerate(values):
                colour = "black" if value > 0.6 * most else "white"
                place = (j + 0.5, len(values) - i - 0.5)
                axis.annotate(
                    f"{value:.2f}", place, color=colour, ha="center", va="center", fontsize=7
                )
            axis.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=45, ha="right")
            axis.set_yticks(np.arange(len(rows)) + 0.5, rows[::-1])
            axis.set_title(title)
            axis.grid(visible=False)

    return paint


def mixture() -> tuple[float, float, Paint]:
    """C-GMVAE's prior for three label sets."""
    import torch

    from labelweave.dependent._networks.mixture import log_mixture

    means = torch.tensor([[-1.5, 0.0], [1.5, 0.6], [0.2, -1.6]])
    log_variances = torch.log(torch.tensor([[0.5, 0.3], [0.3, 0.6], [0.7, 0.25]]))
    side = np.linspace(-3.2, 3.2, 41)
    places = torch.tensor(
        np.column_stack([values.ravel() for values in np.meshgrid(side, side)]), dtype=torch.float32
    )
    sets = {"{sea}": [1, 0, 0], "{sea, sun}": [1, 1, 0], "{sea, sun, boat}": [1, 1, 1]}
    densities = {}
    for title, active in sets.items():
        rows = torch.tensor([active], dtype=torch.bool).expand(len(places), 3)
        density = log_mixture(places, means, log_variances, rows).exp()
        densities[title] = density.numpy().reshape(41, 41)

    def paint(figure: Any) -> None:
        for axis, (title, density) in zip(
            figure.subplots(1, 3, sharey=True), densities.items(), strict=True
        ):
            axis.contourf(side, side, density, 7, cmap=HEAT)
            for name, mean in zip(("sea", "sun", "boat"), means.tolist(), strict=True):
                axis.annotate(name, mean, color="white", ha="center", va="center", fontsize=8)
            axis.set(title=title, aspect="equal")
            axis.grid(visible=False)

    return 7.0, 2.6, paint


def latent() -> tuple[float, float, Paint]:
    """C2AE's ranking loss of a pair, and MPVAE's probability of a label."""
    import torch
    from scipy.stats import norm

    from labelweave.dependent._networks.pairwise_ranking import exponential_ranking

    gap = torch.linspace(-1, 1, 81)
    scores = torch.stack([0.5 - gap / 2, 0.5 + gap / 2], dim=1)
    targets = torch.tensor([[1.0, 0.0]]).expand(81, 2)
    slopes = (1.0, 5.0)
    losses = [exponential_ranking(scores, targets, slope=slope) for slope in slopes]
    mean = np.linspace(-4, 4, 81)

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for k, (slope, loss) in enumerate(zip(slopes, losses, strict=True)):
            left.plot(gap, loss, label=f"slope {slope:g}", **look(k))
        left.set(
            title="ranking loss of a pair (C2AE)",
            xlabel="negative's score - positive's",
        )
        log_scale(left, "y")
        for k, size in enumerate((0.0, 1.0, 3.0)):
            label = f"|B| = {size:g}"
            right.plot(mean, norm.cdf(mean / np.sqrt(1 + size**2)), label=label, **look(k))
        right.set(title="multivariate probit (MPVAE)", xlabel="mean", ylabel="P(label)")
        left.legend()
        right.legend()

    return 6.6, 2.7, paint


def look(k: int) -> dict[str, Any]:
    """Colour and dashes of the k-th curve."""
    return {"color": line_style(k).color, "linestyle": line_style(k).linestyle}


def pulls(losses: dict[str, Callable[[Any, Any], Any]], p: np.ndarray) -> dict[str, np.ndarray]:
    """Gradient with respect to the logit of an entry whose target is 0, by its probability."""
    import torch

    gradients = {}
    for name, loss in losses.items():
        logits = torch.logit(torch.tensor(p)).requires_grad_()
        loss(logits[:, None], torch.zeros(len(p), 1, dtype=logits.dtype)).sum().backward()
        gradients[name] = logits.grad.numpy()
    return gradients


def curves(values: dict[str, np.ndarray], p: np.ndarray, **labels: str) -> Paint:
    """One plot of several curves over the probability."""

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        for k, (name, curve) in enumerate(values.items()):
            axis.plot(p, curve, label=name, **look(k))
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(**labels)
        axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    return paint


PULL = {
    "xlabel": "probability of the entry",
    "ylabel": "pull towards a no\n(gradient of the logit)",
}


def asymmetric() -> tuple[float, float, Paint]:
    """How hard a negative is pushed down: cross-entropy, focal loss, ASL."""
    from labelweave.nn import losses

    p = np.linspace(0.005, 0.995, 199)
    kinds = {
        "cross-entropy": losses.bce,
        "focal": losses.focal,
        "ASL": losses.asl,
        "ASL, clip=0": lambda z, y: losses.asl(z, y, clip=0.0),
    }
    return 5.6, 2.8, curves(pulls(kinds, p), p, **PULL)


def partial_losses() -> tuple[float, float, Paint]:
    """How hard losses for partial labels push an unannotated entry down, or up."""
    from labelweave.nn import losses

    p = np.linspace(0.005, 0.995, 199)
    kinds = {
        "an": losses.bce,
        "wan, 5 labels": lambda z, y: losses.weighted_bce(z, y, neg_weight=1 / 4),
        "an-ls": losses.smoothed_bce,
        "hill": losses.hill,
        "splc": losses.splc,
        "gr, at the end": losses.generalized_robust,
        "em-apl, at first": losses.entropy_maximisation,
    }
    return 6.2, 3.2, curves(pulls(kinds, p), p, **PULL)


def expected() -> tuple[float, float, Paint]:
    """EPR's penalty, by the number of positives that a network expects in a row."""
    import torch

    from labelweave.nn.losses import expected_positives

    counts = np.linspace(0, 8, 81)
    values = {
        f"expected = {k:g}": np.array(
            [float(expected_positives(torch.full((1, 14), c / 14), k)) for c in counts]
        )
        for k in (1.5, 4.2)
    }
    labels = {
        "xlabel": "sum of a row's probabilities, mean over the batch",
        "ylabel": "penalty, 14 labels",
    }
    return 5.6, 2.6, curves(values, counts, **labels)


def selection() -> tuple[float, float, Paint]:
    """What is left out of a mini-batch, and how the share grows."""
    from labelweave.partial._selection.loss_ranks import drop_share, extreme, rows_to_drop

    rng = np.random.default_rng(1)
    losses = rng.gamma(1.0, 0.4, (12, 10))
    positive = rng.random((12, 10)) < 0.12
    labels = np.where(positive, 3, 2)
    labels.flat[extreme(losses, labels == 2, 12)] = 0
    labels.flat[extreme(losses, labels == 2, 30, largest=False)] = 1
    gone = rows_to_drop(losses.mean(axis=1), 0.25)
    rows = np.where(gone[:, None], 0, np.where(positive, 3, 2))
    epochs = np.arange(21)

    def paint(figure: Any) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        shades = ["#D55E00", "#E8C9A0", "#DCE6F2", "#0072B2"]
        words = ["left out: high loss", "left out: low loss", "learnt as no", "annotated yes"]
        axes = figure.subplots(1, 3)
        axes[0].plot(epochs, [drop_share(e, 0.1, 10) for e in epochs], label="tau_h", **look(0))
        axes[0].plot(epochs, [drop_share(e, 0.25, 10) for e in epochs], label="tau_l", **look(1))
        axes[0].set(title="share left out", xlabel="epoch (ramp = 10)")
        axes[0].legend()
        titles = ("by label: cls, ll-r", "by row: co-teaching")
        for axis, chosen, title in zip(axes[1:], (labels, rows), titles, strict=True):
            axis.pcolormesh(
                chosen, cmap=ListedColormap(shades), vmin=-0.5, vmax=3.5, edgecolors="white"
            )
            axis.set(title=title, xlabel="labels", ylabel="rows", xticks=[], yticks=[])
        handles = [Patch(color=c, label=w) for c, w in zip(shades, words, strict=True)]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)

    return 7.4, 3.0, paint


def posterior() -> tuple[float, float, Paint]:
    """cross-em: how likely an unannotated entry is positive."""
    from labelweave.partial._selection.posterior import positive_posterior

    p = np.linspace(0, 1, 101)
    values = {f"c = {rate:g}": positive_posterior(p, rate) for rate in (0.1, 0.25, 0.5, 0.9)}
    labels = {"xlabel": "P(annotated | x)", "ylabel": "P(positive | x, not annotated)"}
    return 5.2, 2.8, curves(values, p, **labels)


def contrast() -> tuple[float, float, Paint]:
    """MulSupCon: how much each row of a batch is drawn to each other one."""
    import torch

    from labelweave.nn.contrastive import positive_weights

    sets = {"sea": [1, 0, 0], "sea, sun": [1, 1, 0], "sun, boat": [0, 1, 1], "boat": [0, 0, 1]}
    Y = torch.tensor(list(sets.values()), dtype=torch.float32)
    panels = {
        kind: positive_weights(Y, Y, positives=kind).numpy()
        for kind in ("each-label", "all", "any")
    }
    return 7.4, 2.9, heat_maps(panels, list(sets), list(sets))


def rules() -> tuple[float, float, Paint]:
    """Combined predictions of two teachers."""
    from scipy.special import logit

    from labelweave.scattered._amalgamation.integration import integrate

    side = np.linspace(0.04, 0.96, 12)
    first, second = np.meshgrid(logit(side), logit(side))
    logits = np.stack([first.ravel(), second.ravel()])[:, :, None]
    kinds = {
        "positive": "positive (ANT, Eq. 5)",
        "mean-logit": "mean-logit (TC)",
        "vote": "vote (BL)",
    }
    combined = {title: integrate(logits, kind).reshape(12, 12) for kind, title in kinds.items()}

    def paint(figure: Any) -> None:
        axes = figure.subplots(1, 3, sharey=True)
        shade = None
        for axis, (title, values) in zip(axes, combined.items(), strict=True):
            shade = axis.pcolormesh(side, side, values, cmap=HEAT, vmin=0, vmax=1)
            axis.set(title=title, xlabel="teacher 1", aspect="equal")
            axis.grid(visible=False)
        axes[0].set_ylabel("teacher 2")
        figure.colorbar(shade, ax=axes, shrink=0.8, label="target of the student")

    return 7.4, 2.7, paint


def label_counts() -> tuple[float, float, Paint]:
    """How many labels rows have by a union of teachers, and what knowing better makes of them."""
    import labelweave as lw
    from labelweave.scattered.smoothed_union_counts import (
        count_probabilities,
        count_weights,
        reweight_by_count,
    )

    rng = np.random.default_rng(0)
    kinds = rng.integers(6, size=1400)
    X = rng.normal(size=(6, 10))[kinds] + 0.9 * rng.normal(size=(1400, 10))
    Y = np.eye(6, dtype=int)[kinds]
    names = [f"class {k + 1}" for k in range(6)]
    parts = ((slice(0, 200), slice(0, 4)), (slice(200, 400), slice(2, 6)))
    teachers = [
        lw.Teacher(
            lw.BinaryRelevance().fit(X[rows], lw.as_labels(Y[rows, labels], names=names[labels]))
        )
        for rows, labels in parts
    ]
    p = lw.TeacherUnion(teachers).fit(X[400:]).predict_proba(X[400:]).astype(np.float64)
    counts = lw.SmoothedUnion(teachers, drop=0.0, random_state=0).fit(X[400:]).counts_
    after = reweight_by_count(p, count_weights(p, counts))
    bars = {"independent labels": count_probabilities(p).mean(axis=0), "sharpened": counts}

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for k, (words, heights) in enumerate(bars.items()):
            where = np.arange(4) + 0.4 * (k - 0.5)
            left.bar(where, heights[:4], 0.38, label=words, color=line_style(k).color)
        left.axhline(1, color="black", linestyle=":", linewidth=1)
        left.annotate("truth: one label in every row", (0.02, 1.02), fontsize=8)
        left.set(xlabel="labels of a row", ylabel="share of rows", xticks=range(4), ylim=(0, 1.12))
        left.legend(loc="center right", fontsize=7)
        best = p.argmax(axis=1)[:150]
        rows = np.arange(150)
        for k, (words, labels) in enumerate(
            {"likeliest label": best, "another": (best + 1) % 6}.items()
        ):
            before, now = p[rows, labels], after[rows, labels]
            right.plot(before, now, ".", markersize=3, label=words, color=line_style(k).color)
        right.plot([0, 1], [0, 1], "k:", linewidth=1)
        right.set(xlabel="union of the teachers", ylabel="with the belief about counts")
        right.legend()

    return 7.4, 3.0, paint


def layers() -> tuple[float, float, Paint]:
    """Terms of the loss while students learn from the layers of two teachers."""
    import labelweave as lw

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    Y = (X @ rng.normal(size=(6, 4)) + 0.5 * rng.normal(size=(400, 4)) > 0).astype(int)
    names = ["a", "b", "c", "d"]
    known = ([0, 1, 2], [1, 2, 3])
    short: dict[str, Any] = {"hidden": [16], "epochs": 20, "random_state": 0}
    teachers = [
        lw.Teacher(
            lw.MLP(**short).fit(
                X[k::3], lw.as_labels(Y[k::3][:, labels], names=[names[j] for j in labels])
            )
        )
        for k, labels in enumerate(known)
    ]
    histories = {}
    for method in (lw.CFL, lw.AKA, lw.FKA):
        student = method(teachers, student=lw.MLP(**short), random_state=0).fit(X[2::3])
        histories[method.__name__.lower()] = student.student_.history_

    def paint(figure: Any) -> None:
        for axis, (name, history) in zip(figure.subplots(1, 3), histories.items(), strict=True):
            left_out = {"epoch", "seconds", "lr", "time", "best"}
            terms = [
                column
                for column in history.columns
                if column not in left_out and "val" not in column
            ]
            for k, term in enumerate(terms):
                axis.plot(history[term], label=term, **look(k))
            axis.set(title=name, xlabel="epoch")
            axis.legend(fontsize=7)

    return 7.4, 2.7, paint


def fusion() -> tuple[float, float, Paint]:
    """Label fusion in a plane: combinations of predicted labels, and the nearest to new ones."""
    from labelweave.unseen._fusion.combination_search import members
    from labelweave.unseen.xml0_algorithm import label_fusion_reference

    seen = {
        "convolution": (np.deg2rad(8), 0.9),
        "network": (np.deg2rad(72), 0.8),
        "audio": (2.4, 0.35),
    }
    new = {"deep learning": np.deg2rad(38), "speech": np.deg2rad(110)}
    embeddings = np.array([[np.cos(angle), np.sin(angle)] for angle, _ in seen.values()])
    probabilities = np.array([p for _, p in seen.values()])
    unseen = np.array([[np.cos(angle), np.sin(angle)] for angle in new.values()])
    ranked = label_fusion_reference(probabilities, embeddings, unseen)
    vectors = probabilities[:, None] * embeddings
    sums = np.array([vectors[members(mask)].sum(axis=0) for mask in range(1, 8)])

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        for name, vector in zip(seen, vectors, strict=True):
            axis.annotate("", vector, (0, 0), arrowprops={"arrowstyle": "->", "color": "#0072B2"})
            axis.annotate(f"p e, {name}", vector * 1.02, color="#0072B2", fontsize=8)
        axis.plot(*sums.T, "s", color="#888888", label="all combinations")
        axis.plot(*sums[-1:].T, "D", color="#009E73", label="ConSE: all of them")
        for label, score, mask in zip(ranked.labels, ranked.scores, ranked.masks, strict=True):
            name, u = list(new)[label], unseen[label]
            best = vectors[members(mask)].sum(axis=0)
            axis.plot([0, 1.7 * u[0]], [0, 1.7 * u[1]], "--", color="#D55E00", linewidth=1)
            words = f"{name}: f = {score:.3f} by {' + '.join(list(seen)[i] for i in members(mask))}"
            axis.annotate(words, 1.72 * u, color="#D55E00", fontsize=8)
            axis.plot(*best, "o", color="#D55E00", markerfacecolor="none", markersize=10)
        axis.set(aspect="equal", xlim=(-0.6, 3.4), ylim=(-0.1, 1.9))
        axis.legend(loc="lower right", fontsize=8)

    return 6.6, 3.6, paint


TEXTS = {
    "fresh fish from the harbour market": ["sea", "food"],
    "the boat sailed along the coast": ["sea"],
    "bread and butter from the oven": ["food"],
    "sand dunes under a hot sun": ["desert"],
}
NEW = {
    "seafood": "fish, eaten fresh",
    "sailing": "a boat on the coast",
    "baking": "bread from an oven",
}


def similarities() -> tuple[float, float, Paint]:
    """Scores of labels without an example, by methods that compare texts."""
    import labelweave as lw

    texts, labels = list(TEXTS) * 10, list(TEXTS.values()) * 10
    panels = {}
    models = {
        "tf-idf": lw.TFIDF(random_state=0),
        "zestxml": lw.ZestXML(random_state=0),
        "sbert": lw.SBERT(random_state=0),
    }
    for name, model in models.items():
        model.fit(texts, labels).add_labels(list(NEW), NEW)
        panels[name] = model.predict_proba(list(TEXTS))[:, -len(NEW) :]
    return (
        9.0,
        2.8,
        heat_maps(panels, [" ".join(t.split()[:4]) for t in TEXTS], list(NEW), shared=False),
    )


def attention() -> tuple[float, float, Paint]:
    """AttentionXML: which words each label looks at."""
    import torch

    import labelweave as lw

    rng = np.random.default_rng(0)
    words = {"sea": ["fish", "boat", "coast", "wave"], "food": ["bread", "oven", "butter", "soup"]}
    filler = ["the", "old", "man", "saw", "some", "of", "it", "today"]
    texts, labels = [], []
    for _ in range(300):
        chosen = [name for name in words if rng.random() < 0.6]
        parts = [rng.choice(words[name], 2) for name in chosen] + [rng.choice(filler, 5)]
        text = np.concatenate(parts)
        texts.append(" ".join(rng.permutation(text)))
        labels.append(chosen)
    model = lw.AttentionXML(
        embedding=32, hidden=32, head=32, max_tokens=12, epochs=20, lr=0.01, random_state=0
    )
    model.fit(texts, lw.as_labels(labels, names=list(words)))
    asked = "the old man saw bread of the coast today"
    network = model.network_.eval()
    with torch.no_grad():
        tokens = torch.as_tensor(model._checked_features([asked], reset=False))
        vectors, _ = network.encoder(tokens)
        weights = (network.labels.attention @ vectors.transpose(1, 2)).softmax(dim=-1)[0].numpy()
    return 7.0, 1.9, heat_maps({"attention": weights}, list(words), asked.split())


def label_tree() -> tuple[float, float, Paint]:
    """LabelTree: the branches of the root, and the labels at the end of them."""
    import labelweave as lw
    from labelweave.text import TextClassifier

    texts, labels = list(TEXTS), lw.as_labels(list(TEXTS.values()))
    model = TextClassifier(lw.LabelTree(1, branches=2, max_leaves=2, random_state=0))
    model.fit(texts * 10, list(TEXTS.values()) * 10)
    every = model.predict_proba(texts)
    tree = model.classifier_.trees_[0]
    rows = [" ".join(text.split()[:4]) for text in texts]
    names = [labels.names[j] for j in tree.label[tree.label >= 0]]
    return (
        6.0,
        2.8,
        heat_maps({"labels, by branch": every[:, tree.label[tree.label >= 0]]}, rows, names),
    )


FIGURES: dict[str, tuple[Callable[[], tuple[float, float, Paint]], tuple[str, ...]]] = {
    "planes": (
        planes,
        ("br", "mlknn", "sleec", "haram", "extra-trees", "boosted-trees", "ls-svm", "mlp", "weave"),
    ),
    "known-labels": (
        known_labels,
        ("chain", "chain-ensemble", "label-powerset", "rakel", "ofcc", "rbcc", "c-tran", "lamp"),
    ),
    "label-graph": (label_graph, ("ml-gcn",)),
    "mixture": (mixture, ("c-gmvae",)),
    "latent": (latent, ("c2ae", "mpvae")),
    "contrast": (contrast, ("mulsupcon",)),
    "asymmetric": (asymmetric, ("asl",)),
    "partial-losses": (partial_losses, ("an", "wan", "an-ls", "hill", "splc", "gr", "em-apl")),
    "expected": (expected, ("epr", "role")),
    "selection": (
        selection,
        (
            *("cls", "cls+", "ll-r", "ll-ct", "ll-cp"),
            *("co-teaching", "co-teaching+", "decoupling", "jocor"),
        ),
    ),
    "posterior": (posterior, ("cross-em", "em-forest")),
    "rules": (rules, ("ant", "ant+", "bl", "tc", "union")),
    "label-counts": (label_counts, ("smoothed-union", "distilled-union")),
    "layers": (layers, ("cfl", "aka", "fka")),
    "fusion": (fusion, ("xml0", "xml0+", "xml0-lf", "conse")),
    "similarities": (similarities, ("tf-idf", "zestxml", "sbert")),
    "attention": (attention, ("attentionxml",)),
    "label-tree": (label_tree, ("label-tree",)),
}


def svg(name: str) -> str:
    """The figure of this name."""
    width, height, paint = FIGURES[name][0]()
    return draw(name, width, height, paint)


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        start = time.process_time()
        (FOLDER / f"{name}.svg").write_text(svg(name) + "\n", encoding="utf-8")
        print(f"{name}: {time.process_time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
