"""How many items show a difference: from runs whose spread is known, and bad input."""

import json
import math
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.made_runs import make
from support.power_commands import power_command, unwrapped
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.compare.comparison import compare
from lm_eval_ext.compare.power import items_key, needed
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.stats.power import clusters_needed, stated_variance

QUESTION: dict[str, Any] = {"task": "lieder_mini", "difference": 0.05}


def test_the_spread_of_several_models_is_the_mean_over_all_pairs(runs: Path) -> None:
    """The mean is one of variances, not their sum; documents are counted by cluster."""
    (table,) = compare(read_models([runs]), ["lieder_mini"], ScoreQuery()).tables
    variances = [(pair.stderr or 0) ** 2 for pair in table.pairs]
    assert len(set(variances)) == 3
    three_models = needed([runs], **QUESTION)
    variance = three_models.spread**2
    assert variance == pytest.approx(16 * sum(variances) / 3)
    assert three_models.clusters is not None
    assert three_models.clusters == clusters_needed(0.05, variance)
    assert three_models.documents == 3 * three_models.clusters
    assert (three_models.metric, three_models.unit) == ("direct", "item")
    assert "3 models" in three_models.source
    two_models = needed([runs / "good", runs / "poor"], **QUESTION)
    assert two_models.spread**2 == pytest.approx(16 * variances[0])
    seven_models = needed([runs], **QUESTION, models=7)
    assert seven_models.clusters == clusters_needed(0.05, variance, alpha=0.05 / 21)


