"""The honest protocol: which rows are learnt from, which choose, and which are scored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from labelweave.data import Dataset
from labelweave.exceptions import InputError

__all__ = ["Parts", "Protocol", "load_data", "with_labels"]


class Parts(NamedTuple):
    """The three parts of a data set."""

    train: Dataset
    validation: Dataset
    test: Dataset

    def sizes(self) -> dict[str, int]:
        return {name: len(part) for name, part in zip(self._fields, self, strict=True)}


@dataclass(frozen=True)
class Protocol:
    """How the parts are made; the same protocol makes the same parts of the same data."""

    split: str = "auto"
    test_size: float | None = None
    validation: float = 0.2
    seed: int = 0
    test: str | None = None

    def parts(self, data: Dataset, reader_options: Mapping[str, Any]) -> Parts:
        """Train, validation and test rows of a data set."""
        from labelweave.data.splits import split_dataset

        if self.test is None:
            made = split_dataset(
                data,
                test_size=self.test_size,
                validation=self.validation,
                method=self.split,
                random_state=self.seed,
            )
            return Parts(*made)
        if self.test_size is not None or self.split == "official":
            raise InputError(
                "--test names the test rows: leave out --test-size and --split official"
            )
        test = with_labels(load_data(self.test, reader_options), data.label_names, data.name)
        method = "random" if self.split == "random" else "stratified"
        train, validation = split_dataset(
            replace(data, part=None),
            test_size=self.validation,
            method=method,
            random_state=self.seed,
        )
        return Parts(train, validation, test)

    def describe(self, data: Dataset) -> str:
        """Where the test rows come from, in a few words."""
        if self.test is not None:
            return f"test rows from {self.test}"
        if self.split in ("stratified", "random"):
            return f"{self.split} split, seed {self.seed}"
        official = data.part is not None and "test" in set(data.part)
        if official and self.test_size is None:
            return "official split"
        return f"stratified split, seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def load_data(source: str, reader_options: Mapping[str, Any]) -> Dataset:
    """A data set of the catalog or a file, with labels."""
    from labelweave.data.catalog import load_dataset

    data = load_dataset(source, **reader_options)
    if data.Y.n_labels == 0:
        raise InputError(
            f"{source} has no labels that could be recognised: name the label columns with "
            "--labels, or the column that lists them with --label-column"
        )
    return data


def with_labels(data: Dataset, names: Sequence[str], whose: str) -> Dataset:
    """The same rows with these labels, in this order."""
    if data.label_names == tuple(names):
        return data
    here = set(data.label_names)
    missing = [name for name in names if name not in here]
    if missing:
        raise InputError(
            f"{data.name} has no label {missing[0]!r} ({len(missing)} of the {len(names)} labels "
            f"of {whose} are missing)"
        )
    return data.select_labels(list(names))
