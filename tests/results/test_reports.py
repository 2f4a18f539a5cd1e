"""Reports lead on: what is refused or missing has its reason once, and hints can be copied."""

import json
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from support.results_files import answered_rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.names import NOT_SCORABLE, VERDICT
from lm_eval_ext.leaderboard.site import _arguments_text
from lm_eval_ext.results.grid import markdown, note_section, text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.overview import (
    NO_SAMPLES,
    ROW_ORDER,
    overview,
    overview_columns,
    ranked_models,
)
from lm_eval_ext.results.query import question_of, reason_for, shown_estimate
from lm_eval_ext.results.show import grouped_by_model
from lm_eval_ext.stats.statistics import Estimate
from lm_eval_ext.text import broken

TASK = "cogs_mini_gen"


def write(folder: Path, name: str, right: int, *, prompt: str = "") -> Path:
    """Write results of a model on forty documents; return the results file."""
    samples = []
    for row in answered_rows(40, right):
        row["facets"] = {"type": "t"}
        if prompt:
            row["prompt"] = prompt
        samples.append(row)
    return write_run(folder / name, name, TASK, samples)


def run(*arguments: object) -> Any:
    """Return the result of a command."""
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_what_cannot_be_compared_stands_on_stderr_once(tmp_path: Path) -> None:
    """The table of the others is a success, also for a script."""
    write(tmp_path, "a", 35)
    write(tmp_path, "b", 5)
    write(tmp_path, "c", 20, prompt="Another prompt")
    result = run("compare", tmp_path)
    assert result.exit_code == 0, result.output
    assert "not compared" not in result.stdout
    (line,) = [line for line in result.stderr.splitlines() if "not compared" in line]
    assert line.startswith(f"lm-eval-ext: not compared: {TASK}: a and c had different prompts")


def test_if_nothing_can_be_compared_the_command_fails(tmp_path: Path) -> None:
    write(tmp_path, "a", 35)
    write(tmp_path, "c", 20, prompt="Another prompt")
    result = run("compare", tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.exception, DataError)
    assert result.stdout == ""


def test_the_option_that_helps_stands_behind_all_reasons_once(tmp_path: Path) -> None:
    for name, prompt in (("a", ""), ("b", ""), ("c", "Another"), ("d", "A third")):
        write(tmp_path, name, 20, prompt=prompt)
    result = run("compare", tmp_path)
    lines = [line for line in result.stderr.splitlines() if "not compared" in line]
    assert ["--across-settings" in line for line in lines] == [False, True]


def test_the_hint_is_the_whole_command_which_then_compares(tmp_path: Path) -> None:
    """A user pastes what stands behind the reason, with the options that were given."""
    folder = tmp_path / "my results"
    write(folder, "a", 35)
    write(folder, "c", 20, prompt="Another prompt")
    options = ("--tasks", TASK, "--by", "type", "--format", "csv")
    refused = str(run("compare", folder, *options).exception)
    command = refused.partition("to compare models with their settings: lm-eval-ext ")[2]
    assert command == shlex.join(["compare", str(folder), *options, "--across-settings"])
    result = run(*shlex.split(command))
    assert result.exit_code == 0, result.output


def test_two_models_of_different_prompts_have_the_same_reason(tmp_path: Path) -> None:
    """Neither of them is the one that differs from most."""
    write(tmp_path, "a", 35)
    write(tmp_path, "c", 20, prompt="Another prompt")
    scores = overview(read_models([tmp_path]))
    assert list(scores["standing"]) == ["untested", "untested"]
    reason = "no other model has the same settings, data and version (different prompts)"
    assert list(scores["untested"]) == [reason, reason]


def test_where_each_model_has_its_own_settings_they_are_named_with_the_models(
    tmp_path: Path,
) -> None:
    for name, length in (("a", 256), ("b", 128), ("c", 64)):
        file = write(tmp_path, name, 35)
        change_length(file, length)
    scores = overview(read_models([tmp_path]))
    (reason,) = set(scores["untested"])
    assert "than most" not in reason
    assert "(a: max_gen_toks 256; b: max_gen_toks 128; c: max_gen_toks 64)" in reason


def test_a_model_with_other_settings_than_two_others_names_them(tmp_path: Path) -> None:
    """The page, the terminal and LaTeX show this reason."""
    for name, length in (("a", 256), ("b", 256), ("c", 64)):
        change_length(write(tmp_path, name, 35), length)
    scores = overview(read_models([tmp_path])).set_index("model")
    settings = "a, b: max_gen_toks 256; c: max_gen_toks 64"
    reason = f"other settings, data or version than most ({settings})"
    assert scores.loc["c", "untested"] == reason
    assert scores.loc["c", "is_testable_across_settings"]
    assert not scores.loc["a", "is_testable_across_settings"]