def test_a_model_without_a_value_does_not_shorten_the_pilot(
    runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was counted as measured, and cut the others to the few documents that it had answered."""
    for name in ("good", "poor"):
        shutil.copytree(runs / name, tmp_path / name)
    without_value = shutil.copytree(runs / "good", tmp_path / "without")
    for file in without_value.rglob("results_*.json"):
        content = json.loads(file.read_text().replace('"good"', '"without"'))
        content["results"]["lieder_mini"]["direct,none"] = math.nan
        file.write_text(json.dumps(content))
    for file in without_value.rglob("samples_lieder_mini*"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[: len(lines) // 2]))
    two_models = needed([runs / "good", runs / "poor"], **QUESTION)
    assert needed([tmp_path], **QUESTION) == two_models
    assert "left out: without, whose direct is N/A" in caplog.text


def test_a_difference_beyond_the_range_is_refused_without_a_pilot() -> None:
    """A difference of 5, meant as 5 points, got a number of items."""
    with pytest.raises(LmEvalExtError, match=r"direct goes from 0 to 1; 5 points are 0.05$"):
        needed([], task="lieder_fresh_base", difference=5)


def test_stated_rates_need_no_runs() -> None:
    rates: dict[str, Any] = {"difference": 0.05, "rate": 0.8}
    items = needed([], task="lieder_base", **rates, icc=0.2, per_cluster=3)
    assert (items.clusters, items.documents, items.unit) == (469, 1407, "item")
    assert needed([], task="lieder_base", **rates, per_cluster=1.5).documents
    foreign_task = needed([], task="mmlu", **rates)
    assert foreign_task.unit == "cluster"
    assert foreign_task.documents == foreign_task.clusters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0}, "--difference: Input should be greater than 0, got 0"),
        ({"power": 1}, "--power: Input should be less than 1, got 1"),
        ({"models": 1}, "--models: Input should be greater than or equal to 2"),
        ({"per_cluster": 0}, "--per-cluster: Input should be greater than or equal to 1"),
        (
            {"rate": None},
            "give results of a pilot run; or --rate, and --icc and --per-cluster if you know them",
        ),
        ({"rate": 0.99}, "0.965 and 1.015 are not both from 0 to 1"),
        ({"difference": 5}, "direct goes from 0 to 1. --rate 0.8 is the mean of two rates"),
        ({"difference": 5}, "5 points are 0.05"),
        (
            {"per_cluster": 12},
            "--per-cluster 12 is not legal: lieder_base has 3 documents per item (48 documents, "
            "16 items); leave it out",
        ),
        ({"metric": "nope"}, "lieder_base has no metric nope; rates: direct, "),
    ],
    ids=str,
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    valid = {"task": "lieder_base", "difference": 0.05, "rate": 0.8, "icc": 0.2}
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([], **{**valid, **options})


def test_a_pilot_needs_two_models(runs: Path) -> None:
    with pytest.raises(LmEvalExtError, match="no task lieder_mini is in the results of two models"):
        needed([runs / "good"], **QUESTION)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "lieder_two"}, "no task lieder_two is in the results of two models"),
        ({"task": "cogs_mini_[gi]*"}, "is cogs_mini_gen, cogs_mini_id; name one of them"),
        ({"metric": "nope"}, "lieder_mini has no metric nope; available: direct"),
        (
            {"difference": 5},
            "--difference 5 is not legal; direct goes from 0 to 1; 5 points are 0.05",
        ),
        ({"metric": "undefined"}, "lieder_mini: nothing varies"),
        ({"per_cluster": 3}, "give results of a pilot run; or --rate"),
    ],
    ids=str,
)
def test_a_pilot_without_an_answer_is_refused(
    runs: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([runs], **{**QUESTION, **options})


def test_the_command_prints_a_summary_or_json(runs: Path) -> None:
    output = power_command(runs, "lieder_mini", "--difference", "0.2")
    title, needs, available, shows, *_ = output.splitlines()
    assert title == "lieder_mini, direct: two models that differ by 0.2"
    match = re.fullmatch(
        r"needed: (\d+) items, \d+ documents; power 0.8, level 0.05, 2 models", needs
    )
    assert match
    assert available.startswith("the task has: 16 items (each is a noun with all its sentences)")
    assert re.fullmatch(r"16 items show: a difference of 0\.1\d+ or more", shows)
    content = json.loads(power_command(runs, "lieder_mini", "--difference", "0.2", "--json"))
    assert content["clusters"] == int(match[1])


def test_a_difference_that_the_task_cannot_show_has_no_number_of_items(runs: Path) -> None:
    """No output asks for 415 generalization types where 21 exist."""
    output = power_command(runs, "cogs_mini_gen", "--difference", "0.01")
    assert "needed" not in output
    assert "this task cannot show it: it has too few generalization types" in output
    assert "the task has: 10 generalization types" in output
    assert "a pilot of 10 generalization types is small" in " ".join(output.split())


def test_a_trial_does_not_show_how_many_items_a_task_has(runs: Path, tmp_path: Path) -> None:
    """It takes documents from as many items as possible, so their shares differ."""
    for name in ("good", "poor"):
        shutil.copytree(runs / name, tmp_path / name)
        for path in (tmp_path / name).rglob("results_*.json"):
            content = json.loads(path.read_text())
            counts = content["n-samples"].get("lieder_mini")
            if counts:
                counts["original"] = 2 * counts["effective"]
                content["config"]["limit"] = counts["effective"]
                path.write_text(json.dumps(content))
    output = " ".join(power_command(tmp_path, "lieder_mini", "--difference", "0.2").split())
    assert "needed: " in output
    assert "the task has: " not in output
    assert "a trial of 48 of 96 documents, which does not show how many items" in output
    assert "a larger --limit" not in output, "LIEDER's items can be drawn"
    pilot = [str(tmp_path / "good"), str(tmp_path / "poor")]
    refused = CliRunner().invoke(app, ["power", "lieder_mini", *pilot])
    message = "the number of items of lieder_mini is not known (a trial does not show it)"
    assert message in str(refused.exception)


def test_a_pilot_may_have_two_prompts(changed: Callable[..., Path], runs: Path) -> None:
    def change_prompt(_number: int, sample: dict[str, Any]) -> dict[str, Any]:
        return {**sample, "prompt_hash": "another"}

    other_prompts = changed(edit_row=change_prompt)
    pilot = ["lieder_mini", str(other_prompts), str(runs / "poor"), "--difference", "0.2"]
    refused = CliRunner().invoke(app, ["power", *pilot])
    assert "--across-settings" in str(refused.exception), refused.output
    done = CliRunner().invoke(app, ["power", *pilot, "--across-settings"])
    assert "needed: " in done.output, done.exception


def test_items_show_the_difference_that_needs_them() -> None:
    """The two questions are each other's inverse."""
    stated = {"task": "lieder_fresh_base", "rate": 0.8, "icc": 0.2, "per_cluster": 3}
    clusters = needed([], **stated, difference=0.05).clusters
    assert clusters is not None
    shows = needed([], **stated, items=clusters).shows
    assert shows == pytest.approx(0.05, rel=0.01)


def test_without_a_number_of_items_power_takes_those_of_the_task(runs: Path) -> None:
    output = power_command(runs, "lieder_mini")
    assert output.startswith("lieder_mini, direct: power 0.8, level 0.05, 2 models\n")
    with_items = power_command(runs, "lieder_mini", "--items", "16")
    assert output == with_items
    stated = needed([], task="lieder_base", rate=0.8, icc=0.2, per_cluster=3)
    assert stated.items == 16
    assert stated.shows is not None
    with pytest.raises(LmEvalExtError, match="items of my_task is not known; give --items"):
        needed([], task="my_task", rate=0.8)
    with pytest.raises(LmEvalExtError, match=r"has 4 items, fewer than 6, .* give --items"):
        needed([], task="discourse_entities_mini", rate=0.8)


COGS_PILOT = "cogs_mini_gen"


def power_without_pilot(*words: str) -> str:
    """Return the output of ``lm-eval-ext power`` without results, or its error."""
    result = CliRunner().invoke(app, ["power", *words])
    return result.output + str(result.exception or "")


def commands_in(output: str) -> list[list[str]]:
    """Return the words of the ``power`` commands that an output tells users to copy."""
    commands = []
    for line in output.splitlines():
        command = line.strip()
        if command.startswith("lm-eval-ext power "):
            commands.append(shlex.split(command)[1:])
    return commands


def test_a_task_with_too_few_items_names_the_command_that_gives_the_number(runs: Path) -> None:
    """The command can be pasted, and its output has the number and how to evaluate so many."""
    output = power_command(runs, "lieder_mini", "--difference", "0.05")
    assert "this task cannot show it: it has too few items" in output
    (command,) = commands_in(output)
    assert command[1] == "lieder_fresh_base"
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.exception
    match = re.search(r"needed: (\d+) items", result.output)
    assert match, result.output
    assert f"""--metadata '{{"lieder_items": {match[1]}}}'""" in result.output
    assert "on lieder_mini: another task with items of the same kind" in unwrapped(result.output)


def test_a_task_with_fixed_clusters_names_no_number_but_a_command(runs: Path) -> None:
    output = power_command(runs, COGS_PILOT, "--difference", "0.01")
    assert "its generalization types are fixed" in output
    assert "other tasks may have more: lm-eval-ext tasks cogs" in output
    (command,) = commands_in(output)
    assert command[-2:] == ["--items", "20"]
    result = CliRunner().invoke(app, command)
    assert "20 generalization types show: a difference of" in result.output, result.exception


def test_a_trial_of_fixed_clusters_says_that_more_documents_help(
    runs: Path, tmp_path: Path
) -> None:
    """A number of types that do not exist does not stand there without a word."""
    for name in ("good", "poor"):
        shutil.copytree(runs / name, tmp_path / name)
        for path in (tmp_path / name).rglob("results_*.json"):
            content = json.loads(path.read_text())
            counts = content["n-samples"].get(COGS_PILOT)
            if counts:
                counts["original"] = 2 * counts["effective"]
                content["config"]["limit"] = counts["effective"]
                path.write_text(json.dumps(content))
    output = unwrapped(power_command(tmp_path, COGS_PILOT, "--difference", "0.01"))
    assert "if the task has fewer generalization types: evaluate more documents of each" in output


@pytest.mark.parametrize("task", ["cogs_fresh_gen", "cogs_mini_fresh_gen"])
def test_a_fresh_lexicon_does_not_add_types(task: str) -> None:
    """COGS's fresh tasks draw words; only LIEDER's draw items."""
    assert items_key(task) == ""
    stated = ["--rate", "0.5", "--icc", "0.2", "--difference", "0.01"]
    output = power_without_pilot(task, *stated)
    assert "this task cannot show it: it has too few generalization types" in output
    assert "needed" not in output


@pytest.mark.parametrize("pilot", ["", "lieder_mini"])
def test_a_pilot_may_be_another_task_of_the_same_items(runs: Path, pilot: str) -> None:
    """The numbers are those of the pilot's own task, for a task that draws its items."""
    other_task = needed([runs], task="lieder_fresh_base", difference=0.05, pilot=pilot)
    same_task = needed([runs], **QUESTION)
    assert (other_task.clusters, other_task.spread) == (same_task.clusters, same_task.spread)
    assert (other_task.available, other_task.items_key) == (200, "lieder_items")
    assert other_task.is_enough
    assert not same_task.is_enough


@pytest.mark.parametrize(
    ("task", "pilot", "message"),
    [
        ("lieder_base", "lieder_mini", "lieder_base does not draw its items, so its pilot is"),
        ("cogs_gen", "cogs_mini_gen", "cogs_gen does not draw its items"),
        ("lieder_fresh_base", "cogs_mini_gen", "it has other clusters than the items"),
        ("lieder_fresh_two", "lieder_mini", "it has no metric comparisons_with_two"),
        ("lieder_fresh_base", "lieder_diff", "no task lieder_diff is in the results"),
    ],
)
def test_a_pilot_of_another_kind_is_refused(
    runs: Path, task: str, pilot: str, message: str
) -> None:
    with pytest.raises(LmEvalExtError, match=re.escape(message)):
        needed([runs], task=task, difference=0.05, pilot=pilot)


def test_of_two_possible_pilots_the_user_chooses(runs: Path, tmp_path: Path) -> None:
    for name in ("good", "poor"):
        shutil.copytree(runs / name, tmp_path / name)
        for path in (runs / name).rglob("results_*.json"):
            copy = tmp_path / name / path.relative_to(runs / name)
            text = path.read_text().replace("lieder_mini", "lieder_base")
            copy.with_name(copy.name.replace("results_2", "results_3")).write_text(text)
    with pytest.raises(LmEvalExtError, match=r"give --pilot lieder_(mini|base) or --pilot lieder_"):
        needed([tmp_path], task="lieder_fresh_base", difference=0.05)


def test_a_pilot_of_one_model_says_what_to_do(runs: Path) -> None:
    with pytest.raises(LmEvalExtError, match=r"needs two models on one task; without PATH, power"):
        needed([runs / "good"], task="lieder_fresh_base", difference=0.05)


def test_a_pilot_of_another_task_is_pointed_to_the_task_that_takes_it(runs: Path) -> None:
    message = "lieder_fresh_diff takes that of another task with items of its kind"
    with pytest.raises(LmEvalExtError, match=message):
        needed([runs], task="lieder_diff", difference=0.05)


@pytest.mark.parametrize("group", ["lieder", "lieder_fresh", "magnifico"])
@pytest.mark.parametrize("has_pilot", [True, False])
def test_a_group_is_named_with_its_tasks(runs: Path, group: str, *, has_pilot: bool) -> None:
    paths = [runs / "good", runs / "poor"] if has_pilot else []
    with pytest.raises(LmEvalExtError, match=f"{group} is {group}_.*, .*; name one of them"):
        needed(paths, task=group, difference=0.05)


def test_without_a_pilot_the_spread_is_that_of_published_models() -> None:
    """Nobody has to know a rate or a correlation to plan a comparison on LIEDER."""
    output = power_without_pilot("lieder_fresh_base", "--difference", "0.05")
    match = re.search(r"needed: (\d+) to (\d+) items, up to (\d+) documents", output)
    assert match, output
    least, most, documents = map(int, match.groups())
    assert least == clusters_needed(0.05, 0.077**2)
    assert most == clusters_needed(0.05, 0.125**2)
    assert documents == 3 * most
    assert f"""--metadata '{{"lieder_items": {most}}}'""" in output
    assert "measured: 6 pairs of published models" in unwrapped(output)
    (command,) = commands_in(power_without_pilot("lieder_base", "--difference", "0.05"))
    assert command == ["power", "lieder_fresh_base", "--difference", "0.05"]


def test_without_a_measured_spread_the_error_names_the_steps_of_a_pilot() -> None:
    output = power_without_pilot("magnifico_desc", "--difference", "10")
    assert "magnifico_desc, relative_performance: give results of a pilot run" in output
    assert "lm_eval --tasks magnifico_desc --limit 96 --log_samples" in output
    assert "lm-eval-ext power magnifico_desc results" in output


def test_a_rate_without_a_correlation_takes_the_documented_range() -> None:
    stated: dict[str, Any] = {"task": "mmlu", "difference": 0.05, "rate": 0.8, "per_cluster": 3}
    both = needed([], **stated)
    assert both.least_clusters == needed([], **stated, icc=0).clusters
    assert both.clusters == needed([], **stated, icc=0.3).clusters
    assert "intra-cluster correlation 0 to 0.3" in both.source
    assert needed([], **stated, icc=0.2).least_clusters is None


MAGNIFICO_RATE = ("magnifico_desc", "--rate", "0.5", "--difference", "0.1")


def test_a_rate_does_not_invent_clusters() -> None:
    """Documents divided by --per-cluster would be 1,039 databases, where 49 exist."""
    output = power_without_pilot(*MAGNIFICO_RATE, "--per-cluster", "4")
    assert "the task has: 49 databases" in output
    assert "49 databases show: a difference of" in output
    assert "this task cannot show it" in output
    assert "1,039" not in output
    (command,) = commands_in(output)
    assert command[1] == "magnifico_desc"
    assert command[-2:] == ["--items", "98"], "what more data would show"
    assert "more documents of each" not in output, "clusters of unequal size make it no smaller"


def test_more_documents_of_each_are_advised_only_where_the_task_has_them() -> None:
    stated = ("conceptual_glue", "--rate", "0.5", "--icc", "0.2", "--difference", "0.01")
    output = power_without_pilot(*stated, "--per-cluster", "4")
    assert "more documents of each make the spread smaller" in output
    (command,) = commands_in(output)
    whole_task = power_without_pilot(*command[1:])
    assert "documents per concept 17.6, as many as the task has" in unwrapped(whole_task)
    all_documents = power_without_pilot(*stated, "--per-cluster", "17.6")
    assert "more documents of each" not in all_documents
    assert "are fixed, so only a larger difference can be shown" in all_documents


def test_a_rate_takes_the_documents_of_the_task() -> None:
    stated: dict[str, Any] = {"task": "lieder_base", "rate": 0.8, "difference": 0.3}
    assert needed([], **stated) == replace(
        needed([], **stated, per_cluster=3), source=needed([], **stated).source
    )


def test_a_task_of_one_type_has_its_documents_as_clusters() -> None:
    """Intervals on COGS's test set in distribution are about documents."""
    estimate = needed([], task="cogs_unmodified_id", rate=0.9, difference=0.03)
    assert (estimate.unit, estimate.available) == ("document", 3000)
    assert estimate.is_enough


@pytest.mark.parametrize(
    ("task", "metric"),
    [
        ("magnifico_desc", "sql_execution_accuracy/novel"),
        ("lieder_base", "direct"),
        ("diner_mini_name", "recipe_exact_match"),
        ("conceptual_glue", "score/concept"),
        ("cogs_overestimation_fresh", "exact_match/with"),
    ],
)
def test_a_rate_says_which_metric_it_is_about(task: str, metric: str) -> None:
    """Where the headline is no rate, it is about another metric, by name."""
    assert needed([], task=task, rate=0.5).metric == metric


def test_a_ratio_is_refused_with_a_command_that_works() -> None:
    """Relative performance is a ratio of two rates in percent: one rate gives no spread of it."""
    ratio = ["--metric", "relative_performance", "--rate", "0.5", "--difference", "10"]
    refusal = power_without_pilot("magnifico_desc", *ratio)
    assert "relative_performance is no rate of documents" in refusal
    command = shlex.split(refusal.partition("lm-eval-ext ")[2])
    assert command[:4] == ["power", "magnifico_desc", "--metric", "sql_execution_accuracy/novel"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.exception
    assert "two models that differ by 0.1" in result.output


def test_between_the_smallest_and_the_largest_spread_a_pilot_decides() -> None:
    output = power_without_pilot("cogs_unmodified_gen", "--rate", "0.5", "--difference", "0.1")
    assert (
        "this task may show it: needed are from 6 generalization types (6,000 documents) to more "
        "than its 21 (21,000 documents)"
    ) in output
    assert "at best and 0.386 at worst" in unwrapped(output)
    (command,) = commands_in(output)
    assert command[1:3] == ["cogs_unmodified_gen", "results"]
    assert set(command[3:]) == {"--metric", "exact_match", "--difference", "0.1"}


def test_the_correlation_is_that_of_real_models_on_the_task() -> None:
    """The card says what real models had, and the output whose it is."""
    output = unwrapped(power_without_pilot(*MAGNIFICO_RATE))
    assert "intra-cluster correlation 0 to 0.32 (real models on magnifico_mini" in output
    assert "this task may show it: needed are from 9 databases" in output
    assert "a pilot says which spread it is" in output
    assert "its 49 databases are of unequal size, and count as 23.5 of one size" in output


def test_a_metric_about_a_part_takes_the_documents_of_that_part() -> None:
    """One of MAGNIFICo's four forms has existing words."""
    options = ("--rate", "0.5", "--icc", "0", "--difference", "0.05")
    output = unwrapped(power_without_pilot("magnifico_desc", *options))
    metric = "sql_execution_accuracy/novel"
    assert f"the task has: 49 databases, 4,156 documents, of which {metric} counts 3,117" in output
    assert f"documents per database 63.6, as many as the task has that {metric} counts" in output
    match = re.search(r"needed: (\d+) databases, ([\d,]+) documents to run, of which", output)
    assert match
    to_run = int(match[2].replace(",", ""))
    assert to_run == math.ceil(int(match[1]) * 4156 / 49)
    structural = needed(
        [], task="cogs_unmodified_gen", rate=0.5, difference=0.1, metric="exact_match/lexical"
    )
    assert (structural.available, structural.counted_documents) == (18, 18_000)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (40, "--rate 40 is not legal: from 0 to 1; 40 % is 0.4"),
        (-1, "--rate -1 is not legal: from 0 to 1"),
    ],
)
def test_a_rate_in_percent_is_named(rate: float, message: str) -> None:
    with pytest.raises(LmEvalExtError, match=f"{re.escape(message)}$"):
        needed([], task="mmlu", rate=rate)


