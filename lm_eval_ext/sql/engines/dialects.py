"""What callers need to know of an engine without loading its driver."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lm_eval_ext.errors import require_extra
from lm_eval_ext.sql.engines.base import Engine
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import EngineName


@dataclass(frozen=True)
class Dialect:
    """An engine, as callers know it.

    Attributes:
        name: As signatures have it.
        title: As prompts and messages have it.
        version: A query that returns the engine's version.
        where: Of the :class:`~.base.Engine`: module and class.
        driver: The module of its driver, where that is not Python's own.
        extra: The optional dependency of this project that installs the driver.
    """

    name: EngineName
    title: str
    version: str
    where: tuple[str, str]
    driver: str | None = None
    extra: str = ""

    def engine(self, limits: Limits) -> Engine:
        """Loads the driver; for worker processes."""
        module, name = self.where
        found: Engine = getattr(importlib.import_module(module), name)(limits)
        return found

    def require(self) -> None:
        """Raises OptionError if the driver is not installed."""
        if self.driver:
            require_extra(self.extra, self.title, self.driver)


_HERE = "lm_eval_ext.sql.engines"

DIALECTS: Mapping[EngineName, Dialect] = MappingProxyType(
    {
        one.name: one
        for one in (
            Dialect(
                "sqlite", "SQLite", "SELECT sqlite_version()",
                (f"{_HERE}.sqlite", "SQLiteEngine"),
            ),
            Dialect(
                "duckdb", "DuckDB", "SELECT ltrim(version(), 'v')",
                (f"{_HERE}.duckdb", "DuckDBEngine"), "duckdb", "duckdb",
            ),
            Dialect(
                "postgresql", "PostgreSQL",
                "SELECT split_part(current_setting('server_version'), ' ', 1)",
                (f"{_HERE}.postgresql", "PostgreSQLEngine"), "psycopg", "postgres",
            ),
        )
    }
)  # fmt: skip
"""All engines by name."""
