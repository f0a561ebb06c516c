"""The search of `labelweave tune`: its space, and an Optuna study that can be resumed and shared.

The values of a parameter that may be tried are a class attribute of its method::

    tuning_space = {
        "lr": ("log", 1e-4, 1e-2),        # a number, spread evenly over orders of magnitude
        "dropout": ("float", 0.0, 0.6),   # a number
        "k": ("int", 3, 30),              # a whole number
        "width": ("int-log", 32, 1024),   # a whole number, over orders of magnitude
        "loss": ("choice", ["bce", "asl"]),
    }
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelweave.cli.output import Output
from labelweave.exceptions import InputError, LabelweaveError, require
from labelweave.pipeline.parameters import parse_value

__all__ = ["Range", "SearchFailedError", "best_parameters", "make_space", "open_study", "search"]

_IDENTITY, _FAILURE = "labelweave", "failure"
_OPENING_TRIES = 6
Objective = Callable[[dict[str, Any]], float]
_NUMBERS = ("float", "log", "int", "int-log")


class SearchFailedError(LabelweaveError):
    """No trial of a search succeeded."""


@dataclass(frozen=True)
class Range:
    """The values one parameter may take."""

    name: str
    kind: str
    low: Any = None
    high: Any = None
    choices: tuple[Any, ...] = ()

    def suggest(self, trial: Any) -> Any:
        """A value for an Optuna trial."""
        if self.kind == "choice":
            # Optuna keeps choices in its storage, where only simple values can be.
            return json.loads(trial.suggest_categorical(self.name, list(map(_key, self.choices))))
        if self.kind.startswith("int"):
            return trial.suggest_int(self.name, self.low, self.high, log=self.kind == "int-log")
        return trial.suggest_float(self.name, self.low, self.high, log=self.kind == "log")

    def stored(self, value: Any) -> Any:
        """A value as Optuna keeps it, or None if it lies outside."""
        if self.kind == "choice":
            return _key(value) if _key(value) in map(_key, self.choices) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number and self.low <= value <= self.high else None

    def restored(self, stored: Any) -> Any:
        """The value that Optuna kept."""
        return json.loads(stored) if self.kind == "choice" else stored

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name}: {', '.join(map(str, self.choices))}"
        log = " (log)" if self.kind.endswith("log") else ""
        return f"{self.name}: {self.low:g} to {self.high:g}{log}"


def make_space(cls: type, overrides: Iterable[str]) -> dict[str, Range]:
    """The space of a method, with what `--space` says put over it.

    Parameters
    ----------
    cls : class of the method
    overrides : texts such as ``"lr=1e-4:1e-2:log"``, ``"loss=bce,asl"`` or ``"k=none"``, which
        takes k out of the search

    Examples
    --------
    >>> class Method:
    ...     tuning_space = {"k": ("int", 1, 9), "s": ("float", 0.1, 1.0)}
    >>> for range in make_space(Method, ["s=none", "lr=1e-3:0.1:log", "k=5,7"]).values():
    ...     print(range)
    k: 5, 7
    lr: 0.001 to 0.1 (log)
    """
    offered: Mapping[str, tuple[Any, ...]] = getattr(cls, "tuning_space", {})
    space = {name: _from_spec(name, spec) for name, spec in offered.items()}
    for text in overrides:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name or not values:
            raise InputError(
                f"--space takes name=low:high, name=low:high:log or name=a,b: {text!r}"
            )
        if values.lower() == "none":
            space.pop(name, None)
        else:
            space[name] = _from_text(name, values)
    return space


def _from_spec(name: str, spec: tuple[Any, ...]) -> Range:
    kind, *values = spec
    if kind == "choice":
        return Range(name, kind, choices=tuple(values[0]))
    if kind not in _NUMBERS or len(values) != 2:
        raise InputError(f"the tuning space of {name!r} is not valid: {spec!r}")
    return _checked(Range(name, kind, *values))


def _from_text(name: str, text: str) -> Range:
    low, colon, rest = text.partition(":")
    if not colon:
        listed = parse_value(text if text.startswith("[") else f"[{text}]")
        choices = listed if isinstance(listed, list) else [parse_value(t) for t in text.split(",")]
        return Range(name, "choice", choices=tuple(choices))
    high, _, log = rest.partition(":")
    ends = parse_value(low), parse_value(high)
    is_number = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    if not is_number or log not in ("", "log"):
        raise InputError(f"--space {name}: {text!r} is not low:high or low:high:log in numbers")
    whole = all(isinstance(end, int) for end in ends)
    kind = ("int-log" if log else "int") if whole else (log or "float")
    return _checked(Range(name, kind, *ends))


def _checked(range: Range) -> Range:
    if not range.low <= range.high:
        raise InputError(f"the space of {range.name} is empty: {range.low} is above {range.high}")
    if range.kind.endswith("log") and range.low <= 0:
        raise InputError(f"the space of {range.name} is logarithmic, so it must start above 0")
    return range


def _key(value: Any) -> str:
    return json.dumps(value)


def open_study(
    url: str, name: str, *, maximize: bool, seed: int, identity: Mapping[str, Any], resume: bool
) -> Any:
    """The study of this name, new or as far as it went.

    `identity` says what is searched; a study of something else is refused, because its
    trials cannot be compared.
    """
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = _open_storage(optuna, url)
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction="maximize" if maximize else "minimize",
        sampler=_make_sampler(optuna, seed),
        load_if_exists=True,
    )
    known = study.user_attrs.get(_IDENTITY)
    if known is None:
        study.set_user_attr(_IDENTITY, dict(identity))
        return study
    if not resume:
        raise InputError(f"the study {name!r} exists in {url}: give another --study or --out")
    for key, value in identity.items():
        if known.get(key) != value:
            raise InputError(
                f"the study {name!r} in {url} was begun with {key} {known.get(key)!r}, now it is "
                f"{value!r}: give another --study or --out"
            )
    return study


def _open_storage(optuna: Any, url: str) -> Any:
    import sqlalchemy.exc

    waiting = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    for attempt in range(_OPENING_TRIES):
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=waiting)
        except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0]
            # Processes that begin at once all try to create the tables; one of them wins.
            lost_race = any(sign in first for sign in ("already exists", "UNIQUE", "locked"))
            if not lost_race or attempt == _OPENING_TRIES - 1:
                raise InputError(f"the storage {url} cannot be opened: {first}") from None
            time.sleep(0.5)
    raise AssertionError  # the loop returns or raises


def _make_sampler(optuna: Any, seed: int) -> Any:
    class SeededByTrial(optuna.samplers.BaseSampler):
        """TPE whose draws depend on the seed and the number of the trial only.

        A resumed search then goes on as one that never stopped, and processes that share a
        study do not try the same points. The first trial takes the parameters of `first`.
        (Optuna's queue is no way to set them: two processes on SQLite may take one entry twice.)
        """

        first: Mapping[str, Any] = {}

        def before_trial(self, study: Any, trial: Any) -> None:
            self._tpe = optuna.samplers.TPESampler(seed=seed * 1_000_003 + trial.number)

        def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
            if trial.number == 0:
                return {}
            return self._tpe.infer_relative_search_space(study, trial)

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> Any:
            return self._tpe.sample_relative(study, trial, search_space)

        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            if trial.number == 0 and name in self.first:
                return self.first[name]
            return self._tpe.sample_independent(study, trial, name, distribution)

    return SeededByTrial()


def search(
    study: Any,
    space: Mapping[str, Range],
    objective: Objective,
    output: Output,
    *,
    n_trials: int,
    timeout: float | None,
    first: Mapping[str, Any],
) -> None:
    """Run trials until the study has `n_trials` finished ones or the time is over.

    `first` are the parameters tried first (the defaults of the method), where they lie in
    the space. A trial that fails is recorded and passed over, unless none has succeeded yet.
    """
    stored = {name: space[name].stored(value) for name, value in first.items() if name in space}
    study.sampler.first = {name: value for name, value in stored.items() if value is not None}
    start = time.monotonic()
    while (done := _count_finished(study)) < n_trials:
        if timeout is not None and time.monotonic() - start >= timeout:
            output.say(f"time is over after {done} of {n_trials} trials; run again to go on")
            break
        study.optimize(
            lambda trial: _run(trial, space, objective),
            n_trials=1,
            catch=(Exception,) if _best(study) is not None else (),
            callbacks=[lambda study, trial: _report(study, trial, space, output)],
        )
    if _best(study) is None:
        raise SearchFailedError("no trial has succeeded, so there are no best parameters")


def _run(trial: Any, space: Mapping[str, Range], objective: Objective) -> float:
    parameters = {name: values.suggest(trial) for name, values in space.items()}
    try:
        value = objective(parameters)
        if value != value:
            raise SearchFailedError("the validation score is not a number")
    except Exception as error:
        trial.set_user_attr(_FAILURE, f"{type(error).__name__}: {error}")
        raise
    return value


def _count_finished(study: Any) -> int:
    """Trials with a score or an error of their own; an interrupted one is run again."""
    return sum(
        trial.state.name == "COMPLETE" or _FAILURE in trial.user_attrs
        for trial in study.get_trials(deepcopy=False)
    )


def _best(study: Any) -> Any:
    complete = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
    return study.best_trial if complete else None


def _report(study: Any, trial: Any, space: Mapping[str, Range], output: Output) -> None:
    tried = " ".join(f"{k}={_short(space[k].restored(v))}" for k, v in trial.params.items())
    if trial.state.name != "COMPLETE":
        output.say(f"trial {trial.number}: failed ({trial.user_attrs.get(_FAILURE)})  {tried}")
        return
    best = study.best_trial
    mark = "best so far" if best.number == trial.number else f"best {best.value:.4f}"
    output.say(
        f"trial {trial.number}: {trial.value:.4f} ({mark}, {trial.duration.total_seconds():.1f} s)"
        f"  {tried}"
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def best_parameters(study: Any, space: Mapping[str, Range]) -> dict[str, Any]:
    """The parameters of the best trial."""
    return {name: space[name].restored(value) for name, value in study.best_trial.params.items()}


def trial_rows(study: Any, space: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Every trial as plain values."""
    return [
        {
            "number": trial.number,
            "state": trial.state.name.lower(),
            "value": trial.value,
            "parameters": {k: space[k].restored(v) for k, v in trial.params.items()},
            "failure": trial.user_attrs.get(_FAILURE),
        }
        for trial in study.get_trials(deepcopy=False)
    ]


def database_url(folder: Path) -> str:
    """The SQLite storage of an output folder."""
    return f"sqlite:///{folder.resolve() / 'study.db'}"
