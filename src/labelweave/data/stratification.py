"""Iterative stratification in batches, the algorithm of the stratified splits.

Sechidis et al. [1]_ assign rows one by one: they take the label with the fewest unassigned rows,
assign each of its rows to the part with the largest remaining demand for that label, update the
demands, and continue with the next label. While the rows of one label are assigned, only the
demands for that label matter. The number of rows that each part receives is therefore known in
advance, and all rows of a label can be assigned at once. This is done here, with three additions:

* the parts have exact sizes;
* the rows of a label are assigned in the order of their other labels, so that pairs of labels are
  balanced as well (the aim of Szymanski and Kajdanowicz [2]_);
* at the end items are swapped between parts where frequent labels are still unbalanced.

References
----------
.. [1] K. Sechidis, G. Tsoumakas, I. Vlahavas: On the stratification of multi-label data.
   ECML PKDD 2011.
.. [2] P. Szymanski, T. Kajdanowicz: A network perspective on stratification of multi-label
   data. LIDTA 2017.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

N_SORT_KEYS = 4  # number of labels of a row, rarest first, by which rows are ordered
MAX_SEARCHES = 2000  # limit on the searches for swaps
N_POOL = 512  # rows of each part that are considered for a swap
N_CANDIDATES = 48  # the best of them, which are compared pair by pair


def assign_parts(
    counts: sp.csr_array,
    part_sizes: np.ndarray,
    rng: np.random.Generator,
    item_sizes: np.ndarray | None = None,
) -> np.ndarray:
    """Assign each item to a part so that every part has its share of every column.

    * `counts`: An item is a row (its counts are 1) or a group of rows, and a column is a label: the
      counts are the numbers of positives of each label in the item. Items may have no entries.
    * `part_sizes`: Number of rows of each part; they add up to the number of rows.
    * `item_sizes`: Number of rows of each item. Without it every item is one row, and the sizes of
      the parts are exact.
    """
    counts = _with_column_for_empty_items(counts, item_sizes)
    order = _sorted_items(counts, rng)
    counts = counts[order]
    sizes = None if item_sizes is None else item_sizes[order]
    part = _assign_by_label(counts, part_sizes, rng, sizes)
    if sizes is not None:
        _fill_empty_parts(part, len(part_sizes), sizes)
        # A part that is one row too large costs as much as being off by one for every label.
        weight = np.sqrt(counts.shape[1])
        counts = sp.hstack([counts, sp.csr_array(weight * sizes[:, None])], format="csr")
    share = part_sizes / part_sizes.sum()
    improver = _Improver(counts, part, share, rng, items_are_rows=sizes is None)
    if sizes is not None:
        improver.move_items()
    improver.swap_items()
    assigned = np.empty_like(part)
    assigned[order] = part
    return assigned


def _with_column_for_empty_items(
    counts: sp.csr_array, item_sizes: np.ndarray | None
) -> sp.csr_array:
    """Add a column for the items without entries, so that they are spread evenly as well."""
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    counts = counts.astype(np.float64)
    if len(empty) == 0:
        return counts
    amount = np.ones(len(empty)) if item_sizes is None else item_sizes[empty].astype(float)
    column = sp.csr_array(
        (amount, (empty, np.zeros(len(empty), dtype=int))), shape=(counts.shape[0], 1)
    )
    return sp.hstack([counts, column], format="csr")


def _sorted_items(counts: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """Order the items by their rarest label, then the next rarest; ties are in random order."""
    n_items, n_columns = counts.shape
    rarity = np.empty(n_columns, dtype=np.int64)
    frequency = np.bincount(counts.indices, minlength=n_columns)
    rarity[np.argsort(frequency, kind="stable")] = np.arange(n_columns)
    # Sorting permutes the stored values in place, so they must not be those of `counts`.
    ones = np.ones(counts.nnz, dtype=np.int8)
    ranked = sp.csr_array((ones, rarity[counts.indices], counts.indptr), counts.shape)
    ranked.sort_indices()
    lengths = np.diff(ranked.indptr)
    keys = [rng.random(n_items)]
    for position in reversed(range(N_SORT_KEYS)):
        key = np.full(n_items, n_columns)
        has = lengths > position
        key[has] = ranked.indices[ranked.indptr[:-1][has] + position]
        keys.append(key)
    return np.lexsort(keys)


def _assign_by_label(
    counts: sp.csr_array,
    part_sizes: np.ndarray,
    rng: np.random.Generator,
    item_sizes: np.ndarray | None,
) -> np.ndarray:
    """Assign all items of the rarest remaining label at once, label after label."""
    n_items, n_columns = counts.shape
    by_column = counts.tocsc()
    part = np.full(n_items, -1)
    left = np.diff(by_column.indptr)
    share = part_sizes / part_sizes.sum()
    demand = by_column.sum(axis=0)[:, None] * share
    room = part_sizes.astype(np.float64)
    none_left = n_items + 1
    active = np.where(left > 0, left, none_left)
    while n_columns and active[column := int(active.argmin())] < none_left:
        span = slice(by_column.indptr[column], by_column.indptr[column + 1])
        free = part[by_column.indices[span]] < 0
        items, amounts = by_column.indices[span][free], by_column.data[span][free]
        for positions in _groups_of_equal_amount(amounts):
            chosen, amount = items[positions], amounts[positions[0]]
            mean_size = 1.0 if item_sizes is None else item_sizes[chosen].mean()
            quota = _quotas(demand[column], room, len(chosen), amount, mean_size, rng)
            assigned = _interleaved(quota, rng)
            part[chosen] = assigned
            rows = None if item_sizes is None else item_sizes[chosen]
            room -= np.bincount(assigned, weights=rows, minlength=len(room))
            at, lengths = _stored_entries(counts.indptr, chosen)
            touched = counts.indices[at]
            np.subtract.at(active, touched, 1)
            np.subtract.at(demand, (touched, np.repeat(assigned, lengths)), counts.data[at])
        active[active <= 0] = none_left
    return part


def _groups_of_equal_amount(amounts: np.ndarray) -> list[np.ndarray]:
    """Positions of equal amounts, the largest amounts first."""
    if amounts[0] == amounts[-1] and (amounts == amounts[0]).all():
        return [np.arange(len(amounts))]
    order = np.argsort(-amounts, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(amounts[order])) + 1)


def _quotas(
    demand: np.ndarray,
    room: np.ndarray,
    n_items: int,
    amount: float,
    item_size: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Number of the items that each part receives.

    Assigning each item to the part with the largest remaining demand takes the `n_items` largest
    values of ``demand_j - amount * t`` for t = 0, 1, ...; of equal demands the part with most room
    comes first.
    """
    n_parts = len(demand)
    places = np.maximum(np.ceil(room / item_size - 1e-9), 0).astype(np.int64)
    if places.sum() < n_items:  # with groups only: some part has to become too large
        places = places + n_items
    # Taking the largest values lowers the demands to a level that is not below this one, unless
    # parts become full; then a lower level is tried.
    has_room = places > 0
    level = (demand[has_room].sum() - amount * n_items) / has_room.sum() - amount
    step = amount
    while True:
        length = np.ceil((demand - level) / amount).clip(0, np.minimum(places, n_items))
        if length.sum() >= n_items:
            break
        level, step = level - step, 2 * step
    length = length.astype(np.int64)
    part = np.repeat(np.arange(n_parts), length)
    turn = np.arange(len(part)) - np.repeat(np.cumsum(length) - length, length)
    remaining_demand = np.round(demand[part] - amount * turn, 9)
    remaining_room = room[part] - item_size * turn
    order = np.lexsort([rng.random(n_parts)[part], -remaining_room, -remaining_demand])
    return np.bincount(part[order[:n_items]], minlength=n_parts)


