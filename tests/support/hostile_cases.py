"""The hostile queries of ``tests/fixtures/hostile.yaml`` and ``hostile_engines.yaml``."""

import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Case(NamedTuple):
    name: str
    sql: str
    statuses: tuple[str, ...]

    @property
    def can_be_late(self) -> bool:
        """Such a query ends on no machine: a short limit of time tells it from the others."""
        return "prediction_timeout" in self.statuses


FIXTURES = Path(__file__).parents[1] / "fixtures"

GROUPS: dict[str, Any] = {}
"""Groups of queries with the same legal statuses, by engine."""

for name in ("hostile.yaml", "hostile_engines.yaml"):
    GROUPS.update(yaml.safe_load((FIXTURES / name).read_text(encoding="utf-8")))

# Python 3.10 cannot set SQLite's limits; the process's own still hold.
OLD = {"like pattern of 10 kB": ("wrong",), "printf with a width": ("prediction_too_large",)}
CAN_SET = hasattr(sqlite3.Connection, "setlimit")


def text_of(pieces: str | list[Any]) -> str:
    return pieces if isinstance(pieces, str) else "".join(map(_repeated, pieces))


def _repeated(repetition: str | dict[str, Any]) -> str:
    if isinstance(repetition, str):
        return repetition
    piece: str = repetition["piece"]
    times: int = repetition["times"]
    if "{i}" not in piece:
        return piece * times
    first: int = repetition.get("from", 0)
    return "".join(piece.replace("{i}", str(i)) for i in range(first, first + times))


def cases(*engines: str) -> list[Case]:
    """Return the hostile queries of some engines."""
    engine_cases = []
    for engine in engines:
        for group in GROUPS[engine]:
            for name, pieces in group["queries"].items():
                statuses = tuple(group["statuses"])
                if not CAN_SET:
                    statuses = OLD.get(name, statuses)
                engine_cases.append(Case(name, text_of(pieces), statuses))
    return engine_cases


CASES = cases("sqlite")
