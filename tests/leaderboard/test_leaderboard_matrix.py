"""The first table: which task stands for a benchmark, which model comes first, and why."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.leaderboard.board import Board, Model, Rank, Run, TaskBoard, arranged
from lm_eval_ext.leaderboard.matrix import MOST_COLUMNS, matrix, win_rate
from lm_eval_ext.leaderboard.page import size_text
from lm_eval_ext.leaderboard.ranks import ranks_by_intervals
from lm_eval_ext.results.files import Score


def task(name: str, values: Mapping[str, float], benchmark: str = "", *, width: float = 0.01,
         lower: bool = False) -> TaskBoard:  # fmt: skip
    scores = {
        label: Score(value, None, (value - width, value + width)) for label, value in values.items()
    }
    runs = {label: Run({"m": score}, (9, 9), f"task:{name}") for label, score in scores.items()}
    found = TaskBoard(name, benchmark, "m", frozenset("m" if lower else ""), runs=runs)
    found.ranks = ranks_by_intervals(scores, higher=not lower)
    return found


def board(*tasks: TaskBoard) -> Board:
    labels = {label for one in tasks for label in one.runs}
    return arranged([Model(label, "", "") for label in labels], tasks)


def order(*tasks: TaskBoard) -> list[str]:
    return [row.label for row in matrix(board(*tasks)).table.rows]


def test_best_first() -> None:
    one = task("one", {"a": 0.2, "b": 0.8, "c": 0.5})
    assert order(one) == ["b", "c", "a"]
    assert order(task("one", {"a": 0.2, "b": 0.8, "c": 0.5}, lower=True)) == ["a", "c", "b"]


def test_the_win_rate_counts_who_cannot_be_told_apart_half() -> None:
    """By hand: a beats c and d and ties with b; d loses against all."""
    ranks = ranks_by_intervals(
        {
            "a": Score(0.80, None, (0.75, 0.85)), "b": Score(0.78, None, (0.73, 0.83)),
            "c": Score(0.70, None, (0.66, 0.74)), "d": Score(0.10, None, (0.05, 0.15)),
        }
    )  # fmt: skip
    assert ranks["a"] == Rank(1, tied=True) and ranks["a"].beaten == 2
    one = TaskBoard("one", "", "m", ranks=ranks)
    rates = {label: win_rate(label, [one]) for label in "abcd"}
    assert rates == {"a": 2.5 / 3, "b": 2 / 3, "c": 1.5 / 3, "d": 0.0}
    assert win_rate("x", [one]) is None
    assert win_rate("a", [TaskBoard("one", "", "m", ranks={"a": Rank(1, tied=False)})]) is None


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), st.floats(0, 1), min_size=2))
def test_win_rates_average_one_half(values: dict[str, float]) -> None:
    one = task("one", values, width=0.2)
    rates = [win_rate(label, [one]) for label in values]
    assert math.isclose(sum(rate or 0.0 for rate in rates) / len(rates), 0.5)


def test_models_that_lack_a_benchmark_come_last() -> None:
    one, two = task("one", {"a": 0.2, "b": 0.5, "c": 0.9}), task("two", {"a": 0.2, "b": 0.5})
    assert order(one, two) == ["b", "a", "c"]


def test_values_order_models_that_win_as_often() -> None:
    assert order(task("one", {"a": 0.5, "b": 0.7, "c": 0.6}, width=0.4)) == ["b", "c", "a"]


def test_a_benchmark_is_represented_by_the_task_that_most_have() -> None:
    found = matrix(
        board(
            task("cogs_unmodified_gen", {"a": 0.1}, "cogs"),
            task("cogs_mini_gen", {"a": 0.1, "b": 0.2}, "cogs"),
            task("other", {"a": 0.1}),
        )
    )
    assert [column.label for column in found.table.columns] == ["cogs_mini_gen", "other"]
    assert found.titles == ("COGS with controlled lexical exposure", "other")
    assert found.apart == (True, False)


def test_of_a_single_benchmark_all_tasks_are_shown() -> None:
    tasks = [task(f"lieder_{name}", {"a": 0.1, "b": 0.5}, "lieder") for name in ("base", "diff")]
    assert matrix(board(*tasks)).titles == ("lieder_base", "lieder_diff")


def test_what_has_no_room_is_counted() -> None:
    found = matrix(board(*(task(f"t{n:02}", {"a": 0.1}) for n in range(MOST_COLUMNS + 3))))
    assert len(found.table.columns) == MOST_COLUMNS and found.left_out == 3


@pytest.mark.parametrize(
    ("parameters", "text"),
    [(1000, "1K"), (124439808, "124M"), (6738415616, "6.74B"), (999_999_999, "1B"), (7e10, "70B"),
     (1.8e12, "1.8T"), (5e15, "5e+03T")],
)  # fmt: skip
def test_sizes_as_people_write_them(parameters: float, text: str) -> None:
    assert size_text(parameters) == text