def _interleaved(quota: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sequence in which each part occurs as often as its quota, evenly interleaved."""
    part = np.repeat(np.arange(len(quota)), quota)
    turn = np.arange(len(part)) - np.repeat(np.cumsum(quota) - quota, quota)
    position = (turn + rng.random(len(quota))[part]) / quota[part]
    return part[np.argsort(position, kind="stable")]


def _stored_entries(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the stored entries of these rows, and the number of entries per row."""
    start = indptr[rows]
    lengths = indptr[rows + 1] - start
    offset = np.repeat(start - (np.cumsum(lengths) - lengths), lengths)
    return offset + np.arange(len(offset)), lengths


def _fill_empty_parts(part: np.ndarray, n_parts: int, item_sizes: np.ndarray) -> None:
    """Move to each empty part the smallest item of the part with most items."""
    n_items = np.bincount(part, minlength=n_parts)
    for empty in np.flatnonzero(n_items == 0):
        largest = int(n_items.argmax())
        members = np.flatnonzero(part == largest)
        part[members[item_sizes[members].argmin()]] = empty
        n_items[largest] -= 1
        n_items[empty] += 1


class _Improver:
    """Reduces the sum of squared deviations from the demands by swaps and moves of items."""

    def __init__(
        self,
        counts: sp.csr_array,
        part: np.ndarray,
        share: np.ndarray,
        rng: np.random.Generator,
        *,
        items_are_rows: bool,
    ) -> None:
        self.counts = counts
        self.by_column = counts.tocsc()
        self.part = part
        self.items_are_rows = items_are_rows
        self.rng = rng
        members = sp.csr_array(
            (np.ones(len(part)), (part, np.arange(len(part)))), shape=(len(share), len(part))
        )
        part_counts = (members @ counts).toarray()
        self.deviation = part_counts - share[:, None] * part_counts.sum(axis=0)
        squares = counts.copy()
        squares.data **= 2
        self.norm = np.asarray(squares.sum(axis=1)).ravel()

    def swap_items(self) -> None:
        """Swap items of unbalanced columns, the worst column first."""
        spread = np.ptp(self.deviation, axis=0)
        stuck = np.zeros(len(spread), dtype=bool)
        # A column that no swap improves is skipped until a swap changes its deviations. The limit
        # only matters where balance is impossible.
        for _ in range(MAX_SEARCHES):
            column = int(np.where(stuck, -1.0, spread).argmax())
            if stuck[column] or spread[column] <= 1 + 1e-9:
                return
            stuck[column] = True
            for high, low in self._unbalanced_pairs(column):
                changed = self._swap_between(column, high, low)
                if len(changed):
                    stuck[changed] = False
                    spread[changed] = np.ptp(self.deviation[:, changed], axis=0)
                    break

    def _unbalanced_pairs(self, column: int) -> list[tuple[int, int]]:
        """Pairs of parts with too much and too little of a column, the most unequal first."""
        deviation = self.deviation[:, column]
        lowest = np.argsort(deviation, kind="stable")
        ends = ((-1, 0), (-1, 1), (-2, 0), (-1, 2), (-3, 0))
        pairs = [(int(lowest[high]), int(lowest[low])) for high, low in ends[: len(lowest) - 1]]
        return [(high, low) for high, low in pairs if deviation[high] - deviation[low] > 1 + 1e-9]

    def _swap_between(self, column: int, high: int, low: int) -> np.ndarray:
        """Swap items of two parts while it helps; return the columns whose deviations changed.

        Swapping items i and h changes half the sum of squares by |c_i - c_h|^2 + (c_i - c_h) g,
        where g is the difference of the deviations of the two parts.
        """
        span = slice(self.by_column.indptr[column], self.by_column.indptr[column + 1])
        holders = self.by_column.indices[span]
        slope = self.deviation[low] - self.deviation[high]
        givers, giver_cost = self._candidates(holders[self.part[holders] == high], slope)
        takers, taker_cost = self._candidates(np.flatnonzero(self.part == low), -slope)
        if len(givers) == 0 or len(takers) == 0:
            return givers[:0]
        columns, giving, taking, common = self._as_dense(givers, takers)
        changed = np.zeros(len(columns), dtype=bool)
        while self.deviation[high, column] - self.deviation[low, column] > 1 + 1e-9:
            change = giver_cost[:, None] + taker_cost - 2 * common
            i, h = divmod(int(change.argmin()), len(takers))
            if not change[i, h] < -1e-9:
                break
            step = giving[i] - taking[h]
            moved = np.flatnonzero(step)
            step = step[moved]
            self.deviation[high, columns[moved]] -= step
            self.deviation[low, columns[moved]] += step
            self.part[givers[i]], self.part[takers[h]] = low, high
            changed[moved] = True
            # The swap changes g by 2 (c_i - c_h); neither item is swapped again.
            giver_cost += 2 * (giving[:, moved] @ step)
            taker_cost -= 2 * (taking[:, moved] @ step)
            giver_cost[i] = taker_cost[h] = np.inf
        return columns[changed]

    def _candidates(self, items: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The items of a sample that cost least to move, and their costs |c|^2 + c slope."""
        if len(items) == 0:
            return items, np.empty(0)
        # Of groups the whole sample is taken: those that cost least are small and change little.
        n_sampled = N_POOL if self.items_are_rows else N_CANDIDATES
        step = -(-len(items) // n_sampled)
        items = items[self.rng.integers(step) :: step]  # items are ordered by their labels
        at, lengths = _stored_entries(self.counts.indptr, items)
        terms = self.counts.data[at] * slope[self.counts.indices[at]]
        # Every item has an entry, so no segment is empty.
        cost = self.norm[items] + np.add.reduceat(terms, np.cumsum(lengths) - lengths)
        if len(items) > N_CANDIDATES:
            best = np.argpartition(cost, N_CANDIDATES)[:N_CANDIDATES]
            items, cost = items[best], cost[best]
        return items, cost

    def _as_dense(
        self, givers: np.ndarray, takers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The columns of these items, their counts in them, and all products c_i c_h."""
        at, lengths = _stored_entries(self.counts.indptr, np.concatenate([givers, takers]))
        columns, position = np.unique(self.counts.indices[at], return_inverse=True)
        dense = np.zeros((len(lengths), len(columns)))
        dense[np.repeat(np.arange(len(lengths)), lengths), position] = self.counts.data[at]
        giving, taking = dense[: len(givers)], dense[len(givers) :]
        # Computed from the stored entries: threads of BLAS cost more than so small a product.
        start = np.cumsum(lengths) - lengths
        first = start[len(givers)]
        terms = giving[:, position[first:]] * self.counts.data[at][first:]
        common = np.add.reduceat(terms, start[len(givers) :] - first, axis=1)
        return columns, giving, taking, common

    def move_items(self) -> None:
        """Move single items to another part while it helps; the sizes of the parts change."""
        n_parts = len(self.deviation)
        n_members = np.bincount(self.part, minlength=n_parts)
        all_items = np.arange(len(self.part))
        for _ in range(len(self.part)):
            pull = self.counts @ self.deviation.T
            change = self.norm[:, None] + pull - pull[all_items, self.part][:, None]
            change[all_items, self.part] = 0
            change[n_members[self.part] == 1] = 0  # would leave a part empty
            item, target = np.unravel_index(change.argmin(), change.shape)
            if change[item, target] >= -1e-9:
                return
            n_members[self.part[item]] -= 1
            n_members[target] += 1
            self._relocate(int(item), int(target))

    def _relocate(self, item: int, target: int) -> None:
        span = slice(self.counts.indptr[item], self.counts.indptr[item + 1])
        columns, amounts = self.counts.indices[span], self.counts.data[span]
        self.deviation[self.part[item], columns] -= amounts
        self.deviation[target, columns] += amounts
        self.part[item] = target
