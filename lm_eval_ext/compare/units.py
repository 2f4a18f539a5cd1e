"""What a benchmark's documents are clustered by, and what makes two documents a pair.

The card of a benchmark declares the unit of its standard errors in words; here is where a
logged document says which unit it belongs to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lm_eval_ext.cards import card_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.samples import Sample


@dataclass(frozen=True)
class Unit:
    """A unit that documents are clustered by.

    Attributes:
        column: Of the logged documents.
        any_case: Whether the same name in other letters is the same unit (SQLite's databases).
        documents_within: Whether the documents of a single unit are draws of their own. Then a
            metric about one unit has errors, as in the benchmark's own standard errors.
    """

    column: str
    any_case: bool = False
    documents_within: bool = False


UNITS: Mapping[str, Unit] = MappingProxyType(
    {
        "item": Unit("item"),
        "database": Unit("db_id", any_case=True),
        "generalization type": Unit("type", documents_within=True),
        "concept": Unit("concept", documents_within=True),
        "dish": Unit("answer"),
    }
)
"""By the unit's name in the cards."""

DOCUMENT = "document"
"""The unit of a task that is not ours: each document by itself."""

SAME_ITEM: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"lieder": ("item", "family"), "cogs": ("id",), "magnifico": ("id",), "diner": ("id",)}
)
"""By benchmark: the columns that say, across its tasks, that two documents ask about the same."""


def clusters_of(task: str, samples: Sequence[Sample]) -> tuple[str, list[str]]:
    """What the documents are clustered by, and the cluster of each.

    Raises:
        DataError: If a logged document does not have the column.
    """
    documents = [f"{digest} {place}" for digest, place in (sample.key for sample in samples)]
    card = card_of(task)
    if card is None:
        return DOCUMENT, documents
    unit = UNITS[card.cluster]
    for sample in samples:
        if unit.column not in sample.doc:
            raise DataError(
                f"{task}: a logged document has no {unit.column!r}, which tells its "
                f"{card.cluster}; were the samples made by another version of the task?"
            )
    found = [str(sample.doc[unit.column]) for sample in samples]
    if unit.any_case:
        found = [name.casefold() for name in found]
    if unit.documents_within and len(set(found)) == 1:
        return DOCUMENT, documents
    return card.cluster, found


def same_item(task: str, doc: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What a document is about, whichever task of its benchmark asks; None if nobody knows."""
    card = card_of(task)
    columns = SAME_ITEM.get(card.name) if card else None
    if columns is None or not all(column in doc for column in columns):
        return None
    return tuple(str(doc[column]) for column in columns)