def test_a_recommended_command_repeats_the_options_of_the_question() -> None:
    question = ["--models", "7", "--power", "0.9", "--icc", "0", "--items", "12345678"]
    ratio = ["--metric", "relative_performance", "--rate", "0.5", "--difference", "10"]
    refusal = power_without_pilot("magnifico_desc", *ratio, *question)
    command = shlex.split(refusal.partition("lm-eval-ext ")[2])
    for option, value in zip(question[::2], question[1::2], strict=True):
        assert command[command.index(option) + 1] == value
    output = power_without_pilot(
        "cogs_unmodified_gen", "--rate", "0.5", "--icc", "0", "--difference", "0.001"
    )
    (command,) = commands_in(output)
    assert command[command.index("--icc") + 1] == "0"


@pytest.mark.parametrize("items", [20, 40])
def test_items_are_not_answered_by_the_same_command(runs: Path, items: int) -> None:
    output = power_command(runs, COGS_PILOT, "--difference", "0.01", "--items", str(items))
    assert f"{items} generalization types show: a difference of" in output
    assert "its generalization types are fixed" in output
    assert commands_in(output) == []


def test_more_items_for_one_cluster_are_at_least_those_of_an_interval() -> None:
    output = power_without_pilot("magnifico_multi_desc", "--rate", "0.5", "--difference", "0.01")
    (command,) = commands_in(output)
    assert command[-2:] == ["--items", "10"]
    assert "10 databases show" in power_without_pilot(*command[1:])


