"""The interface of all engines, and what they share: budgets, values and the alarm.

Worker processes import this module: standard library only.
"""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import ClassVar

from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import (
    OUT_OF_MEMORY,
    SHOWN,
    Exact,
    Failure,
    FailureKind,
    Row,
    Rows,
    Value,
)
from lm_eval_ext.text import one_line

CELLS_VERSION = 2
"""Rises whenever a value of DuckDB or PostgreSQL would be compared as another; in signatures."""


_MOST_BITS = 128


class TooLargeError(Exception):
    """The query or its result is over a limit."""


class UnavailableError(Exception):
    """The database cannot be used at all, whatever the query; the message says what to do."""


def failed(kind: FailureKind, error: Exception) -> Failure:
    """A failure that says what an exception says."""
    return Failure(kind, one_line(str(error), limit=SHOWN))


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
            return OUT_OF_MEMORY
        except UnavailableError as error:
            return Failure("unavailable", one_line(str(error)))
        except TooLargeError as error:
            return failed("too_large", error)
        except self.errors as error:
            return self._failure(error)
        except (ValueError, OverflowError, RuntimeError) as error:  # of the driver's own
            return failed("error", error)

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
    """A thread that calls a function when time is up, again and again until the block ends.

    One per process, since a query may leave no memory for another thread's stack.

    Attributes:
        rang: Whether time was up in the latest block.
    """

    AGAIN_S: ClassVar = 0.25

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._task: tuple[float, Callable[[], float], Callable[[int], None]] | None = None
        self._sleeps = False
        self._times = 0
        self.rang = False
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def after(
        self, seconds: float, clock: Callable[[], float], ring: Callable[[int], None]
    ) -> Iterator[None]:
        """Watches the block.

        Args:
            seconds: Of the clock.
            clock: Returns seconds; of processor time or of real time.
            ring: Called every :attr:`AGAIN_S` seconds, with how often it was called before.
        """
        with self._changed:
            self._task, self._times, self.rang = (clock() + seconds, clock, ring), 0, False
            if self._sleeps:  # otherwise it wakes up before time is up
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:  # waits for ring
                self._task = None

    def _watch(self) -> None:
        with self._changed:
            while True:
                if self._task is None:
                    self._sleeps = True
                    self._changed.wait()
                    self._sleeps = False
                    continue
                until, clock, ring = self._task
                wait = max(until - clock(), 0.01)
                if until <= clock():
                    self.rang = True
                    with suppress(Exception):  # this thread must go on
                        ring(self._times)
                    self._times += 1
                    wait = self.AGAIN_S
                del ring  # with the query's session
                self._changed.wait(wait)


def whole(value: int) -> Value:
    """An integer as it is compared: beyond 128 bits, where no float may follow, its text."""
    return value if value.bit_length() <= _MOST_BITS else str(value)


def decimal_number(value: Decimal) -> Value:
    """A decimal as it is compared: an integer if it is one."""
    return whole(int(value)) if value == value.to_integral_value() else Exact(str(value))


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
