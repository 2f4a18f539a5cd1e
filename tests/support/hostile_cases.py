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

GROUPS = {
    engine: groups
    for name in ("hostile.yaml", "hostile_engines.yaml")
    for engine, groups in yaml.safe_load((FIXTURES / name).read_text(encoding="utf-8")).items()
}

# Python 3.10 cannot set SQLite's limits; the process's own still hold.
OLD = {"like pattern of 10 kB": ("wrong",), "printf with a width": ("prediction_too_large",)}
CAN_SET = hasattr(sqlite3.Connection, "setlimit")


def text_of(pieces: str | list[Any]) -> str:
    return pieces if isinstance(pieces, str) else "".join(map(_repeated, pieces))


def _repeated(repetition: str | dict[str, Any]) -> str:
    if isinstance(repetition, str):
        return repetition
    piece, times = (
        repetition["piece"],
        range(repetition.get("from", 0), repetition.get("from", 0) + repetition["times"]),
    )
    if "{i}" not in piece:
        return str(piece * len(times))
    return "".join(piece.replace("{i}", str(i)) for i in times)


def cases(*engines: str) -> list[Case]:
    return [
        Case(name, text_of(sql), tuple(group["statuses"]))
        if CAN_SET or name not in OLD
        else Case(name, text_of(sql), OLD[name])
        for engine in engines
        for group in GROUPS[engine]
        for name, sql in group["queries"].items()
    ]


CASES = cases("sqlite")
