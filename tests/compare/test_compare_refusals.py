"""Refused comparisons: different prompts, targets or signatures, broken samples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.compare.command import run
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.query import ScoreQuery

Changed = Callable[..., Path]


Sample = dict[str, Any]
EditRow = Callable[[int, Sample], Sample]
"""A function that gets the number of a logged sample and returns the sample as it is to be."""


def against_poor(
    folder: Path, runs: Path, tasks: str = "lieder_mini", **options: Any
) -> tuple[str, list[str]]:
    """Compare a run with the run ``poor``; return the text, and what was refused."""
    return run([folder, runs / "poor"], ScoreQuery(), tasks=tasks, **options)


def changing_fifth(key: str) -> EditRow:
    """Return a function that changes a key of document 5.

    ``arguments`` changes its last request, since lm-eval's prompt_hash is of the first only.
    """

    def edit_row(number: int, sample: Sample) -> Sample:
        if number != 5:
            return sample
        if key == "arguments":
            last_request = max(sample["arguments"])
            sample["arguments"][last_request]["arg_0"] += " Really."
        else:
            sample[key] = "0" * 64
        return sample

    return edit_row


def setting(key: str, value: object) -> EditRow:
    """Return a function that sets a key of every sample."""

    def edit_row(_number: int, sample: Sample) -> Sample:
        return {**sample, key: value}

    return edit_row


def test_different_right_answers_are_refused(changed: Changed, runs: Path) -> None:
    folder = changed(edit_row=changing_fifth("target_hash"))
    with pytest.raises(DataError, match="had different right answers"):
        against_poor(folder, runs)


@pytest.mark.parametrize("key", ["prompt_hash", "arguments"])
def test_different_prompts_are_refused_unless_the_user_allows_them(
    changed: Changed, runs: Path, key: str
) -> None:
    folder = changed(edit_row=changing_fifth(key))
    with pytest.raises(DataError, match="had different prompts"):
        against_poor(folder, runs)
    text, _ = against_poor(folder, runs, across_settings=True)
    assert "Accuracy" in text


def resigned(changed: Changed, key: str, value: str) -> Path:
    """Return a copy of the run ``good`` with another value in the signature of lieder_mini."""

    def edit(content: dict[str, Any]) -> None:
        content["configs"]["lieder_mini"]["metadata"]["signature"][key] = value

    return changed(edit)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        pytest.param("sha256", "ffff", "digest of the data", id="data"),
        pytest.param("scoring", "other", "scoring", id="scoring"),
        pytest.param("version", "2.0", "version", id="version"),
    ],
)
def test_different_signatures_are_refused(
    changed: Changed, runs: Path, key: str, value: str, named: str
) -> None:
    with pytest.raises(DataError, match=named) as caught:
        against_poor(resigned(changed, key, value), runs)
    assert value.partition(".")[0] in str(caught.value)


@pytest.mark.parametrize(("key", "value"), [("version", "1.7"), ("lm-eval-ext", "9")])
def test_signatures_may_differ_in_what_changes_no_score(
    changed: Changed, runs: Path, key: str, value: str
) -> None:
    text, _ = against_poor(resigned(changed, key, value), runs)
    assert text


def test_a_latex_table_has_each_signature_once(changed: Changed, runs: Path) -> None:
    """A reader sees that settings differ; runs with the same signature share a comment."""
    text, _ = against_poor(resigned(changed, "lm-eval-ext", "9"), runs, format_="latex")
    assert text.count("\n% task:lieder_mini|") == 2
    text, _ = against_poor(runs / "good", runs, format_="latex")
    assert text.count("\n% task:lieder_mini|") == 1


def test_a_run_in_which_all_answers_are_missing_is_refused(changed: Changed, runs: Path) -> None:
    with pytest.raises(DataError, match="share no document"):
        against_poor(changed(edit_row=setting("metrics", [])), runs)


def test_one_refused_task_does_not_hide_the_others(changed: Changed, runs: Path) -> None:
    folder = changed(edit_row=setting("prompt_hash", "x"))
    text, refused = against_poor(folder, runs, "lieder_mini,cogs_mini_id")
    assert "different prompts" in " ".join(refused)
    assert "not compared" not in text, "the command says it on stderr"
    assert "Exact match" in text


def test_a_run_that_cannot_be_compared_does_not_stop_the_others(
    changed: Changed, runs: Path, tmp_path: Path
) -> None:
    """Two of three models are compared; the third is named."""
    folder = changed(edit_row=changing_fifth("target_hash"))
    text, refused = run([folder, runs / "poor", runs / "same"], ScoreQuery(), tasks="lieder_mini")
    assert "different right answers" in " ".join(refused)
    assert "° " in text
    for file in folder.glob("samples_lieder_mini*"):
        file.write_text(file.read_text()[:900])
    text, refused = run(
        [folder, runs / "poor", runs / "same"], ScoreQuery(), tasks="lieder_mini,cogs_*"
    )
    assert "not JSON" in " ".join(refused)
    assert "Exact match" in text
    assert "0." in text.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("task", "query", "message"),
    [
        pytest.param(
            "lieder_mini",
            ScoreQuery(where=("family=plain_negated,no",)),
            "no family no; available: able_un",
            id="unknown value of a facet",
        ),
        pytest.param(
            "magnifico_mini",
            ScoreQuery(by="word"),
            "compares form base with others, and no part has both",
            id="no part has both sides of a ratio",
        ),
        pytest.param(
            "conceptual_mini",
            ScoreQuery(("gain",), by="demonstrations"),
            "gain compares demonstrations, so",
            id="a facet that the metric compares",
        ),
    ],
)
def test_a_query_without_answer_is_one_line(
    runs: Path, task: str, query: ScoreQuery, message: str
) -> None:
    """The message replaces a table of N/A."""
    with pytest.raises(OptionError, match=message):
        run([runs / "good", runs / "poor"], query, tasks=task)


def test_samples_without_the_facet_are_one_line(changed: Changed) -> None:
    """Samples of an older version lack a facet."""

    def without_family(number: int, row: dict[str, Any]) -> dict[str, Any]:
        for scores in row["rows"]:
            del scores["family"]
        return row

    folder = changed(edit_row=without_family)
    with pytest.raises(OptionError, match="lieder_mini: its samples have no family"):
        run([folder, folder], ScoreQuery(by="family"), tasks="lieder_mini")
