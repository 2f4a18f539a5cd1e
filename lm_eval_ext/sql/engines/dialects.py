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
        name: The engine in signatures.
        title: The engine in prompts and messages.
        version_query: A query that returns the engine's version.
        module: The module of its :class:`~.base.Engine`.
        class_name: The name of that class.
        driver: The module of its driver, unless that is Python's own.
        extra: The optional dependency of this project that installs the driver.
    """

    name: EngineName
    title: str
    version_query: str
    module: str
    class_name: str
    driver: str | None = None
    extra: str = ""

    def engine(self, limits: Limits) -> Engine:
        """Load the driver and return an engine; worker processes call this."""
        engine_class: type[Engine] = getattr(importlib.import_module(self.module), self.class_name)
        return engine_class(limits)

    def require(self) -> None:
        """Raise OptionError if the driver is not installed."""
        if self.driver:
            require_extra(self.extra, self.title, self.driver)


_SQLITE = Dialect(
    name="sqlite",
    title="SQLite",
    version_query="SELECT sqlite_version()",
    module="lm_eval_ext.sql.engines.sqlite",
    class_name="SQLiteEngine",
)

_DUCKDB = Dialect(
    name="duckdb",
    title="DuckDB",
    version_query="SELECT ltrim(version(), 'v')",
    module="lm_eval_ext.sql.engines.duckdb",
    class_name="DuckDBEngine",
    driver="duckdb",
    extra="duckdb",
)

_POSTGRESQL = Dialect(
    name="postgresql",
    title="PostgreSQL",
    version_query="SELECT split_part(current_setting('server_version'), ' ', 1)",
    module="lm_eval_ext.sql.engines.postgresql",
    class_name="PostgreSQLEngine",
    driver="psycopg",
    extra="postgres",
)

DIALECTS: Mapping[EngineName, Dialect] = MappingProxyType(
    {dialect.name: dialect for dialect in (_SQLITE, _DUCKDB, _POSTGRESQL)}
)
"""All engines by name."""
