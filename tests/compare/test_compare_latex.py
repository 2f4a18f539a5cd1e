"""LaTeX for papers: what is bold, what is escaped, what fits a page, and that it compiles."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tex import compiled

from lm_eval_ext.compare.command import escape, latex_overview, latex_table
from lm_eval_ext.errors import OptionError

HOSTILE = "a_b%&#${}~^\\[x]*<|>\"'`--?` é\u202e\x1b[31m\n\\input{/etc/passwd}"


def made(models: int, columns: int, **cells: Any) -> list[dict[str, Any]]:
    same = {"unit": "share", "value": 0.5, "low": 0.4, "high": 0.6, "best": False, **cells}
    return [
        {"model": f"m{m}", "column": f"c{c}", **same} for m in range(models) for c in range(columns)
    ]


def rows(text: str) -> list[str]:
    """The first cell of each row that is not one of intervals."""
    lines = [line for line in text.splitlines() if " & " in line and r"\scriptsize" not in line]
    return [line.split(" & ")[0].strip() for line in lines]


@pytest.mark.parametrize(
    ("models", "columns", "first"),
    [(3, 2, ["", "m0", "m1", "m2"]), (2, 3, ["", "c0", "c1", "c2"]), (2, 2, ["", "m0", "m1"])],
)
def test_what_there_is_more_of_are_rows(models: int, columns: int, first: list[str]) -> None:
    assert rows(latex_table(made(models, columns), caption="c", label="l")) == first


@pytest.mark.parametrize(
    ("models", "columns", "said"),
    [(12, 9, "9 columns, .* room for 8; choose with --tasks, --metric or --where: c0, c1"),
     (9, 12, "9 columns, .* room for 8; name fewer results: m0, m1")],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_what_chooses(models: int, columns: int, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        latex_table(made(models, columns), caption="c", label="l")
    assert latex_table(made(40, 8), caption="c", label="l")


def test_bold_is_what_the_frame_says_and_units_are_declared() -> None:
    frame = made(2, 2)
    frame[0] |= {"best": True, "unit": "percent", "value": 0.8, "low": None, "high": None}
    text = latex_table(frame, caption="c", label="l", below=[("p", "c1", "0.003")])
    assert r"m0 & \textbf{0.8\,\%} & 0.500" in text
    assert r" &  & \scriptsize {[}0.400, 0.600{]}" in text
    frame[0] |= {"low": float("nan"), "high": float("nan")}  # as a data frame has them
    assert latex_table(frame, caption="c", label="l", below=[("p", "c1", "0.003")]) == text
    assert text.count("textbf") == 1 and "Bold: no other model" in text
    assert text.count("\\midrule\np &  & 0.003") == 1
    assert "textbf" not in latex_table(made(2, 2), caption="c", label="l")


def test_the_overview_says_what_is_a_trial() -> None:
    frame = pd.DataFrame(made(2, 1, title="Accuracy", task="lieder_base", scored=20, total=48))
    assert "lieder\\_base: Accuracy. Trials: lieder\\_base 20 of 48 documents." in latex_overview(
        frame
    )


@given(st.text(max_size=30))
def test_no_text_is_a_command(text: str) -> None:
    shown = escape(text)
    assert "\n" not in shown
    bare = re.sub(r"\\(?:text[a-z]+\{\}|[&%$#_{}])", "", shown)
    assert "\\" not in bare and not set("&%$#_~^|<>") & set(bare)
    assert bare.count("{") == bare.count("}")


def test_hostile_names_compile(tmp_path: Path) -> None:
    names = {"m0": HOSTILE, "c0": HOSTILE, "c1": "c" * 60}
    frame = [{key: names.get(one, one) for key, one in row.items()} for row in made(2, 2)]
    compiled(latex_table(frame, caption=HOSTILE, label="l", comments=[HOSTILE]), tmp_path)
