"""DuckDB with a memory limit, a progress bar and interruption by Ctrl-C."""

import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.text import one_line

MEMORY_GIB = 4.0
"""Memory that DuckDB uses before it spills to disk; Python needs about half a GiB more."""

POLL_SECONDS = 0.1


class Engine:
    """An in-memory database that spills into a folder."""

    def __init__(self, spill: Path, *, memory_gib: float = MEMORY_GIB) -> None:
        """Opens the database; the folder ``spill`` is created when it is needed."""
        import duckdb

        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{memory_gib}GiB",
                "temp_directory": str(spill),
                # All extensions that are used come with the package; none is downloaded.
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                # Keeping this order would cost memory; queries that need an order state it.
                "preserve_insertion_order": "false",
            }
        )

        # DuckDB measures progress, but the bar is ours.
        for setting in ("enable_progress_bar = true", "enable_progress_bar_print = false"):
            self._connection.execute(f"SET {setting}")

    def close(self) -> None:
        """Closes the database, and stops a statement that Ctrl-C may have left running."""
        import duckdb

        while True:
            try:
                self._connection.close()
                break
            except duckdb.ResourceInUseException:
                self._connection.interrupt()
                time.sleep(POLL_SECONDS)

    def run(self, sql: str, parameters: Sequence[Any] = (), *, title: str | None = None) -> Any:
        """Runs a statement, with a progress bar if it has a title and stderr is a terminal.

        Ctrl-C stops the statement and raises KeyboardInterrupt.

        Returns:
            The cursor.

        Raises:
            OptionError: Memory and disk space are insufficient.
            duckdb.Error: Any other error of the database.
        """
        import duckdb
        from tqdm import tqdm

        failure: list[BaseException] = []
        # Not Thread.join: after Ctrl-C, Python 3.11's treats a running thread as finished.
        done = threading.Event()

        def work() -> None:
            try:
                self._connection.execute(sql, list(parameters))
            except BaseException as error:  # noqa: BLE001 - raised again below
                failure.append(error)
            finally:
                done.set()

        with tqdm(
            total=100, desc=title, unit="%", bar_format="{l_bar}{bar}| {elapsed}<{remaining}",
            disable=True if title is None else None,
        ) as bar:  # fmt: skip
            threading.Thread(target=work, daemon=True).start()
            try:
                while not done.wait(POLL_SECONDS):
                    bar.update(max(0.0, self._connection.query_progress()) - bar.n)
            except BaseException:
                # Repeated because the statement may not have begun at the first call.
                self._connection.interrupt()
                while not done.wait(POLL_SECONDS):
                    self._connection.interrupt()
                raise
        if failure:
            error = failure[0]
            if isinstance(error, duckdb.OutOfMemoryException):
                raise OptionError(
                    f"the database stopped: {first_line(error)}. Give it more memory (--memory) "
                    "or more room on disk."
                ) from error
            raise error
        return self._connection

    def table(self, name: str, column: str, values: Sequence[str]) -> None:
        """Makes a table with one column of texts."""
        import json

        self.run(
            f"CREATE OR REPLACE TABLE {name} AS "
            f"SELECT unnest(from_json(?::JSON, '[\"VARCHAR\"]')) AS {column}",
            [json.dumps(list(values), ensure_ascii=False)],
        )


def first_line(error: BaseException) -> str:
    """The first line of DuckDB's message; the rest is advice about its own options."""
    return one_line(str(error).strip().split("\n", 1)[0], limit=300)


def only(path: Path) -> str:
    """A path as an SQL literal that matches only itself where DuckDB accepts patterns."""
    return literal(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def table_of(path: Path) -> str:
    """A Parquet file as a table, without columns from folder names such as ``name=x``."""
    return f"read_parquet({only(path)}, hive_partitioning = false)"


def literal(value: str | Path) -> str:
    """A text as an SQL literal, for places that accept no parameter."""
    if "\0" in str(value):
        raise DataError(f"{str(value)!r} contains a NUL character; use another name")
    return "'" + str(value).replace("'", "''") + "'"