def test_of_two_pairs_with_their_own_settings_neither_is_most(tmp_path: Path) -> None:
    for name, length in (("a", 256), ("b", 256), ("c", 64), ("d", 64)):
        change_length(write(tmp_path, name, 35), length)
    scores = overview(read_models([tmp_path])).set_index("model")
    settings = "a, b: max_gen_toks 256; c, d: max_gen_toks 64"
    reason = f"other settings, data or version than the 2 models that are compared ({settings})"
    assert list(scores["untested"]) == ["", "", reason, reason]


def test_where_no_model_has_samples_all_have_that_reason(tmp_path: Path) -> None:
    """Settings that differ, too, would not be the reason why nothing is tested."""
    for name, length in (("a", 256), ("b", 256), ("c", 64)):
        file = write(tmp_path, name, 35)
        change_length(file, length)
        for samples in file.parent.glob("samples_*"):
            samples.unlink()
    scores = overview(read_models([tmp_path]))
    assert list(scores["untested"]) == [NO_SAMPLES] * 3


def test_show_names_the_command_that_tests_models_with_their_settings(tmp_path: Path) -> None:
    """It stands on one line, however long, so that it can be copied."""
    folder = tmp_path / ("a long name " * 8).strip()
    other_task = "cogs_mini_id"
    for name, prompt in (("a", ""), ("c", "Another prompt")):
        write(folder, name, 35, prompt=prompt)
        write_run(folder / f"{name}-id", name, other_task, answered_rows(40, 30))
    lines = run("show", folder).stdout.splitlines()
    expected = shlex.join(["lm-eval-ext", "compare", str(folder), "--tasks", TASK])
    assert f"{expected} --across-settings" in lines


@pytest.mark.parametrize("format_", ["text", "markdown", "latex"])
def test_every_format_says_that_settings_differ(tmp_path: Path, format_: str) -> None:
    for name, length in (("a", 256), ("b", 64), ("c", 64)):
        change_length(write(tmp_path, name, 35), length)
    shown = run("compare", tmp_path, "--across-settings", "--format", format_).stdout
    plain = " ".join(shown.replace("\\", "").split())
    assert (
        "models are compared with their settings (a: max_gen_toks 256; b, c: max_gen_toks 64)"
        in plain
    )


