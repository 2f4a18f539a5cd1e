"""Tables of several questions: intervals where there is room, and short captions in LaTeX."""

import re
from pathlib import Path

import pytest
from support.results_files import answered_rows, write_run

from lm_eval_ext.compare.command import leaderboard, run
from lm_eval_ext.errors import OptionError
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


@pytest.mark.parametrize("intervals", [True, False])
@pytest.mark.parametrize(
    ("format_", "seeds", "subject"),
    [("csv", False, "--format csv"), ("json", False, "--format json"), ("text", True, "--by-seed")],
)
def test_an_option_of_intervals_without_effect_is_an_error(
    tmp_path: Path, format_: str, seeds: bool, subject: str, intervals: bool
) -> None:
    with pytest.raises(OptionError, match=f"have no effect with {subject}"):
        run([tmp_path], ScoreQuery(), format_=format_, seeds=seeds, intervals=intervals)


def test_a_single_question_cannot_be_shown_without_intervals(tmp_path: Path) -> None:
    for name, right in (("a", 30), ("b", 20)):
        write_run(tmp_path / name, name, "cogs_mini_gen", answered_rows(40, right))
    with pytest.raises(OptionError, match="--no-intervals is for tables of several questions"):
        run([tmp_path], ScoreQuery(), tasks="cogs_mini_gen", intervals=False)
