"""The comparisons of two public benchmarks, Spider and BIRD, by their own rules.

``spider`` follows the test-suite evaluation of Zhong et al. (2020), taoyds/test-suite-sql-eval, on
one database; ``bird`` follows BIRD's evaluation program (Li et al. 2023). Both compare values as
Python does: an integer equals a float of the same value, and floats must be equal to the last bit.
docs/sql.md ("Semantics") lists what is not copied.

Worker processes import this module: standard library only.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from lm_eval_ext.sql.difference import Difference, columns_differ, name_column_order, row_difference
from lm_eval_ext.sql.permutation import same_rows_in_some_column_order, sorted_values
from lm_eval_ext.sql.values import Row, Rows

_TOKEN = re.compile(
    r"""
      '[^']*' | "[^"]*" | `[^`]*` | \[[^\]]{0,1000}\]
    | --[^\n]* | /\*.*?(?:\*/|\Z)
    | (?P<distinct> \bdistinct\b )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""What may hold the word DISTINCT, and the keyword itself. A quotation mark without a partner
matches nothing."""

_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)

_SPLIT_OPERATORS = {"> =": ">=", "< =": "<=", "! =": "!="}


def join_split_operators(sql: str) -> str:
    """Return a query as the official evaluator runs it with ``--keep_distinct``.

    Operators that a tokenizer has split are joined, and MySQL's ``YEAR(CURDATE())`` is 2020.
    """
    for split, joined in _SPLIT_OPERATORS.items():
        sql = sql.replace(split, joined)
    return _CURRENT_YEAR.sub("2020", sql)


def drop_distinct(sql: str) -> str:
    """Return a query as the official evaluator runs it by default: without any DISTINCT."""

    def without_keyword(match: "re.Match[str]") -> str:
        return "" if match["distinct"] else match.group()

    return _TOKEN.sub(without_keyword, join_split_operators(sql))


def mentions_order_by(gold: str) -> bool:
    """Return whether the order of rows matters: whether the gold says ORDER BY anywhere."""
    return "order by" in gold.lower()


@dataclass(frozen=True)
class SpiderExpected:
    """Spider's rule: the same multiset of rows after some permutation of the columns.

    If the gold says ORDER BY, the rows must come in its order, ties included. Two empty results
    are equal, whatever their columns.

    Attributes:
        result: The gold's result.
        ordered: Whether the order of rows matters.
    """

    result: Rows
    ordered: bool

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        if len(self.result.rows) != len(predicted.rows):
            return False
        if self.result.rows == predicted.rows:
            return True
        if len(self.result.columns) != len(predicted.columns):
            return False
        if self.ordered:
            gold_columns = Counter(zip(*self.result.rows, strict=True))
            return gold_columns == Counter(zip(*predicted.rows, strict=True))
        return same_rows_in_some_column_order(self.result.rows, predicted.rows)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if len(self.result.columns) != len(predicted.columns):
            return columns_differ(self.result, predicted)
        difference = row_difference(
            self.result, predicted, normal=sorted_values, otherwise="pairing"
        )
        if difference.kind != "pairing" or not self.ordered:
            return difference
        # The rows have the same values, so there is at least one on either side.
        if same_rows_in_some_column_order(self.result.rows, predicted.rows):
            return replace(difference, kind="order")
        return difference


@dataclass(frozen=True)
class BirdExpected:
    """BIRD's rule: the same set of rows; neither their order nor their number matters.

    Attributes:
        result: The gold's result.
        rows: Its distinct rows.
    """

    result: Rows
    rows: frozenset[Row]

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        return self.rows == set(predicted.rows)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if len(self.result.columns) != len(predicted.columns):
            return columns_differ(self.result, predicted)
        gold = self.result._replace(rows=list(self.rows))
        distinct = predicted._replace(rows=list(set(predicted.rows)))
        return name_column_order(row_difference(gold, distinct), gold, distinct)
