"""LaTeX for papers: bold marks, escaped text, the width of a page, and that it compiles."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tex import compiled

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.grid import escape, latex, legend

HOSTILE = "a_b%&#${}~^\\[x]*<|>\"'`--?` é\u202e\x1b[31m\n\\input{/etc/passwd}"


def test_marks_are_bold_and_second_lines_are_small() -> None:
    rows = [["m0", "0.8 %*", "0.500°\n[-0.1, 0.6]"], ["m1", "N/A ", "+0.250?"]]
    heads = ["", "c0", "a_long heading_of-words"]
    notes = legend(["best", "unproven", "untested", "beaten"], [])
    text = latex(heads, rows, "of ↓", label="l", notes=notes, comments=["a\nb"])
    body = text.partition("\\toprule\n")[2].splitlines()[:6]
    assert body == [
        r" & c0 & \shortstack[r]{a\_long heading\_of{-} \\ words} \\",
        r"\midrule",
        r"m0 & \textbf{0.8\,\%} & 0.500\rlap{$^{\circ}$} \\",
        r" &  & \scriptsize {[}$-$0.1, 0.6{]} \\",
        r"m1 & N/A & $+$0.250\rlap{$^{?}$} \\",
        r"\bottomrule",
    ]
    assert r"\caption{of $\downarrow$.}" in text
    assert r"{\footnotesize bold: significantly better than chance, and not" in text
    assert r"; $^{\circ}$ not significantly beaten, but not shown" in text
    assert "; ? could not be tested; no mark: significantly beaten" in text
    assert "\n% a b\n" in text
    assert "bold" not in latex(["", "c"], [["m", "0.5 "]], "c", label="l")


def test_the_second_lines_of_a_wide_table_are_smaller() -> None:
    """Seven intervals in \\scriptsize would be wider than a page."""
    heads = ["", *"abcdefg"]
    text = latex(heads, [["m", *["0.5 \n[0.4, 0.6]"] * 7]], "c", label="l")
    assert text.count(r"\tiny {[}0.4, 0.6{]}") == 7


def test_too_many_columns_are_named_with_the_options_that_choose() -> None:
    rows = [[f"m{n}", *["0.5 "] * 9] for n in range(40)]
    assert latex(["", *"abcdefgh"], [row[:9] for row in rows], "c", label="l")
    with pytest.raises(OptionError, match=r"9 columns, .* for 8; .* choose with --tasks, .*: a, b"):
        latex(["", *"abcdefghi"], rows, "c", label="l")


NAMES = ["Llama-3.1-8B-Instruct", "gpt2", "Qwen2.5-1.5B-Instruct, chat template, 5 demonstrations"]
HEADINGS = [
    "LIEDER (base)", "MAGNIFICo", "COGS generalization", "DiNeR", "Conceptual few-shot", "SLOG",
    "Discourse entities", "cogs_mini_test",
]  # fmt: skip


CELLS = {"values": "0.812*", "intervals": "0.812*\n[0.780, 0.843]"}


def tables_of(columns: Iterable[int], cell: str) -> str:
    """Return tables of three systems, with numbers of columns, in which each cell says the same."""
    tables = []
    for count in columns:
        rows = [[name, *[cell] * count] for name in NAMES]
        tables.append(latex(["", *HEADINGS[:count]], rows, "c", label=f"l{count}"))
    return "\n".join(tables)


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS.keys())
def test_tables_fit_a_page_of_two_columns(cell: str, tmp_path: Path) -> None:
    """A table of few columns fits one column of it, others the page."""
    tables = tables_of(range(1, 9), cell)
    assert "Overfull" not in compiled(tables, tmp_path, options="twocolumn")


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS.keys())
def test_tables_of_five_columns_fit_a_page_of_one_column(cell: str, tmp_path: Path) -> None:
    """That of LaTeX's article is narrower than any journal's."""
    assert "Overfull" not in compiled(tables_of(range(1, 6), cell), tmp_path)


@given(st.text(max_size=30))
def test_no_text_is_a_command(text: str) -> None:
    shown = escape(text).replace(r"$\downarrow$", "")
    assert "\n" not in shown
    bare = re.sub(r"\\(?:text[a-z]+\{\}|[&%$#_{}])", "", shown)
    assert "\\" not in bare
    assert not set("&%$#_~^|<>") & set(bare)
    assert bare.count("{") == bare.count("}")


def test_hostile_names_compile(tmp_path: Path) -> None:
    row = [HOSTILE, "0.5*", "N/A"]
    table = latex(["", HOSTILE, "c" * 60], [row, row], HOSTILE, label="l")
    compiled(table, tmp_path)
