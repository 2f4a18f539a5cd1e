"""A user's lexicon: what tables and columns whose names say nothing are called in English.

A YAML file::

    tables:
      KND:
        one: customer
        many: customers
        columns:
          GEB: date of birth
          UMS: {name: turnover, role: total}
          X17: ""            # never asked about

Tables and columns that it leaves out keep what their own names say.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.sql.schema import Schema

Role = Literal[
    "key", "name", "first", "last", "amount", "total", "year", "date", "place", "category", "other"
]
"""What a column is to its table. ``total`` is an amount that makes sense when it is summed;
``other`` is never asked about."""


class ColumnEntry(BaseModel):
    """What a column is called, and what it is if its values do not show it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    role: Role | None = None


class TableEntry(BaseModel):
    """What a row of a table is called."""

    model_config = ConfigDict(extra="forbid", strict=True)

    one: str = ""
    many: str = ""
    columns: dict[str, str | ColumnEntry] = Field(default_factory=dict)

    def column(self, name: str) -> ColumnEntry | None:
        """The entry of a column; None if there is none."""
        found = {key.casefold(): entry for key, entry in self.columns.items()}.get(name.casefold())
        return ColumnEntry(name=found) if isinstance(found, str) else found


class Lexicon(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tables: dict[str, TableEntry] = Field(default_factory=dict)

    def table(self, name: str) -> TableEntry:
        """The entry of a table, empty if there is none."""
        found: Mapping[str, TableEntry] = {key.casefold(): e for key, e in self.tables.items()}
        return found.get(name.casefold(), TableEntry())


def read(path: Path | None, schema: Schema) -> Lexicon:
    """Reads a lexicon; None gives an empty one.

    Raises:
        OptionError: There is no such file.
        DataError: It is no lexicon, or names a table or column that the database lacks.
    """
    if path is None:
        return Lexicon()
    try:
        found = Lexicon.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except FileNotFoundError:
        raise OptionError(f"--lexicon {path}: there is no such file") from None
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    for name, table in found.tables.items():
        if name not in schema:
            raise DataError(f"{path}: the database has no table {name!r}")
        for column in table.columns:
            if schema[name].column(column) is None:
                raise DataError(f"{path}: the table {name!r} has no column {column!r}")
    return found
