"""Tables of several questions: intervals where there is room, and short captions in LaTeX."""

import re
from pathlib import Path

import pytest

from lm_eval_ext.compare.command import leaderboard, run
from lm_eval_ext.results.query import ScoreQuery

INTERVAL = re.compile(r"\[-?\d\.\d+, -?\d\.\d+\]")


def shown(runs: Path, format_: str, intervals: bool | None) -> str:
    """Return the table of all tasks, without what LaTeX needs for minus signs and brackets."""
    text, _ = run([runs], ScoreQuery(), format_=format_, intervals=intervals)
    return re.sub(r"[\\{}$]", "", text)


@pytest.mark.parametrize(
    ("format_", "intervals", "has_intervals"),
    [
        ("text", None, False),
        ("text", True, True),
        ("markdown", None, True),
        ("markdown", False, False),
        ("latex", None, True),
        ("latex", False, False),
    ],
)
def test_papers_have_intervals_and_a_terminal_on_request(
    runs: Path, format_: str, intervals: bool | None, has_intervals: bool
) -> None:
    table, _, _ = shown(runs, format_, intervals).partition("p (Holm)")
    assert bool(INTERVAL.search(table)) is has_intervals


def test_an_interval_stands_behind_its_value_in_markdown(runs: Path) -> None:
    rows = [line for line in shown(runs, "markdown", None).splitlines() if line.startswith("| ")]
    assert all(row.endswith(" |") for row in rows), "no row is broken"
    assert any(re.search(r"\| \d\.\d+.? \[\d", row) for row in rows)


@pytest.mark.parametrize("intervals", [None, False])
def test_the_caption_of_all_models_is_short_and_reasons_are_comments(
    runs: Path, tmp_path: Path, intervals: bool | None
) -> None:
    """The caption says what is shown; the note below what marks mean; comments say why."""
    file = tmp_path / "models.tex"
    leaderboard([runs], file, intervals=intervals)
    text = file.read_text()
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    assert re.fullmatch(
        r"Scores of \d+ systems on \d+ benchmarks(, with 95 \\% intervals)?\.", caption
    )
    assert ("intervals" in caption) is (intervals is None)
    _, _, note = text.partition(r"\end{tabular}")
    assert "bold: significantly better than chance" in note
    before_table, _, _ = text.partition(r"\begin{table")
    assert all(line.startswith("% ") for line in before_table.splitlines())
    assert "not tested:" not in note