def test_the_table_of_all_models_in_latex_says_that_settings_differ(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name, length in (("a", 256), ("b", 64)):
        change_length(write(results, name, 35), length)
    run("leaderboard", results, "-o", tmp_path / "models.tex")
    plain = (tmp_path / "models.tex").read_text().replace("\\", "")
    assert "(a: max_gen_toks 256; b: max_gen_toks 64)" in plain


def write_clustered(folder: Path, name: str, wrong: Collection[int]) -> None:
    """Write results of a model on forty documents from eight clusters."""
    samples: list[dict[str, Any]] = []
    for number, row in enumerate(answered_rows(40, 40)):
        doc = {**row["doc"], "type": f"t{number % 8}"}
        samples.append({**row, "doc": doc, "score": float(number not in wrong)})
    write_run(folder / name, name, TASK, samples)


WRONG_OF_B = (12, 14, 22, 26, 31, 32, 35, 37)
"""The interval of a less b, if a has 0 and 21 wrong, is above 0, but p is .0625."""


@pytest.mark.parametrize("format_", ["text", "markdown", "latex"])
def test_a_test_that_disagrees_with_the_interval_is_explained(tmp_path: Path, format_: str) -> None:
    write_clustered(tmp_path, "a", (0, 21))
    write_clustered(tmp_path, "b", WRONG_OF_B)
    shown = " ".join(run("compare", tmp_path, "--format", format_).stdout.split())
    assert "a less b: interval and p disagree at the border" in shown


def test_a_test_that_agrees_with_the_interval_needs_no_note(tmp_path: Path) -> None:
    write_clustered(tmp_path, "a", ())
    write_clustered(tmp_path, "b", range(20))
    assert "disagree" not in run("compare", tmp_path).stdout


def test_the_legend_says_why_a_model_alone_in_its_column_has_no_mark(tmp_path: Path) -> None:
    write(tmp_path, "a", 35)
    write(tmp_path, "b", 5)
    write_run(tmp_path / "a-lieder", "a", "lieder_mini", answered_rows(40, 30), metric="direct")
    shown = " ".join(run("show", tmp_path).stdout.split())
    assert "no mark: significantly beaten, or the only model in its column, so not tested" in shown


def test_a_table_of_one_model_has_no_legend(tmp_path: Path) -> None:
    write(tmp_path, "a", 35)
    write_run(tmp_path / "a-lieder", "a", "lieder_mini", answered_rows(40, 30), metric="direct")
    assert "no mark" not in run("show", tmp_path).stdout


def test_a_value_that_is_refused_an_interval_is_marked_in_every_table(tmp_path: Path) -> None:
    """Also that of a model alone: nothing else in the overview says how little it stands on."""
    results = tmp_path / "results"
    write_run(results, "a", TASK, answered_rows(5, 5))
    (row,) = overview(read_models([results])).to_dict("records")
    assert row["standing"] == "untested"
    assert row["untested"] == row["why"] == "no interval from 5 generalization types, fewer than 6"
    run("leaderboard", results, "-o", tmp_path / "models.tex")
    assert "1.000\\rlap{$^{?}$}" in (tmp_path / "models.tex").read_text()


def change_length(file: Path, length: int) -> None:
    """Let a results file say how many tokens an answer could have."""
    content = json.loads(file.read_text())
    content["configs"][TASK]["generation_kwargs"] = {"max_gen_toks": length}
    file.write_text(json.dumps(content))


def test_printed_commands_name_the_folder_that_the_user_gave(tmp_path: Path) -> None:
    folder = tmp_path / "my results"
    write(folder, "a", 35)
    shown = " ".join(run("show", folder).stdout.split())
    assert f"lm-eval-ext samples '{folder}' --task {TASK} --wrong" in shown


@pytest.mark.parametrize("option", ["--task", "--tasks"])
@pytest.mark.parametrize("command", ["show", "samples"])
def test_commands_take_both_spellings_of_an_option(
    tmp_path: Path, command: str, option: str
) -> None:
    write(tmp_path, "a", 35)
    result = run(command, tmp_path, option, TASK)
    assert result.exit_code == 0, result.output


def test_samples_of_sql_name_the_command_that_explains_them(tmp_path: Path) -> None:
    file = write(tmp_path, "a", 35)
    (samples,) = file.parent.glob("samples_*")
    logged = [json.loads(line) for line in samples.read_text().splitlines()]
    for sample in logged:
        sample[VERDICT] = {"status": "wrong", "reason": "1 instead of 2"}
    samples.write_text("".join(json.dumps(sample) + "\n" for sample in logged))
    shown = run("samples", tmp_path, "--wrong").stdout
    document = logged[35]["doc"]["id"]
    expected = f"sql explain --results {file.parent} --task {TASK} --model a --doc {document}"
    assert expected in shown


@pytest.mark.parametrize("status", ["correct", "prediction_error", "no_query"])
def test_only_a_wrong_result_names_the_command_that_explains_it(
    tmp_path: Path, status: str
) -> None:
    """There are no smallest rows that differ where nothing was returned, or the same."""
    file = write(tmp_path, "a", 35)
    (samples,) = file.parent.glob("samples_*")
    logged = [json.loads(line) for line in samples.read_text().splitlines()]
    for sample in logged:
        sample[VERDICT] = {"status": status}
    logged[3][VERDICT] = {"status": "wrong"}
    samples.write_text("".join(json.dumps(sample) + "\n" for sample in logged))
    first, wrong = [logged[number]["doc"]["id"] for number in (0, 3)]
    assert "sql explain" not in run("samples", tmp_path, "--id", first).stdout
    assert f"--doc {wrong}\n" in run("samples", tmp_path).stdout


def test_a_missing_database_comes_with_its_remedy(tmp_path: Path) -> None:
    file = write_run(tmp_path, "a", "magnifico_desc", answered_rows(8, 4), metric="sql_failure")
    content = json.loads(file.read_text())
    metadata = content["configs"]["magnifico_desc"]["metadata"]
    metadata[NOT_SCORABLE] = {"database_missing": ["x-1"]}
    file.write_text(json.dumps(content))
    shown = " ".join(run("show", tmp_path).stdout.split())
    assert "not scored: 1 example, database_missing (x-1); name a folder that has all" in shown


def test_a_reason_stands_once_with_its_models_and_columns() -> None:
    reasons = [("why", "a", "one"), ("why", "a", "two"), ("why", "b, chat", "one"),
               ("why", "c", "one"), ("other", "c", "two")]  # fmt: skip
    notes = ["a (one, two); b, chat; c (one): why", "c (two): other"]
    assert list(grouped_by_model(reasons)) == notes
    assert list(grouped_by_model(reasons, total=4)) == ["why", notes[1]]


def test_three_systems_have_their_differences_in_latex(tmp_path: Path) -> None:
    """The best stands first, as on the terminal; a sign says that lower is better there."""
    for name, right in (("a", 20), ("b", 38), ("c", 2)):
        write(tmp_path, name, right)
    table = run("compare", tmp_path, "--format", "latex").stdout
    values, differences = table.split(r"\end{table}", 1)
    order = [values.index(f"\n{name} & ") for name in "bac"]
    assert order == sorted(order)
    assert " & diff & 95 \\% & p & p (Holm) \\\\" in differences
    assert differences.count(r"\quad less ") == 3
    assert "differences}" in differences


def test_notes_are_a_list_in_markdown() -> None:
    assert markdown([("one\ntwo", (), ())]) == "- one\n- two\n"
    assert markdown([("title", ("a",), [["b"]])]).startswith("title\n\n| a |")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("pos_neg_s>pos_pos_s", "pos_neg_s\n>pos_pos_s"),
        ("the dog: no dog, a dog > a dog, a dog", "the dog: no\ndog, a dog\n> a dog, a\ndog"),
        ("a > b", "a > b"),
        (">" * 30, f">\n{'>' * 29}"),
    ],
)
def test_a_long_comparison_breaks_before_its_sign(name: str, lines: str) -> None:
    assert broken(name, 12) == lines


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"pretrained": "/home/me/q15", "dtype": "float32"}, "pretrained=q15, dtype=float32"),
        ("pretrained=./models/q15,dtype=float32", "pretrained=q15, dtype=float32"),
        ("path=examples/demo/responses/a", "path=a"),
        ("pretrained=org/name", "pretrained=org/name"),
        ("base_url=http://localhost:8000/v1/completions", "base_url=http://localhost:8000/v1/"
         "completions"),
        (None, ""),
    ],
)  # fmt: skip
def test_arguments_on_the_page_have_no_folders(arguments: object, shown: str) -> None:
    assert _arguments_text(arguments) == shown


