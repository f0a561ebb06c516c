"""The common vocabulary of the labels of several teachers."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.exceptions import InputError

MATCHES = ("ignore-case", "exact")
_MAX_COMPARED = 300  # labels among which similar names are searched


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The labels of all teachers under one name each."""

    names: tuple[str, ...]  # sorted: the order of teachers and labels does not matter
    columns: tuple[np.ndarray, ...]  # for each teacher the places of its labels in `names`
    spellings: tuple[tuple[str, ...], ...]  # the different spellings of each label

    @property
    def known(self) -> np.ndarray:
        """Boolean array (teachers, labels): which labels each teacher predicts."""
        known = np.zeros((len(self.columns), len(self.names)), dtype=bool)
        for row, columns in zip(known, self.columns, strict=True):
            row[columns] = True
        return known

    @property
    def shared(self) -> tuple[str, ...]:
        """Labels that at least two teachers predict."""
        return self._those(self.known.sum(axis=0) > 1)

    @property
    def orphans(self) -> tuple[str, ...]:
        """Labels that only one teacher predicts."""
        return self._those(self.known.sum(axis=0) == 1)

    def _those(self, mask: np.ndarray) -> tuple[str, ...]:
        return tuple(self.names[j] for j in np.flatnonzero(mask))

    def places(self, names: Sequence[str]) -> list[int | None]:
        """The column of each of these names, in any of its spellings; None for other names."""
        place = {name: j for j, spelt in enumerate(self.spellings) for name in spelt}
        place |= {name: j for j, name in enumerate(self.names)}
        return [place.get(name) for name in names]

    def near_misses(self) -> list[tuple[str, str]]:
        """Labels of different teachers with similar names that were not joined."""
        orphans = [self.names.index(name) for name in self.orphans[:_MAX_COMPARED]]
        owner = self.known.argmax(axis=0)
        pairs = []
        for k, one in enumerate(orphans):
            for other in orphans[k + 1 :]:
                matcher = difflib.SequenceMatcher(None, self.names[one], self.names[other])
                if owner[one] != owner[other] and matcher.quick_ratio() > 0.85 < matcher.ratio():
                    pairs.append((self.names[one], self.names[other]))
        return pairs

    def to_frame(self, teachers: Sequence[str]) -> Any:
        """A table of the labels: the teachers and the spellings of each."""
        import pandas as pd

        known = self.known
        return pd.DataFrame(
            {
                "label": self.names,
                "teachers": [
                    ", ".join(teachers[t] for t in np.flatnonzero(known[:, j]).tolist())
                    for j in range(len(self.names))
                ],
                "shared": known.sum(axis=0) > 1,
                "spellings": [", ".join(spelt) for spelt in self.spellings],
            }
        )


def join_vocabularies(
    vocabularies: Sequence[Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    match: str = "ignore-case",
) -> Vocabulary:
    """Join the labels of several teachers by their names.

    `names` are those of the teachers, for messages. `aliases` maps a label to its common name;
    several labels may have one name. With ``match="ignore-case"`` ``"Car"`` and ``"car"`` are one
    label, with ``"exact"`` they are two; repeated and surrounding blanks are always ignored.

    The name of a joined label is its alias, else its most frequent spelling without these blanks;
    of equally frequent ones the one with lower case first. It does not depend on the order of the
    teachers.

    >>> vocabulary = join_vocabularies([["Car", "tree"], [" car", "auto stop"]])
    >>> vocabulary.names, vocabulary.shared
    (('auto stop', 'car', 'tree'), ('car',))
    >>> join_vocabularies([["car"], ["auto"]], aliases={"auto": "car"}).names
    ('car',)
    """
    if match not in MATCHES:
        raise InputError(f"match must be {' or '.join(map(repr, MATCHES))}, not {match!r}")
    n_teachers = len(vocabularies)
    teachers = list(names) if names is not None else [f"number {t}" for t in range(n_teachers)]
    aliases = dict(aliases or {})
    _check_aliases(aliases, vocabularies, match)
    renamed = {_key(old, match): new for old, new in aliases.items()}
    common_names = {_key(new, match): new for new in aliases.values()}
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    keys_of = []
    for labels, teacher in zip(vocabularies, teachers, strict=True):
        keys: dict[str, str] = {}
        for label in labels:
            key = _key(label, match)
            key = _key(renamed[key], match) if key in renamed else key
            if key in keys:
                raise InputError(
                    f"teacher {teacher!r} has the labels {keys[key]!r} and {label!r}, which join "
                    "to one: rename one of them with aliases, or use match='exact'"
                )
            keys[key] = label
            spellings[key][label] += 1
        keys_of.append(list(keys))
    chosen = {key: common_names.get(key) or _common_name(spellings[key]) for key in spellings}
    order = sorted(chosen, key=lambda key: chosen[key])
    place = {key: j for j, key in enumerate(order)}
    return Vocabulary(
        tuple(chosen[key] for key in order),
        tuple(np.array([place[key] for key in keys], dtype=np.intp) for keys in keys_of),
        tuple(tuple(sorted(spellings[key])) for key in order),
    )


def _common_name(spellings: Counter[str]) -> str:
    """The most frequent spelling, blanks aside; of equally frequent ones lower case first."""
    trimmed: Counter[str] = Counter()
    for label, times in spellings.items():
        trimmed[_trimmed(label)] += times
    return min(trimmed, key=lambda name: (-trimmed[name], name.swapcase()))


def _trimmed(name: str) -> str:
    return " ".join(name.split())


def _key(name: str, match: str) -> str:
    plain = _trimmed(name)
    return plain.casefold() if match == "ignore-case" else plain


def _check_aliases(
    aliases: Mapping[str, str], vocabularies: Sequence[Sequence[str]], match: str
) -> None:
    known = {_key(label, match): label for labels in vocabularies for label in labels}
    for old, new in aliases.items():
        if _key(old, match) not in known:
            near = difflib.get_close_matches(old, known.values(), n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise InputError(f"no teacher has the label {old!r} that an alias renames{hint}")
        if new in aliases and aliases[new] != new:
            raise InputError(
                f"the alias {old!r} leads to {new!r}, which is itself renamed: rename {old!r} "
                "directly"
            )
