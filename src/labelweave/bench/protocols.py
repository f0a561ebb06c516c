"""Protocols: how rows are divided, and where the scores of a label become a yes.

Two names, never mixed in one column:

honest
    All choices on validation rows: the moment to stop, and the cut of each metric of label
    sets. Test rows are scored once.
as-published
    The way the paper went, spelled out by the suite; for several papers the cut is chosen on
    the test rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labelweave.assembly.protocol import Parts
from labelweave.data import Dataset
from labelweave.exceptions import InputError

__all__ = ["PROTOCOLS", "Protocol"]

PROTOCOLS = ("honest", "as-published")
SPLITS = ("auto", "official", "stratified", "random")
CUTS = ("validation", "cardinality", "test")


@dataclass(frozen=True)
class Protocol:
    """How a cell is measured.

    Parameters
    ----------
    name : {"honest", "as-published"}
    split : {"auto", "official", "stratified", "random"}, default="auto"
        "auto" is the official split where there is one, else a stratified one.
    test_size : float, optional
        Share of the rows to test on, where the split is not official.
    validation : float, default=0.2
        Share of the training rows to choose on.
    cut : float or {"validation", "cardinality", "test"}, default="validation"
        Where scores are cut into label sets: where each metric is best on the validation rows;
        where as many labels are predicted as the scores add up to, which looks at no label; at
        a fixed number; or, as published only, where each metric is best on the *test* rows.

    Examples
    --------
    >>> Protocol("honest", cut="test")
    Traceback (most recent call last):
    ...
    labelweave.exceptions.InputError: a cut chosen on the test rows is not honest
    """

    name: str
    split: str = "auto"
    test_size: float | None = None
    validation: float = 0.2
    cut: float | str = "validation"

    def __post_init__(self) -> None:
        if self.name not in PROTOCOLS:
            raise InputError(f"a protocol is called {' or '.join(PROTOCOLS)}, not {self.name!r}")
        if self.split not in SPLITS:
            raise InputError(f"split is one of {', '.join(SPLITS)}, not {self.split!r}")
        is_share = isinstance(self.cut, float) and 0 <= self.cut <= 1
        if not is_share and self.cut not in CUTS:
            raise InputError(
                f"cut is a number from 0.0 to 1.0 or one of {', '.join(CUTS)}, not {self.cut!r}"
            )
        if self.name == "honest" and self.cut == "test":
            raise InputError("a cut chosen on the test rows is not honest")

    @classmethod
    def checked(cls, name: str, settings: Mapping[str, Any], shown: str) -> Protocol:
        """A protocol from what a suite says."""
        try:
            return cls(name, **settings)
        except TypeError:
            raise InputError(
                f"{shown}: a protocol has split, test_size, validation and cut, "
                f"not {sorted(settings)}"
            ) from None

    def parts(self, data: Dataset, seed: int) -> Parts:
        """Train, validation and test rows; the seed decides what is not official."""
        from labelweave.data.splits import split_dataset

        made = split_dataset(
            data,
            test_size=self.test_size,
            validation=self.validation,
            method=self.split,
            random_state=seed,
        )
        return Parts(*made)

    def settings(self) -> dict[str, Any]:
        """All but the name, as values that JSON can hold."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def describe(self) -> str:
        """The protocol in a few words."""
        where = {
            "validation": "cuts tuned on validation rows",
            "cardinality": "cut by the expected number of labels",
            "test": "cuts chosen on the TEST rows",
        }.get(str(self.cut), f"cut at {self.cut}")
        size = "" if self.test_size is None else f", {self.test_size:.0%} test"
        return f"{self.split} split{size}, {self.validation:.0%} of train to choose on, {where}"
