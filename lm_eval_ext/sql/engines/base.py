"""The interface of all engines, and what they share: budgets, values and the alarm.

Worker processes import this module: standard library only.
"""

import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from lm_eval_ext.sql.policy import REAL_SECONDS_PER_SECOND, Limits
from lm_eval_ext.sql.reasons import EMPTY
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

CELLS_VERSION = 3
"""Rises whenever a value of DuckDB or PostgreSQL would be compared as another value.

Signatures contain it.
"""

_MAX_BITS = 128


class TooLargeError(Exception):
    """The query or its result is over a limit."""


class UnavailableError(Exception):
    """The database cannot be used at all, whatever the query; the message says what to do."""


def failure_of(failure_kind: FailureKind, error: Exception) -> Failure:
    """Return a failure that says in one line what an exception says."""
    return Failure(failure_kind, message_of(error))


_QUOTED_TOKEN = re.compile(r'(\b(?:near|token:) ")(.+?)(?="(?:: | LINE \d|\Z))')
_SHOWN_TOKEN = 40
"""The token at which an engine's parser stops, and most characters of it in a message."""


def message_of(error: Exception) -> str:
    """Return what a driver's exception says, in one line of bounded length.

    Between accents a fenced answer is one token, which would fill the line.
    """
    message = one_line(str(error), limit=4 * SHOWN)
    message = _QUOTED_TOKEN.sub(_shortened, message)
    return one_line(message, limit=SHOWN)


def _shortened(token: re.Match[str]) -> str:
    return token[1] + one_line(token[2], limit=_SHOWN_TOKEN)


class Engine(ABC):
    """Runs queries in a worker process; no query can raise, change data or exceed its limits.

    A subclass runs one statement (:meth:`_run`) and reads its driver's exceptions
    (:meth:`_failure`).

    Attributes:
        driver_errors: The exceptions of the driver.
        limits: What a query may use.
    """

    driver_errors: tuple[type[Exception], ...] = ()

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._bytes_left = 0

    def run(self, address: str, sql: str) -> Rows | Failure:
        """Run one statement as it is written; a result without rows is a result, too.

        Args:
            address: The file or URL of the database.
            sql: Exactly one statement.

        Returns:
            The rows, or why there are none.
        """
        self._bytes_left = self.limits.max_result_bytes
        try:
            size = len(sql.encode("utf-8"))  # raises for lone surrogates
            if size > self.limits.max_sql_bytes:
                raise TooLargeError(f"the query's text is over {self.limits.max_sql_bytes:,} bytes")
            if not sql.strip():
                raise ValueError(EMPTY)
            if "\0" in sql:  # drivers would cut the text there
                raise ValueError("the query contains a null character")
            return self._run(address, sql)
        except MemoryError:
            self.close()  # frees the page caches
            return OUT_OF_MEMORY
        except UnavailableError as error:
            return Failure("unavailable", one_line(str(error)))
        except TooLargeError as error:
            return failure_of("too_large", error)
        except self.driver_errors as error:
            return self._failure(error)
        except (ValueError, OverflowError, RuntimeError) as error:  # the driver's own
            return failure_of("error", error)

    @abstractmethod
    def close(self) -> None:
        """Close all connections; later queries open new ones."""

    @abstractmethod
    def _run(self, address: str, sql: str) -> Rows:
        """Run one statement; it may raise what :meth:`run` reads."""

    @abstractmethod
    def _failure(self, error: Exception) -> Failure:
        """Return what an exception of the driver says of the query."""

    def _timeout(self) -> Failure:
        """Return the failure of a query that took too long."""
        return Failure("timeout", f"stopped after {self.limits.timeout_s:g} s")

    def _collect_rows(self, rows: list[Row], new_rows: Iterable[Row]) -> None:
        """Add rows one by one, so that none is read after a limit is passed."""
        for row in new_rows:
            rows.append(row)
            if len(rows) > self.limits.max_rows:
                raise TooLargeError(f"the result has over {self.limits.max_rows:,} rows")

    def _check_columns(self, columns: int) -> None:
        if columns > self.limits.max_columns:
            raise TooLargeError(f"the result has over {self.limits.max_columns:,} columns")

    def _count_bytes(self, size: int) -> None:
        """Count a value's bytes; raise TooLargeError if it, or the result so far, has too many."""
        if size > self.limits.max_value_bytes:
            raise TooLargeError(f"a value has over {self.limits.max_value_bytes:,} bytes")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise TooLargeError(f"the result has over {self.limits.max_result_bytes:,} bytes")


