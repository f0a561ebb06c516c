"""Making, fitting and describing a model: what `train` and `tune` share."""

from __future__ import annotations

import platform
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from labelweave.cli.model_folder import save_model
from labelweave.cli.output import Output
from labelweave.cli.parameters import check_names, describe_parameters
from labelweave.cli.protocol import Parts, Protocol, Source
from labelweave.cli.scoring import example_rows, label_rows, score, show_examples, show_scores
from labelweave.data import Dataset
from labelweave.exceptions import InputError

__all__ = [
    "Recipe",
    "check_parameters",
    "defaults",
    "fit",
    "say_data",
    "threshold_in_words",
    "train_and_save",
    "versions",
    "with_corrections",
    "with_label_texts",
]

DEFAULT_THRESHOLD = "tuned"
# Before the parameters of what stands before the method: TextClassifier, ImageEncoder.
_OF_TEXT, _OF_IMAGE = "text__", "image__"
_PACKAGES = ("labelweave", "numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Recipe:
    """A method and its parameters."""

    method: str
    parameters: Mapping[str, Any]
    verbose: bool = False

    @classmethod
    def checked(
        cls,
        method: str,
        parameters: Mapping[str, Any],
        *,
        seed: int,
        metric: str | None = None,
        verbose: bool = False,
    ) -> Recipe:
        """A recipe whose names are known and whose values the method accepts.

        Checked before any data is read: a typing mistake should not cost minutes. A `metric`
        is what early stopping watches and, where it is one of label sets, the threshold too.
        """
        from labelweave.metrics import get_metric
        from labelweave.thresholds import make_threshold

        check_parameters(method, parameters)
        own = defaults(method).get("threshold")  # a rule that a method brings stays
        rule = own if isinstance(own, str) else DEFAULT_THRESHOLD
        chosen: dict[str, Any] = {"threshold": rule, "random_state": seed}
        if metric is not None:
            judge = get_metric(metric)
            if judge.needs == "pred":
                chosen["threshold"] = f"tuned:{judge.name}"
            if "monitor" in defaults(method):
                chosen["monitor"] = judge.name
        recipe = cls(method, {**chosen, **parameters}, verbose)
        recipe.make()._validate_params()
        make_threshold(recipe.parameters["threshold"])
        return recipe

    def with_parameters(self, parameters: Mapping[str, Any]) -> Recipe:
        return Recipe(self.method, {**self.parameters, **parameters}, self.verbose)

    def make(self, data: Dataset | None = None) -> Any:
        """An unfitted estimator; one for texts puts TF-IDF weights before the method."""
        from sklearn.utils import get_tags

        from labelweave.registry import make

        plain = {name: value for name, value in self.parameters.items() if "__" not in name}
        nested = {name: value for name, value in self.parameters.items() if "__" in name}
        of_text, of_image = _taken(nested, _OF_TEXT), _taken(nested, _OF_IMAGE)
        model = make(self.method, **plain)
        _set_nested(model, nested, self.method)
        if self.verbose and model._draws_a_bar:
            model.set_params(verbose=plain.get("verbose", 1))
        elif self.verbose and hasattr(model, "_default_base"):
            model.set_params(base__verbose=nested.get("base__verbose", 1))
        if data is None:
            return model
        if of_image or data.is_image:
            shared = {name: plain[name] for name in ("threshold", "random_state")}
            return _of_images(model, data, self.method, of_image, shared)
        if get_tags(model).input_tags.string:  # it reads texts itself
            if not data.is_text:
                raise InputError(f"{self.method} takes texts, but {data.name} holds features")
            if of_text:
                raise InputError(
                    f"{_OF_TEXT}{next(iter(of_text))} is for methods that take features: "
                    f"{self.method} reads texts itself"
                )
            return model
        if not data.is_text:
            if of_text:
                raise InputError(f"{_OF_TEXT}{next(iter(of_text))} is for texts: there are none")
            return model
        from labelweave.text import TextClassifier

        shared = {name: plain[name] for name in ("threshold", "random_state")}
        return TextClassifier(model, **shared, **of_text)

    def describe(self) -> str:
        """The method and what was set, in one line."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.method} ({shown})"


def _taken(settings: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The settings that begin with a prefix, taken out, without it."""
    return {
        name.removeprefix(prefix): settings.pop(name)
        for name in list(settings)
        if name.startswith(prefix)
    }


def _of_images(
    model: Any, data: Dataset, method: str, of_image: dict[str, Any], shared: dict[str, Any]
) -> Any:
    """A model of images: its own network, a frozen one before it, or rows of pixels."""
    own = model._image_encoder() if hasattr(model, "_image_encoder") else None
    if not data.is_image:
        raise InputError(f"{_OF_IMAGE}{next(iter(of_image))} is for images: there are none")
    if of_image:
        from labelweave.images import ImageClassifier, ImageEncoder

        if own is not None:
            raise InputError(f"{method} has a network for images itself: leave image__ or encoder")
        return ImageClassifier(model, encoder=ImageEncoder(**of_image), **shared)
    if own is None and not hasattr(data.X, "pixels"):
        raise InputError(
            f"{method} takes features, but {data.name} holds images: give it a network "
            "(encoder=resnet18, where it has one), features of one (image__weights=FILE), or rows "
            "of pixels (images=false)"
        )
    return model


def _set_nested(model: Any, nested: Mapping[str, Any], method: str) -> None:
    """Set `outer__inner` parameters; an estimator that None or an id stands for is made first."""
    # What stands further inside is set last: its owner may have been named just before.
    for name, value in sorted(nested.items(), key=lambda item: item[0].count("__")):
        outer, _, inner = name.partition("__")
        stands_for = isinstance(getattr(model, outer), str | None)
        if stands_for and hasattr(model, f"_default_{outer}"):
            model.set_params(**{outer: getattr(model, f"_default_{outer}")()})
        part = getattr(model, outer)
        if not hasattr(part, "get_params"):
            raise InputError(f"{outer} of {method} is {part!r}, which has no parameter {inner!r}")
        if "__" in inner:
            _set_nested(part, {inner: value}, type(part).__name__)
            continue
        check_names([inner], part.get_params(), f"parameter of {type(part).__name__} called")
        model.set_params(**{name: value})


def defaults(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    from labelweave.registry import get_class

    return {
        parameter.name: parameter.default for parameter in describe_parameters(get_class(method))
    }


def check_parameters(method: str, names: Collection[str]) -> None:
    """Raise for a name that is no parameter of the method, nor of an estimator inside it."""
    of_text = [name.removeprefix(_OF_TEXT) for name in names if name.startswith(_OF_TEXT)]
    if of_text:
        from labelweave.text import TextClassifier

        own = set(TextClassifier._get_param_names()) - set(defaults(method)) - {"classifier"}
        check_names(of_text, sorted(own), "parameter of texts called")
    of_image = [name.removeprefix(_OF_IMAGE) for name in names if name.startswith(_OF_IMAGE)]
    if of_image:
        from labelweave.images import ImageEncoder

        check_names(of_image, ImageEncoder._get_param_names(), "parameter of images called")
    before = (_OF_TEXT, _OF_IMAGE)
    outer = [name.partition("__")[0] for name in names if not name.startswith(before)]
    check_names(outer, defaults(method), f"parameter of {method} called")


def with_corrections(recipe: Recipe, source: Source, data: Dataset, output: Output) -> Recipe:
    """Say what verdicts changed; the recipe, told what is unannotated where they made it unclear.

    A "no" makes a zero. In labels that were positive or unknown throughout it must not make a
    method for partial labels believe that all blanks are zeros.
    """
    from labelweave.audit.corrections import read_verdicts
    from labelweave.nn.observed import has_zeros

    verdicts = read_verdicts(str(source.corrections))
    said = ", ".join(f"{n:,} {verdict}" for verdict, n in verdicts.counts().items())
    output.say(f"corrections of {source.corrections}: {said}")
    has_rule = "unannotated" in defaults(recipe.method)
    if has_rule and recipe.parameters.get("unannotated", "auto") == "auto":
        before = Source(source.name, source.reading).load()
        if has_zeros(data.Y) and not has_zeros(before.Y):
            return recipe.with_parameters({"unannotated": "unknown"})
    return recipe


def fit(recipe: Recipe, parts: Parts) -> tuple[Any, float]:
    """A fitted model and the seconds it took; validation rows stop it early and tune it."""
    model = recipe.make(parts.train)
    start = time.perf_counter()
    model.fit(parts.train.X, parts.train.Y, validation=parts.validation)
    return model, time.perf_counter() - start


def with_label_texts(
    data: Dataset, path: str | None, method: str
) -> tuple[Dataset, dict[str, str]]:
    """The data with the descriptions of a file, and the labels of it that the data do not have."""
    if path is None:
        return data, {}
    from labelweave.data.label_texts import read_label_texts
    from labelweave.labels import as_labels
    from labelweave.registry import get_class

    if not hasattr(get_class(method), "add_labels"):
        raise InputError(f"--label-texts is for methods that read label texts: {method} does not")
    texts = read_label_texts(path)
    known = {name: text for name, text in texts.items() if text and name in data.label_names}
    described = as_labels(data.Y, descriptions={**data.Y.descriptions, **known})
    names = set(data.label_names)
    return replace(data, Y=described), {n: text for n, text in texts.items() if n not in names}


def say_data(output: Output, data: Dataset, parts: Parts, protocol: Protocol) -> None:
    """What the data are and how they are divided."""
    facts = data.summary()
    width = "texts" if data.is_text else f"{facts['features']:,} features"
    width = "images" if data.is_image else width
    unknown = f", {facts['unknown']:,} unknown entries" if facts["unknown"] else ""
    output.say(
        f"{data.name}: {facts['rows']:,} rows, {width}, {facts['labels']:,} labels, "
        f"{facts['cardinality']:.2f} labels a row{unknown}"
    )
    sizes = parts.sizes()
    output.say(
        f"{protocol.describe(data)}: {sizes['train']:,} rows to train, {sizes['validation']:,} "
        f"to choose on (early stopping, threshold), {sizes['test']:,} to test once"
    )


def threshold_in_words(model: Any) -> str:
    """The rule that makes label sets, and how it was found."""
    rule = model.threshold_
    cut = getattr(rule, "value_", None)
    words = f"label sets by {rule}" if cut is None else f"threshold {cut:.3f}"
    if not rule.needs_validation:
        return words
    goal = f" for {rule.metric}" if hasattr(rule, "metric") else ""
    where = "out of fold" if model._tunes_out_of_fold else "on the validation rows"
    return f"{words}, tuned {where}{goal}"


def train_and_save(
    recipe: Recipe,
    data: Dataset,
    source: Source,
    parts: Parts,
    protocol: Protocol,
    folder: Path,
    output: Output,
    *,
    all_metrics: bool,
    per_label: bool,
    examples: int = 0,
    new_labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Fit, score the test rows once, save, show; the result as values for JSON.

    `new_labels` are added to the model when the scores of the others are known.
    """
    from labelweave.bench.measuring import Meter

    output.say(f"training {recipe.describe()}")
    with Meter() as meter:
        model, seconds = fit(recipe, parts)
    output.say(f"trained in {seconds:.1f} s; {threshold_in_words(model)}")
    scores = score(model, parts.test, train_labels=parts.train.Y)
    few = example_rows(model, parts.test, examples)
    metrics = {
        "data": data.summary(),
        "method": recipe.method,
        "parameters": recipe.parameters,
        "protocol": {**protocol.to_dict(), "rows": parts.sizes()},
        "corrections": source.corrections,
        "threshold": model.threshold_.to_dict(),
        "scores": {"test": scores.to_dict()},
        "per_label": label_rows(scores),
        "seconds": {"fit": round(seconds, 3)},
        "memory": {"peak_mb": meter.memory["peak"]},
        "versions": versions(),
    }
    if new_labels:
        model.add_labels(list(new_labels), dict(new_labels))
        output.say(f"{len(new_labels):,} labels without examples added")
    save_model(
        model,
        folder,
        data=data,
        source=source,
        parts=parts,
        protocol=protocol,
        scores=scores.to_dict(),
        metrics=metrics,
    )
    title = f"scores on the {len(parts.test):,} test rows"
    show_scores(output, scores, title, everything=all_metrics, per_label=per_label)
    show_examples(output, few)
    output.say(f"model and metrics.json written to {folder}")
    return {**metrics, "examples": few, "model": str(folder)}


def versions() -> dict[str, str]:
    """Versions of what the scores depend on."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in _PACKAGES
    }
