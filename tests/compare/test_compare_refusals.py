"""Refused comparisons: different prompts, targets or signatures, broken samples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.compare.command import run
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.query import ScoreQuery

Changed = Callable[..., Path]


def against(folder: Path, runs: Path, tasks: str = "lieder_mini", **options: Any) -> Any:
    return run([folder, runs / "poor"], ScoreQuery(), tasks=tasks, **options)


def other(number: int, row: dict[str, Any], key: str) -> dict[str, Any]:
    """``arguments``: of a later request, since lm-eval's prompt_hash is of the first only."""
    if number == 5 and key == "arguments":
        row[key][max(row[key])]["arg_0"] += " Really."
    elif number == 5:
        row[key] = "0" * 64
    return row


@pytest.mark.parametrize("key", ["prompt_hash", "target_hash", "arguments"])
def test_other_prompts_and_answers_are_refused(changed: Changed, runs: Path, key: str) -> None:
    folder = changed(edit_row=lambda number, row: other(number, row, key))
    what = "right answers" if key == "target_hash" else "prompts"
    with pytest.raises(DataError, match=f"had different {what}"):
        against(folder, runs)
    if what == "prompts":
        assert "Accuracy" in against(folder, runs, across_settings=True)[0]


@pytest.mark.parametrize(
    ("part", "value", "allowed"),
    [("sha256", "ffff", False), ("scoring", "other", False), ("version", "2.0", False),
     ("version", "1.7", True), ("lm-eval-ext", "9", True)],
)  # fmt: skip
def test_signatures_must_agree(
    changed: Changed, runs: Path, part: str, value: str, allowed: bool
) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["configs"]["lieder_mini"]["metadata"]["signature"][part] = value

    folder = changed(edit)
    if allowed:
        assert against(folder, runs)[0]
        return
    with pytest.raises(
        DataError, match="digest of the data" if part == "sha256" else part
    ) as caught:
        against(folder, runs)
    assert value.partition(".")[0] in str(caught.value)


def test_a_run_in_which_all_answers_are_missing_is_refused(changed: Changed, runs: Path) -> None:
    with pytest.raises(DataError, match="share no document"):
        against(changed(edit_row=lambda _, row: {**row, "metrics": []}), runs)


def test_one_refused_task_does_not_hide_the_others(changed: Changed, runs: Path) -> None:
    folder = changed(edit_row=lambda _, row: {**row, "prompt_hash": "x"})
    text, refused = against(folder, runs, "lieder_mini,cogs_mini_id")
    assert "different prompts" in refused
    assert "not compared" in text and "Exact match" in text


def test_a_run_that_cannot_be_compared_does_not_stop_the_others(
    changed: Changed, runs: Path, tmp_path: Path
) -> None:
    """Of three models two are compared; the third is named."""
    folder = changed(edit_row=lambda number, row: other(number, row, "target_hash"))
    text, refused = run([folder, runs / "poor", runs / "same"], ScoreQuery(), tasks="lieder_mini")
    assert "different right answers" in refused and "° " in text
    for file in folder.glob("samples_lieder_mini*"):
        file.write_text(file.read_text()[:900])
    text, refused = run(
        [folder, runs / "poor", runs / "same"], ScoreQuery(), tasks="lieder_mini,cogs_*"
    )
    assert "not JSON" in refused and "Exact match" in text and "0." in text.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("task", "asked", "message"),
    [
        (
            "lieder",
            ScoreQuery(where=("family=plain_negated,no",)),
            "no family no; available: able_un",
        ),
        (
            "magnifico",
            ScoreQuery(by="word"),
            "compares form base with others, and no part has both",
        ),
        (
            "conceptual",
            ScoreQuery(("gain",), by="demonstrations"),
            "gain compares demonstrations, so",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    runs: Path, task: str, asked: ScoreQuery, message: str
) -> None:
    """It printed a table of N/A."""
    with pytest.raises(OptionError, match=message):
        run([runs / "good", runs / "poor"], asked, tasks=f"{task}_mini")


def test_samples_without_the_part_are_one_line(changed: Changed) -> None:
    """Of an older version, whose rows lack a facet."""

    def without(number: int, row: dict[str, Any]) -> dict[str, Any]:
        for one in row["rows"]:
            del one["family"]
        return row

    folder = changed(edit_row=without)
    with pytest.raises(OptionError, match="lieder_mini: its samples have no family"):
        run([folder, folder], ScoreQuery(by="family"), tasks="lieder_mini")