def test_a_ratio_without_a_value_names_a_metric_that_can_be_planned(tmp_path: Path) -> None:
    """A model without a right answer on the base forms has no relative performance."""
    make(tmp_path / "good", ["magnifico_mini"], seed=1, skill=0.9, name="good")
    make(tmp_path / "poor", ["magnifico_mini"], seed=2, skill=0, name="poor")
    with pytest.raises(LmEvalExtError) as refusal:
        needed([tmp_path], task="magnifico_mini", difference=10)
    message = str(refusal.value)
    assert "magnifico_mini, relative_performance: no standard error; poor: N/A" in message
    assert message.endswith("can be planned: --metric sql_execution_accuracy/novel")
    metric = "sql_execution_accuracy/novel"
    assert needed([tmp_path], task="magnifico_mini", difference=0.1, metric=metric).clusters


def test_a_rate_for_documents_of_many_scores_is_called_too_cautious() -> None:
    estimate = needed([], task="lieder_base", difference=0.05, rate=0.8, per_cluster=3)
    assert "Real models differ less: 0.077 to 0.125 per item" in estimate.source


def test_a_pilot_prints_the_correlation_that_gives_its_spread(runs: Path) -> None:
    """With --rate, --per-cluster and this --icc the spread is that of the pilot."""
    pilot = [runs / "good", runs / "poor"]
    from_pilot = needed(pilot, task=COGS_PILOT, difference=0.1)
    assert from_pilot.icc is not None
    (table,) = compare(read_models(pilot), [COGS_PILOT], ScoreQuery()).tables
    values = [figure.value or 0.0 for figure in table.figures.values()]
    variance = stated_variance((values[0], values[1]), from_pilot.icc, 50)
    assert variance == pytest.approx(from_pilot.spread**2)
    output = power_command(runs, COGS_PILOT, "--difference", "0.1")
    assert f"intra-cluster correlation: {from_pilot.icc:.2f} (for --icc)" in output
    assert needed(pilot, **QUESTION).icc is None, "documents are means of 15 comparisons"
