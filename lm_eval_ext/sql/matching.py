"""Equality of values and rows with tolerance for floats, and pairing the rows of two results.

Equality with tolerance is not transitive, so neither sorting nor rounding can decide whether two
results are the same multiset of rows: that needs a matching. Rows are first split into cells whose
numbers are near each other, in n log n time. Within most cells every row equals every partner, or
only one column varies, and then the matching is trivial.

Worker processes import this module: standard library only.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lm_eval_ext.sql.values import Row, Value

RELATIVE, ABSOLUTE, ZERO = 1e-9, 1e-12, 5e-14
"""Tolerances for two numbers of which at least one is a float. Adding 100,000 floats in another
order changes a sum by about 1e-11, relative to the sum or, near zero, to its terms: so the absolute
one holds where one of the two is as good as zero. Rounding that a query asks for (``round(x, 6)``)
still counts as a difference."""


def close(value: Value, partner: Value) -> bool:
    """Return whether two values are equal, with tolerance if one of them is a float.

    Integers equal floats of the same value; decimals are equal by all their digits. A text never
    equals a number or a blob; NULL equals NULL.
    """
    if type(value) is float or type(partner) is float:
        if isinstance(value, (int, float)) and isinstance(partner, (int, float)):
            near_zero = ABSOLUTE if min(abs(value), abs(partner)) < ZERO else 0.0
            return math.isclose(value, partner, rel_tol=RELATIVE, abs_tol=near_zero)
        return False
    return type(value) is type(partner) and value == partner


def close_rows(row: Row, partner: Row) -> bool:
    """Return whether two rows are equal value by value, in the order of the columns."""
    return len(row) == len(partner) and all(map(close, row, partner))


def can_pair_all(rows: Sequence[Row], partners: Sequence[Row]) -> bool:
    """Return whether each row can be paired with another partner that equals it.

    With as many rows as partners, this is equality of multisets. Rows that are exactly equal are
    paired first, the rest by a maximum matching.
    """
    if len(rows) > len(partners):
        return False
    if rows == partners:
        return True
    row_counts, partner_counts = Counter(rows), Counter(partners)
    unequal_rows = row_counts - partner_counts
    if not unequal_rows:
        return True
    unequal_partners = partner_counts - row_counts
    return all(cell.can_pair_all() for cell in _cells(unequal_rows, unequal_partners))


def unpaired(
    rows: Sequence[Row], partners: Sequence[Row], *, tolerant: bool = True
) -> tuple[list[Row], list[Row]]:
    """Return the rows without a partner, and the partners without a row.

    Both lists are empty if and only if the rows can be paired with the partners. Otherwise, where
    floats are near each other without being equal, they may be longer than a best pairing leaves.

    Args:
        rows: Rows.
        partners: Other rows.
        tolerant: Whether floats may differ by rounding.
    """
    row_counts, partner_counts = Counter(rows), Counter(partners)
    unequal_rows = row_counts - partner_counts
    unequal_partners = partner_counts - row_counts
    if not tolerant:
        return list(unequal_rows.elements()), list(unequal_partners.elements())
    rows_left: list[Row] = []
    partners_left: list[Row] = []
    for cell in _cells(unequal_rows, unequal_partners):
        cell_rows, cell_partners = cell.unpaired()
        rows_left.extend(cell_rows)
        partners_left.extend(cell_partners)
    return rows_left, partners_left


CellKey = tuple[object, ...]
"""What all rows of a cell share: at each position the cluster of a number, or any other value."""


def _cells(rows: "Counter[Row]", partners: "Counter[Row]") -> Iterator["_Cell"]:
    """Yield the cells of rows and partners; a row equals no partner of another cell."""
    partners_by_skeleton = _by_skeleton(partners)
    rows_by_skeleton = _by_skeleton(rows)
    for skeleton in rows_by_skeleton | partners_by_skeleton:
        skeleton_rows = rows_by_skeleton.get(skeleton, [])
        skeleton_partners = partners_by_skeleton.get(skeleton, [])
        if not skeleton_rows or not skeleton_partners:
            yield _Cell(skeleton_rows, skeleton_partners, ())
            continue
        columns = tuple(
            column for column, value in enumerate(skeleton_rows[0]) if _is_number(value)
        )
        yield from _split_by_clusters(skeleton_rows, skeleton_partners, columns)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float))


_NUMBER = object()
"""Stands for any number in a skeleton."""


def _by_skeleton(rows: "Counter[Row]") -> dict[CellKey, list[Row]]:
    """Group rows by what must be exactly equal: the positions of numbers, and all other values."""
    groups: dict[CellKey, list[Row]] = defaultdict(list)
    for row in rows.elements():
        skeleton = tuple(_NUMBER if _is_number(value) else value for value in row)
        groups[skeleton].append(row)
    return groups


def _split_by_clusters(
    rows: list[Row], partners: list[Row], columns: tuple[int, ...]
) -> Iterator["_Cell"]:
    """Split rows of one skeleton where the numbers of a column are apart."""
    clusters = [_clusters(column, rows, partners) for column in columns]

    def cell_key(row: Row) -> CellKey:
        return tuple(
            column_clusters[row[column]]
            for column, column_clusters in zip(columns, clusters, strict=True)
        )

    cell_rows: dict[CellKey, list[Row]] = defaultdict(list)
    cell_partners: dict[CellKey, list[Row]] = defaultdict(list)
    for row in rows:
        cell_rows[cell_key(row)].append(row)
    for partner in partners:
        cell_partners[cell_key(partner)].append(partner)
    for key in cell_rows | cell_partners:
        yield _Cell(cell_rows.get(key, []), cell_partners.get(key, []), columns)


def _clusters(column: int, rows: list[Row], partners: list[Row]) -> dict[Value, int]:
    """Return the cluster of each number of a column; numbers of two clusters are never close."""
    values = [row[column] for row in rows]
    values.extend(partner[column] for partner in partners)
    has_floats = any(type(value) is float for value in values)
    clusters: dict[Value, int] = {}
    cluster = 0
    previous: float | None = None
    for value in sorted(set(values), key=_as_float):
        number = _as_float(value)
        # Integers and decimals are equal only to themselves.
        if previous is not None and not (has_floats and _within_reach(previous, number)):
            cluster += 1
        clusters[value] = cluster
        previous = number
    return clusters


def _within_reach(low: float, high: float) -> bool:
    """Return whether two numbers may be close; wider than :func:`close`."""
    if low == high:
        return True
    if math.isinf(low) or math.isinf(high):
        return False
    return high - low <= _reach(max(abs(low), abs(high)))


def _reach(size: float) -> float:
    """Return a distance beyond which no number is close to one of this size."""
    return 2 * max(size * RELATIVE, ABSOLUTE)


def _as_float(value: Value) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


@dataclass(frozen=True)
class _Cell:
    """Rows and partners that agree in everything but numbers that are near each other.

    Attributes:
        rows: The rows.
        partners: The partners.
        columns: The positions of numbers.
    """

    rows: list[Row]
    partners: list[Row]
    columns: tuple[int, ...]

    def can_pair_all(self) -> bool:
        """Return whether a matching of close rows covers all rows."""
        if not self.rows:
            return True
        # Rows without numbers can only be equal exactly, and such rows were paired before.
        if not self.columns or len(self.rows) > len(self.partners):
            return False
        varying = self._varying()
        if not varying:
            return True
        if len(varying) == 1 and self._is_ordered(varying[0]):
            rows_left, _ = self._pair_sorted(varying)
            return not rows_left
        if len(self.rows) == len(self.partners) and self._sorted_pairs_are_close(varying):
            return True
        return _matching_covers(self.rows, self._edges(varying))

    def unpaired(self) -> tuple[list[Row], list[Row]]:
        """Return the rows without a partner, and the partners without a row."""
        if not self.rows or not self.partners or not self.columns:
            return self.rows, self.partners
        varying = self._varying()
        if not varying:
            paired = min(len(self.rows), len(self.partners))
            return self.rows[paired:], self.partners[paired:]
        if len(self.rows) == len(self.partners) and self.can_pair_all():
            return [], []
        return self._pair_sorted(varying)

    def _varying(self) -> list[int]:
        """Return the columns in which not every row is close to every partner."""
        return [column for column in self.columns if not self._is_uniform(column)]

    def _is_uniform(self, column: int) -> bool:
        """Return whether all values of a column are close to each other."""
        values = self._values(column)
        # Integers and decimals are equal only to themselves.
        exact_values = {(type(value), value) for value in values if type(value) is not float}
        if len(exact_values) > 1:
            return False
        numbers = [_as_float(value) for value in values]
        low, high = min(numbers), max(numbers)
        if low == high or max(abs(low), abs(high)) < ZERO:
            return True
        # Half of the tolerance, so that no rounding error of this calculation matters.
        same_sign = low > 0 or high < 0
        return same_sign and high - low <= RELATIVE / 2 * min(abs(low), abs(high))

    def _is_ordered(self, column: int) -> bool:
        """Return whether the numbers that are close to one form an interval that moves with it.

        This holds for floats that are not near zero.
        """
        only_floats = any(
            all(type(row[column]) is float for row in rows) for rows in (self.rows, self.partners)
        )
        return only_floats and all(abs(_as_float(value)) >= ZERO for value in self._values(column))

    def _values(self, column: int) -> list[Value]:
        values = [row[column] for row in self.rows]
        values.extend(partner[column] for partner in self.partners)
        return values

    def _sorted(self, rows: Iterable[Row], columns: Sequence[int]) -> list[Row]:
        return sorted(rows, key=lambda row: [_as_float(row[column]) for column in columns])

    def _sorted_pairs_are_close(self, columns: Sequence[int]) -> bool:
        """Return whether the first row is close to the first partner, and so on, when sorted."""
        rows = self._sorted(self.rows, columns)
        partners = self._sorted(self.partners, columns)
        return all(map(close_rows, rows, partners))

    def _pair_sorted(self, columns: Sequence[int]) -> tuple[list[Row], list[Row]]:
        """Pair rows and partners in the order of numbers, and return those left on both sides.

        In one column whose numbers are ordered this is a maximum matching: what is too small for a
        row is too small for all later ones.
        """
        rows = deque(self._sorted(self.rows, columns))
        partners = deque(self._sorted(self.partners, columns))
        rows_left: list[Row] = []
        partners_left: list[Row] = []
        while rows and partners:
            row, partner = rows[0], partners[0]
            if close_rows(row, partner):
                rows.popleft()
                partners.popleft()
                continue
            row_numbers = [_as_float(row[column]) for column in columns]
            partner_numbers = [_as_float(partner[column]) for column in columns]
            if partner_numbers < row_numbers:
                partners_left.append(partners.popleft())
            else:
                rows_left.append(rows.popleft())
        return [*rows_left, *rows], [*partners_left, *partners]

    def _edges(self, varying: Sequence[int]) -> list[list[int]]:
        """Return for each row the numbers of the partners that are close to it."""
        # The column with the most different values leaves the fewest partners to be compared.
        column = max(
            varying,
            key=lambda column: len({_as_float(partner[column]) for partner in self.partners}),
        )
        partners = self._sorted(self.partners, [column])
        numbers = [_as_float(partner[column]) for partner in partners]
        edges: list[list[int]] = []
        for row in self.rows:
            number = _as_float(row[column])
            reach = 0.0
            if math.isfinite(number):
                reach = _reach(abs(number))
            start = bisect_left(numbers, number - reach)
            end = bisect_right(numbers, number + reach)
            near = range(start, end)
            edges.append([index for index in near if close_rows(row, partners[index])])
        return edges


def _matching_covers(rows: Sequence[Row], edges: list[list[int]]) -> bool:
    """Return whether a matching covers all rows (augmenting paths)."""
    row_of_partner: dict[int, int] = {}
    return all(_augment(start, edges, row_of_partner) for start in range(len(rows)))


def _augment(start: int, edges: list[list[int]], row_of_partner: dict[int, int]) -> bool:
    """Give a row a partner, moving earlier pairs if necessary (breadth-first search)."""
    reached_from: dict[int, int] = {}
    partner_of_row: dict[int, int] = {}
    queue = deque([start])
    while queue:
        row = queue.popleft()
        for partner in edges[row]:
            if partner in reached_from:
                continue
            reached_from[partner] = row
            if partner not in row_of_partner:
                _move_along(partner, reached_from, partner_of_row, row_of_partner)
                return True
            taken_by = row_of_partner[partner]
            partner_of_row[taken_by] = partner
            queue.append(taken_by)
    return False


def _move_along(
    free_partner: int,
    reached_from: dict[int, int],
    partner_of_row: dict[int, int],
    row_of_partner: dict[int, int],
) -> None:
    """Give each row on the path to a free partner the next partner of the path."""
    partner: int | None = free_partner
    while partner is not None:
        row = reached_from[partner]
        row_of_partner[partner] = row
        partner = partner_of_row.get(row)
