"""What a simplification is."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.schema import Schema

ORDER = "; in what order rows come without ORDER BY both leave open"
TIES = "; which of tied rows comes first both leave open"


@dataclass(frozen=True)
class Simplification:
    """A named rule that makes a query simpler and leaves its result as it is.

    "As it is" on every database that keeps the schema's keys, and up to the order of rows and
    the choice among ties that the query leaves open itself.

    Attributes:
        name: For tests and documentation.
        reason: Why the result is the same, for a person.
        apply: Changes one SELECT in place, within its tree; says whether it did. It makes the
            query smaller each time, or brings it to one form, so that it comes to an end.
    """

    name: str
    reason: str
    apply: Callable[[exp.Select, Schema], bool]
