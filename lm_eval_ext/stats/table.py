"""The long table: a row for each thing that was scored of a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, str | float | None]
"""Facets and values of one thing that was scored."""

DocumentRows = tuple[str, str, Sequence[str], Sequence[Row]]
"""A document's name in the table, its id, its clusters, the coarsest first, and its rows."""


_COLUMNS_WITHOUT_ROWS = ["document", "id", "cluster", "filter", "prompt", "target", "doc_hash"]
"""The columns of a table without rows."""

_NUMBER_TYPES = (bool, int, float, type(None))


def frame(documents: Iterable[DocumentRows]) -> "DataFrame":
    """Return the table.

    Columns are ``document``, ``id``, ``cluster`` and ``cluster_1``, ... (finer ones), then those
    of the rows: numbers and truth values as floats, all else as objects.
    """
    import pandas as pd

    records: list[dict[str, object]] = []
    for name, id_, clusters, rows in documents:
        columns: dict[str, object] = {"document": name, "id": id_}
        for level, cluster in enumerate(clusters):
            columns[f"cluster_{level}" if level else "cluster"] = cluster
        records += [{**columns, **row} for row in rows]
    if not records:
        return pd.DataFrame(columns=_COLUMNS_WITHOUT_ROWS)
    table = pd.DataFrame(records, dtype=object)
    numeric = [name for name in table if table[name].map(type).isin(_NUMBER_TYPES).all()]
    return table.astype(dict.fromkeys(numeric, float))
