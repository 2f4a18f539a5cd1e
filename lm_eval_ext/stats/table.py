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
    columns = {}
    for name in dict.fromkeys(name for row in made for name in row):
        values = [row.get(name) for row in made]
        kinds = {*map(type, values)}
        numbers = all(issubclass(one, (int, float, type(None))) for one in kinds)
        columns[name] = pd.Series(values, dtype="float64" if numbers else object)
    return pd.DataFrame(columns)