class QueryClock:
    """Counts a query's seconds of processor time, or half of its real seconds if that is more.

    Processor time alone would not count a query that sleeps or waits; real time alone would make
    verdicts depend on what else runs on the machine.
    """

    def __init__(self) -> None:
        self._processor_start = time.process_time()
        self._real_start = time.monotonic()

    def __call__(self) -> float:
        """Return the seconds since the clock was made."""
        processor = time.process_time() - self._processor_start
        real = time.monotonic() - self._real_start
        return max(processor, real / REAL_SECONDS_PER_SECOND)


@dataclass(frozen=True)
class _Watch:
    """What an alarm waits for, and what it does then.

    Attributes:
        deadline: The clock's seconds when time is up.
        clock: Returns seconds.
        ring: Called when time is up, with how often it has been called before.
    """

    deadline: float
    clock: Callable[[], float]
    ring: Callable[[int], None]


class Alarm:
    """A thread that calls a function when time is up, again and again until the block ends.

    There is one per process, since a query may leave no memory for another thread's stack.

    Attributes:
        has_rung: Whether time was up in the latest block.
    """

    REPEAT_S: ClassVar = 0.25
    """Seconds between two calls."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watch: _Watch | None = None
        self._is_waiting = False
        self._ring_count = 0
        self.has_rung = False
        threading.Thread(target=self._work, daemon=True).start()

    @contextmanager
    def after(
        self, seconds: float, clock: Callable[[], float], ring: Callable[[int], None]
    ) -> Iterator[None]:
        """Watch a block.

        Args:
            seconds: When time is up, by the clock.
            clock: Returns seconds, of processor time or of real time.
            ring: Called every :attr:`REPEAT_S` seconds from then on; its argument is how often it
                has been called before.
        """
        with self._changed:
            self._watch = _Watch(clock() + seconds, clock, ring)
            self._ring_count = 0
            self.has_rung = False
            if self._is_waiting:  # otherwise it wakes up before time is up
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:  # waits for ring
                self._watch = None

    def _work(self) -> None:
        with self._changed:
            while True:
                if self._watch is None:
                    self._is_waiting = True
                    self._changed.wait()
                    self._is_waiting = False
                else:
                    self._changed.wait(self._ring_if_due(self._watch))

    def _ring_if_due(self, watch: _Watch) -> float:
        """Ring if time is up; return the seconds until the next look."""
        seconds_left = watch.deadline - watch.clock()
        if seconds_left > 0:
            return max(seconds_left, 0.01)
        self.has_rung = True
        with suppress(Exception):  # this thread must go on
            watch.ring(self._ring_count)
        self._ring_count += 1
        return self.REPEAT_S


def whole_number(value: int) -> Value:
    """Return an integer as it is compared: beyond 128 bits, where no float may follow, its text."""
    return value if value.bit_length() <= _MAX_BITS else str(value)


def decimal_number(value: Decimal) -> Value:
    """Return a decimal as it is compared: an integer if it is one."""
    if value == value.to_integral_value():
        return whole_number(int(value))
    return Exact(str(value))


def float_number(value: float) -> Value:
    """Return a float as it is compared: NaN is the text "NaN", which equals itself as in SQL."""
    return "NaN" if math.isnan(value) else value


def moment(text: str) -> str:
    """Return a time or timestamp in ISO form as it is compared.

    It has no trailing zeros in its fraction, and at midnight the date alone: both engines say that
    a date equals its midnight.
    """
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removesuffix(" 00:00:00")
