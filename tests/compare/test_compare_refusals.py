"""Refused comparisons: different prompts, targets or signatures, broken samples."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_runs import compared, results_in

from lm_eval_ext.compare.command import run
from lm_eval_ext.compare.comparison import Settings
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import BENCHMARK
from lm_eval_ext.results.table import samples_file


@pytest.mark.parametrize("key", ["prompt_hash", "target_hash"])
def test_other_prompts_and_answers_are_refused(
    changed: Callable[..., Path], runs: Path, key: str
) -> None:
    folder = changed(edit_row=lambda n, row: {**row, key: "0" * 64} if n == 5 else row)
    with pytest.raises(DataError, match="had different") as caught:
        run([folder, runs / "poor"], Settings(), tasks="lieder_mini")
    assert str(caught.value).count("task:lieder_mini|") == 2, "both signatures are shown"
    if key == "prompt_hash":
        across = Settings(across_settings=True)
        text, _ = run([folder, runs / "poor"], across, tasks="lieder_mini")
        assert "Accuracy" in text


def test_a_later_request_of_a_document_counts_as_prompt(
    changed: Callable[..., Path], runs: Path
) -> None:
    """lm-eval's prompt_hash is of the first request only."""

    def last_request(number: int, row: dict[str, Any]) -> dict[str, Any]:
        if number == 7:
            row["arguments"][max(row["arguments"])]["arg_0"] += " Really."
        return row

    folder = changed(edit_row=last_request)
    with pytest.raises(DataError, match="different prompts"):
        run([folder, runs / "poor"], Settings(), tasks="lieder_mini")


@pytest.mark.parametrize(
    ("part", "value", "allowed"),
    [("sha256", "ffff", False), ("scoring", "other", False), ("version", "2.0", False),
     ("version", "1.7", True), ("lm-eval-ext", "9", True)],
)  # fmt: skip
def test_signatures_must_agree(
    changed: Callable[..., Path], runs: Path, part: str, value: str, allowed: bool
) -> None:
    def edit(content: dict[str, Any]) -> None:
        content["configs"]["lieder_mini"]["metadata"]["signature"][part] = value

    folder = changed(edit)
    if allowed:
        assert run([folder, runs / "poor"], Settings(), tasks="lieder_mini")[0]
        return
    with pytest.raises(DataError, match=part) as caught:
        run([folder, runs / "poor"], Settings(), tasks="lieder_mini")
    assert value.partition(".")[0] in str(caught.value)


def test_one_refused_task_does_not_hide_the_others(
    changed: Callable[..., Path], runs: Path
) -> None:
    folder = changed(edit_row=lambda _, row: {**row, "prompt_hash": "x"})
    text, refused = run([folder, runs / "poor"], Settings(), tasks="lieder_mini,cogs_mini_id")
    assert "different prompts" in refused
    assert "not compared" in text
    assert "Exact match" in text


def test_samples_that_do_not_give_the_value_offer_no_test(
    changed: Callable[..., Path], runs: Path
) -> None:
    def raised(content: dict[str, Any]) -> None:
        """A file of an older version, whose metrics need not be means."""
        content["results"]["lieder_mini"]["direct,none"] += 0.01
        del content["configs"]["lieder_mini"]["metadata"][BENCHMARK]

    found = compared(changed(raised), runs / "poor", tasks="lieder_mini")
    assert found["pairs"] == []
    assert {row["note"] for row in found["figures"]} == {"no document has a value in all runs"}


def test_samples_without_the_part_are_one_line(changed: Callable[..., Path]) -> None:
    """Of an older version, whose rows lack a facet."""

    def without(number: int, row: dict[str, Any]) -> dict[str, Any]:
        for one in row["rows"]:
            del one["family"]
        return row

    folder = changed(edit_row=without)
    with pytest.raises(OptionError, match="no document has what is asked for"):
        run([folder, folder], Settings(by="family"), tasks="lieder_mini")


def test_missing_and_broken_samples_are_named(changed: Callable[..., Path], runs: Path) -> None:
    folder = changed()
    file = samples_file(results_in(folder), "lieder_mini")
    lines = file.read_text().splitlines()
    for broken, said in (
        ("{", "not JSON"), ("[]", "not a sample"), ("{}", "not a sample"), ("[" * 9999, "not JSON"),
    ):  # fmt: skip
        file.write_text("\n".join([*lines[:2], broken, *lines[3:]]))
        with pytest.raises(DataError, match=f":3: {said}"):
            run([folder, runs / "poor"], Settings(), tasks="lieder_mini")
    file.unlink()
    with pytest.raises(DataError, match="--log_samples"):
        run([folder, runs / "poor"], Settings(), tasks="lieder_mini")
