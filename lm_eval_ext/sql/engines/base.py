"""The interface of all engines, and what they share: budgets, values and the alarm.

Worker processes import this module: standard library only.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar

from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import SHOWN, Failure, Row, Rows, Value
from lm_eval_ext.text import one_line

CELLS_VERSION = 1
"""Rises whenever a value of DuckDB or PostgreSQL would be compared as another; in signatures."""


_MOST_BITS = 128


class TooLargeError(Exception):
    """The query or its result is over a limit."""


class UnavailableError(Exception):
    """The database cannot be used at all, whatever the query; the message says what to do."""


class Engine(ABC):
    """Runs queries in a worker process; no query can raise, change data or exceed its limits.

    A subclass runs one statement (:meth:`_run`) and reads its driver's exceptions
    (:meth:`_failure`).

    Attributes:
        errors: The exceptions of the driver.
    """

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._bytes_left = 0

    def run(self, address: str, sql: str) -> Rows | Failure:
        """Runs exactly one statement, as it is written; it must have a result, if an empty one."""
        self._bytes_left = self.limits.max_result_bytes
        try:
            size = len(sql.encode("utf-8"))  # raises for lone surrogates
            if size > self.limits.max_sql_bytes:
                raise TooLargeError(f"the query's text is over {self.limits.max_sql_bytes:,} bytes")
            if "\0" in sql:  # drivers would cut the text there
                raise ValueError("the query contains a null character")
            return self._run(address, sql)
        except MemoryError:
            self.close()  # frees the page caches
            return Failure("too_large", "out of memory")
        except UnavailableError as error:
            return Failure("unavailable", one_line(str(error)))
        except TooLargeError as error:
            return Failure("too_large", one_line(str(error), limit=SHOWN))
        except self.errors as error:
            return self._failure(error)
        except (ValueError, OverflowError, RecursionError) as error:
            return Failure("error", one_line(str(error), limit=SHOWN))

    @abstractmethod
    def close(self) -> None:
        """Closes all connections; later queries open new ones."""

    @abstractmethod
    def _run(self, address: str, sql: str) -> Rows: ...

    @abstractmethod
    def _failure(self, error: Exception) -> Failure: ...

    def _late(self) -> Failure:
        return Failure("timeout", f"stopped after {self.limits.timeout_s:g} s")

    def _collect(self, rows: list[Row], more: Iterable[Row]) -> None:
        """Adds rows one by one, so that none is read after a limit is passed."""
        for row in more:
            rows.append(row)
            if len(rows) > self.limits.max_rows:
                raise TooLargeError(f"the result has over {self.limits.max_rows:,} rows")

    def _check_columns(self, columns: int) -> None:
        if columns > self.limits.max_columns:
            raise TooLargeError(f"the result has over {self.limits.max_columns:,} columns")

    def _spend(self, size: int) -> None:
        if size > self.limits.max_value_bytes:
            raise TooLargeError(f"a value has over {self.limits.max_value_bytes:,} bytes")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise TooLargeError(f"the result has over {self.limits.max_result_bytes:,} bytes")


class Alarm:
    """Calls ``ring`` from a thread of its own when time is up, until the block ends.

    Args:
        seconds: Of the clock.
        clock: Returns seconds; of processor time or of real time.
        ring: Called every :attr:`AGAIN_S` seconds, with how often it was called before.
    """

    AGAIN_S: ClassVar = 0.25

    def __init__(
        self, seconds: float, clock: Callable[[], float], ring: Callable[[int], None]
    ) -> None:
        self._until, self._clock, self._ring = clock() + seconds, clock, ring
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.rang = False

    def __enter__(self) -> "Alarm":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while (left := self._until - self._clock()) > 0:
            if self._over.wait(max(left, 0.01)):
                return
        times = 0
        while not self._over.is_set():
            self.rang = True
            self._ring(times)
            times += 1
            self._over.wait(self.AGAIN_S)


def whole(value: int) -> Value:
    """An integer as it is compared: beyond 128 bits, where no float may follow, its text."""
    return value if value.bit_length() <= _MOST_BITS else str(value)


def number(value: float) -> Value:
    """A float as it is compared: NaN is the text "NaN", which equals itself as in both engines."""
    return "NaN" if math.isnan(value) else value


def moment(text: str) -> str:
    """A timestamp in ISO form as it is compared.

    Without trailing zeros of the fraction, and at midnight as the date alone: both engines say
    that a date equals its midnight.
    """
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removesuffix(" 00:00:00")
