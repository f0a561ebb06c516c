"""How a cell is evaluated: which rows it learns from, its metrics and its thresholds.

There are two protocols, and a table never mixes them in one column:

honest
    Every choice is made on validation rows: when to stop, and the threshold of each metric of
    label sets. The test rows are scored once.
as-published
    The protocol of the paper, as the suite describes it. Several papers choose the threshold on
    the test rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.pipeline.data_parts import Parts

PROTOCOLS = ("honest", "as-published")
SPLITS = ("auto", "official", "stratified", "random")
THRESHOLDS = ("validation", "cardinality", "test")
PANEL = (
    "zero_one_loss",
    "hamming_loss",
    "hamming_accuracy",
    "f1_example",
    "f1_micro",
    "f1_macro",
    "cf1",
    "of1",
    "map",
    "ranking_loss",
    "lrap",
    "precision@1",
    "precision@3",
    "precision@5",
    "ndcg@3",
    "ndcg@5",
)
"""The metrics of every cell, whatever its suite shows, so that tables can share their fits.

A metric that a suite asks for beyond these is part of the name of its cells.
"""


@dataclass(frozen=True)
class EvaluationProtocol:
    """How the rows of a cell are split, and where its thresholds come from.

    >>> EvaluationProtocol("honest", threshold="test")
    Traceback (most recent call last):
    ...
    labelweave.exceptions.InputError: a threshold chosen on the test rows is not honest
    """

    name: str  # {"honest", "as-published"}
    # {"auto", "official", "stratified", "random"}: "auto" is the official split where there is one,
    # else a stratified split
    split: str = "auto"
    # Share of the rows in the test part, unless the split is official
    test_size: float | None = None
    validation: float = 0.2  # Share of the training rows in the validation part
    # The threshold that turns scores into label sets. "validation": where each metric is best on
    # the validation rows. "cardinality": where the number of predicted labels equals the sum of the
    # scores, which uses no labels. A number: that threshold. "test": where each metric is best on
    # the *test* rows, for the as-published protocol only.
    threshold: float | str = "validation"

    def __post_init__(self) -> None:
        if self.name not in PROTOCOLS:
            raise InputError(f"a protocol is called {' or '.join(PROTOCOLS)}, not {self.name!r}")
        if self.split not in SPLITS:
            raise InputError(f"split is one of {', '.join(SPLITS)}, not {self.split!r}")
        is_share = isinstance(self.threshold, float) and 0 <= self.threshold <= 1
        if not is_share and self.threshold not in THRESHOLDS:
            raise InputError(
                f"threshold is a number from 0.0 to 1.0 or one of {', '.join(THRESHOLDS)}, "
                f"not {self.threshold!r}"
            )
        if self.name == "honest" and self.threshold == "test":
            raise InputError("a threshold chosen on the test rows is not honest")

    @classmethod
    def from_settings(
        cls, name: str, settings: Mapping[str, Any], shown: str
    ) -> EvaluationProtocol:
        """Read a protocol from a suite; `shown` is what an error calls the suite."""
        try:
            return cls(name, **settings)
        except TypeError:
            raise InputError(
                f"{shown}: a protocol has split, test_size, validation and threshold, "
                f"not {sorted(settings)}"
            ) from None

    def parts(self, data: Dataset, seed: int) -> Parts:
        """Split a data set into train, validation and test rows.

        The seed decides every split that is not official.
        """
        from labelweave.data.splits import split_dataset

        return Parts(
            *split_dataset(
                data,
                test_size=self.test_size,
                validation=self.validation,
                method=self.split,
                random_state=seed,
            )
        )

    def settings(self) -> dict[str, Any]:
        """Return every field but the name, as values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def describe(self) -> str:
        """Describe the protocol in one line."""
        thresholds = {
            "validation": "thresholds tuned on validation rows",
            "cardinality": "threshold by the expected number of labels",
            "test": "thresholds chosen on the TEST rows",
        }.get(str(self.threshold), f"threshold {self.threshold}")
        size = "" if self.test_size is None else f", {self.test_size:.0%} test"
        return (
            f"{self.split} split{size}, {self.validation:.0%} of train for validation, {thresholds}"
        )