@pytest.mark.parametrize("label", ["", "samples: "])
def test_a_command_of_any_length_can_be_copied(label: str) -> None:
    command = (
        f"{label}lm-eval-ext samples a_long_folder_of_results --task magnifico_own_desc --by x"
    )
    note = f"{command} --wrong"
    assert text([note_section([note])], width=80).splitlines() == [note]


def test_a_diagnostic_has_no_interval_and_needs_no_reason(tmp_path: Path) -> None:
    """It is counted in the answers of a run; other measures keep their interval."""
    write_clustered(tmp_path, "a", (0, 21))
    results = read_models([tmp_path])[0].runs[TASK]
    estimate = Estimate(0.95, low=0.8, high=1.0)
    measure = question_of(results, "exact_match").measure
    assert shown_estimate(measure, estimate) == estimate
    diagnostic = measure.model_copy(update={"diagnostic": True})
    without_interval = shown_estimate(diagnostic, estimate)
    assert (without_interval.value, without_interval.low) == (estimate.value, None)
    assert reason_for(results, diagnostic, without_interval) == ""


@pytest.fixture
def of_three_models(tmp_path: Path) -> Path:
    """Results of two models on a task, the worse first, and of one on another task."""
    folder = tmp_path / "results"
    write(folder, "a", 5)
    write(folder, "b", 35)
    write_run(folder / "recorded", "recorded", "cogs_mini_id", answered_rows(40, 30))
    write_run(folder / "a-lieder", "a", "lieder_mini", answered_rows(40, 30))
    write_run(folder / "b-lieder", "b", "lieder_mini", answered_rows(40, 30))
    return folder


def test_show_and_latex_have_the_best_model_first(of_three_models: Path, tmp_path: Path) -> None:
    """Both state the order of the page, whatever the order of files."""
    shown = run("show", of_three_models).stdout
    assert [line[0] for line in shown.splitlines()[2:4]] == ["b", "a"]
    run("leaderboard", of_three_models, "-o", tmp_path / "models.tex")
    source = (tmp_path / "models.tex").read_text()
    assert source.index("\nb & ") < source.index("\na & ")
    assert f"% order of the models: {ROW_ORDER}\n" in source


def test_of_equal_models_the_name_decides(tmp_path: Path) -> None:
    """Without that, the page and the terminal would have them in two orders."""
    for name in ("c", "a", "B"):
        write(tmp_path, name, 20)
    assert ranked_models(overview_columns(read_models([tmp_path]))) == ["a", "B", "c"]


def test_a_model_without_a_row_is_named_everywhere(of_three_models: Path, tmp_path: Path) -> None:
    """A recorded model with a task that stands for no benchmark is not dropped without a word."""
    note = "without results of these: recorded"
    assert note in run("show", of_three_models).stdout
    run("leaderboard", of_three_models, "-o", tmp_path / "models.tex")
    assert note in (tmp_path / "models.tex").read_text()
    run("leaderboard", of_three_models, "-o", tmp_path / "site", "--samples", 0)
    assert note in (tmp_path / "site" / "index.html").read_text()
