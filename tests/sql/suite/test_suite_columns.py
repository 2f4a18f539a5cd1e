"""What columns may hold: kinds, neighbours and refused constants, with both sides."""

from typing import NamedTuple

import pytest
from support.databases import opened

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.suite.columns import Domain, read_domain
from lm_eval_ext.sql.values import Value


def domain_of(declared: str, values: list[Value]) -> Domain:
    with opened(f"CREATE TABLE t (c {declared})") as connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        schema = schema_of(connection)
        return read_domain(connection, schema["t"], schema["t"]["c"])


DAYS: list[Value] = ["2020-02-28", "2020-03-01", "2021-12-31"]


class DomainCase(NamedTuple):
    """A column's declared type and values, and what its domain makes of constants.

    Attributes:
        kind: The kind of values that the domain reads from the column.
        neighbours: Constants that are taken, with values that must come with them.
        refused: Constants that are no value of the column.
    """

    declared_type: str
    values: list[Value]
    kind: str
    neighbours: dict[Value, list[Value]]
    refused: list[Value]


TABLE: list[DomainCase] = [
    DomainCase("INTEGER", [1, 2, 3], "integer", {7: [6, 8], 0: [1]}, [2.5, "7"]),
    DomainCase(
        "REAL", [1.25, 2.0, None], "decimal", {1.5: [1.49, 1.51], 3: [2.99, 3.01]}, [1.255, "1.5"]
    ),
    DomainCase(
        "TEXT",
        [*DAYS],
        "date",
        {"2020-02-28": ["2020-02-27", "2020-02-29", "2019-02-28"]},
        ["2020-02-30", "0000-00-00", "2020-2-3", "soon"],
    ),
    DomainCase(
        "DATE",
        [*DAYS, "0000-00-00", "2020-1-3"],
        "date",
        {"2020-03-01": ["2020-02-29"]},
        ["0000-00-00", "2020-02-31"],
    ),
    DomainCase(
        "TEXT", ["8/29/2013", "12/1/2013", "1/5/2014"], "date", {"9/1/2013": ["8/31/2013"]}, ["x"]
    ),
    DomainCase("TEXT", ["10:05", "23:59"], "date", {"10:00": ["09:59", "10:01"]}, ["24:00"]),
    DomainCase(
        "TEXT", ["007", "012"], "digits", {"010": ["009", "011"], 12: ["11", "13"]}, ["x", "1.5"]
    ),
    DomainCase("TEXT", ["red", "blue"], "text", {"green": []}, [3]),
    DomainCase("TEXT", ["2020-01-01", "red", "blue"], "text", {"2020-01-01": []}, [3]),
    DomainCase("", [1, 2, "x"], "integer", {2: [1, 3]}, ["x"]),
    DomainCase("BLOB", [b"x"], "blob", {}, ["x", 1]),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case.declared_type} {case.values[:2]}")
def test_a_domain_takes_constants_of_its_column_with_their_neighbours(case: DomainCase) -> None:
    """A domain takes constants that are values of its column, with their neighbours."""
    domain = domain_of(case.declared_type, case.values)
    assert domain.kind == case.kind
    assert domain.has_nulls == (None in case.values)
    for constant in case.refused:
        assert not domain.add_constant(constant)
    assert not domain.constants
    for value, neighbours in case.neighbours.items():
        added = domain.add_constant(value)
        assert added[0] == value
        assert set(neighbours) <= set(added)
        assert all(domain.fits(constant) for constant in added)


def test_texts_hold_a_piece_in_all_places() -> None:
    domain = domain_of("TEXT", ["Bonn", "Rome", "Bad Bonn am See"])
    added = domain.add_containing("Bonn")
    assert {"Bonn", "Bad Bonn am See", "Bonn Rome", "Rome Bonn", "Rome Bonn Rome"} <= set(added)
    assert set(domain.add_containing("o")) <= set(domain.values), "letters are found, not added"


def test_a_text_has_one_spelling_for_like_takes_all() -> None:
    domain = domain_of("TEXT", ["Bonn", "Rome"])
    assert domain.add_constant("bonn")[0] == "Bonn"
    assert domain.add_containing("ROME")[0] == "Rome"
    assert not {"bonn", "ROME"} & set(domain.constants)
    assert domain.spellings == {"bonn", "ROME"}
    assert domain.add_constant("Lund") == ["Lund", *domain.neighbours("Lund")]


def test_texts_of_a_length_that_no_text_has() -> None:
    """Two words of the column make one, where texts have several words; else nothing is made."""
    names = ["Red Wood", "Old Oak Hill", "Elm", "Beech Grove", "Ash Lane End", "Fir", "Yew Dale",
             "Long Pine Way", "Great Larch"]  # fmt: skip
    domain = domain_of("TEXT", [*names])
    lengths = {len(str(text)) for text in domain.add_lengths(10)}
    assert {9, 10, 11} <= lengths
    closed = domain_of("TEXT", ["M", "F"])
    assert set(closed.add_lengths(3)) <= {"M", "F"}


def test_no_run_of_letters_that_the_column_has_not() -> None:
    assert domain_of("TEXT", ["Bonn"]).has_new_letter_run("Bonnnn")
    assert not domain_of("TEXT", ["Bonn", "Zzz"]).has_new_letter_run("Bonnnn")
    assert "aaa" not in domain_of("TEXT", ["Bonn"]).add_containing("aaa")
