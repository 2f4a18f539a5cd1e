"""The long table: a row for each thing that was scored of a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, str | float | None]
"""Facets and values of one thing that was scored."""

Scored = tuple[str, str, Sequence[str], Sequence[Row]]
"""A document: its name in the table, its id, its clusters, the coarsest first, and its rows."""


def frame(documents: Iterable[Scored]) -> "DataFrame":
    """Makes the table.

    Columns are ``document``, ``id``, ``cluster`` and ``cluster_1``, ... (finer ones), then those
    of the rows: numbers and truth values as floats, all else as objects.
    """
    import pandas as pd

    made = [
        {
            "document": name,
            "id": id_,
            **{f"cluster_{n}" if n else "cluster": one for n, one in enumerate(levels)},
            **row,
        }
        for name, id_, levels, rows in documents
        for row in rows
    ]
    if not made:
        names = "document id cluster filter prompt target doc_hash"
        return pd.DataFrame(columns=names.split())
    table = pd.DataFrame(made, dtype=object)
    kinds = bool, int, float, type(None)
    numbers = [name for name in table if table[name].map(type).isin(kinds).all()]
    return table.astype(dict.fromkeys(numbers, float))
