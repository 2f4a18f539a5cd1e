"""The long table: a row for each thing that was scored of a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

Scored = tuple[str, str, Sequence[str], Sequence[Mapping[str, Any]]]
"""A document: its name in the table, its id, its clusters, the coarsest first, and its rows."""


def frame(documents: Iterable[Scored]) -> "DataFrame":
    """Makes the table.

    Columns are ``document``, ``id``, ``cluster`` and ``cluster_1``, ... (finer ones), then those
    of the rows.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {}
    count = 0
    for name, id_, clusters, rows in documents:
        levels = {
            f"cluster_{level}" if level else "cluster": one for level, one in enumerate(clusters)
        }
        for row in rows:
            for key, value in {"document": name, "id": id_, **levels, **row}.items():
                column = columns.setdefault(key, [])
                column.extend([None] * (count - len(column)))
                column.append(value)
            count += 1
    for column in columns.values():
        column.extend([None] * (count - len(column)))
    if not columns:
        columns = {"document": [], "id": [], "cluster": []}
    return pd.DataFrame({key: _typed(values) for key, values in columns.items()})


def _typed(values: list[Any]) -> Any:
    """Numbers (and truth values) as floats, all else as objects."""
    import pandas as pd

    numbers = all(one is None or isinstance(one, (bool, int, float)) for one in values)
    return pd.Series(values, dtype="float64" if numbers else "object")
