"""Reading results files and showing them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.asking import run_in
from support.commands import Command
from support.results_files import answered_rows, write_run

from lm_eval_ext.cli.task_list import task_rows
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.signature import config_digest
from lm_eval_ext.results.files import Run, read_results
from lm_eval_ext.results.grid import text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery, question_of, reason_for
from lm_eval_ext.results.show import tables
from lm_eval_ext.stats.statistics import Estimate


def a_file(folder: Path, name: str = "results_2026-01-01T00-00-00.json", **changes: Any) -> Path:
    """Write a results file of an older version, with a group."""
    metrics = {
        "direct/mean": 0.5, "direct/mean_stderr": 0.125, "direct/mean_stderr_stderr": "N/A",
        "relative/mean": 0.25, "relative/mean_stderr": "N/A", "direct/pos_neg_s>pos_pos_s": 0.75,
    }  # fmt: skip
    content = {
        "results": {
            "lieder_base": {
                "name": "lieder_base", "alias": "lieder_base", "sample_len": 46,
                **{f"{metric},none": value for metric, value in metrics.items()},
            },
            "lieder": {"name": "lieder", "alias": "lieder", " ": " "},
        },
        "configs": {
            "lieder_base": {"metadata": {"signature": {"task": "lieder_base", "seed": "7"}}}
        },
        "versions": {"lieder_base": "1.0"},
        "n-shot": {"lieder_base": 0},
        "n-samples": {"lieder_base": {"original": 48, "effective": 46}},
        "config": {"model": "hf", "limit": 46.0},
        "model_name": "org/a-model",
        "chat_template": "{{ messages }}",
        "chat_template_sha": "0123456789abcdef0",
        "lm_eval_version": "0.4.13",
        **changes,
    }  # fmt: skip
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def read(folder: Path, **changes: Any) -> Run:
    """Return the run of the only task; a group without scores is no run."""
    (file,) = read_results(a_file(folder, **changes))
    (run,) = file.runs
    return run


def foreign(task: str, values: dict[str, float], documents: int = 46) -> dict[str, Any]:
    """Return the parts of a results file that are about a task of another project."""
    counts = {task: {"original": documents, "effective": documents}}
    return {"results": {task: values}, "configs": {task: {}}, "n-samples": counts}


def current(
    folder: Path,
    name: str = "org/a-model",
    metrics: Mapping[str, float | str] | None = None,
    intervals: Mapping[str, object] | None = None,
) -> Path:
    """Write a results file of this version, with metrics of lieder_base."""
    values = {f"{key},none": value for key, value in (metrics or {"direct": 0.5}).items()}
    metadata = {
        "signature": {"task": "lieder_base"}, "benchmark": "lieder", "intervals": intervals or {},
    }  # fmt: skip
    entries = [{"metric": key.partition(",")[0], "unit": "share"} for key in values]
    configs = {"lieder_base": {"metadata": metadata, "metric_list": entries}}
    return a_file(folder, model_name=name, results={"lieder_base": values}, configs=configs)


def shown(*files: Path, tasks: Sequence[str] = (), width: int = 100, **query: Any) -> str:
    """Return the output of ``show``."""
    return text(tables(read_models(files), ScoreQuery(**query), tasks), width)


def words(*files: Path, **options: Any) -> str:
    """Return the words of :func:`shown`, with a space between them."""
    return " ".join(shown(*files, **options).split())


def test_a_run_has_scores_counts_and_a_signature(tmp_path: Path) -> None:
    run = read(tmp_path)
    assert (run.file.model, run.task) == ("org/a-model", "lieder_base")
    assert run.scores == {
        "direct/mean": Estimate(0.5, 0.125),
        "relative/mean": Estimate(0.25),
        "direct/pos_neg_s>pos_pos_s": Estimate(0.75),
    }
    assert run.documents == (46, 48)
    assert run.signature == (
        f"task:lieder_base|seed:7|version:1.0|config:{config_digest({})}|docs:46/48|shots:0"
        "|chat:0123456789ab|system:no|lm-eval:0.4.13"
    )
    several = read(tmp_path / "b", **foreign("t", {"acc,strict": 0.1, "acc,loose": 0.2}))
    assert set(several.scores) == {"acc,strict", "acc,loose"}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"results": 3}', "\x00", '{"results": {"t": []}}', "[" * 100_000,
        '{"results": {}, "config": null}', '{"results": {"t": {}}, "configs": {"t": []}}',
        '{"results": {"t": {}}, "configs": {"t": {}}, "n-samples": {"t": {"effective": "x"}}}',
        '{"results": {"t": {"m,none": 1}}, "configs": {"t": {"metadata": {"intervals": '
        '{"m,none": {"low": "x"}}}}}}',
    ],
)  # fmt: skip
def test_a_broken_results_file_is_one_line_and_the_others_still_show(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    current(tmp_path, "good")
    file = tmp_path / "results_2026-01-02T00-00-00.json"
    file.write_text(content)
    with pytest.raises(DataError, match="not a results file of lm-eval") as caught:
        read_results(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert "good" in shown(tmp_path)
    (line,) = caplog.messages
    assert str(caught.value) in line


HOSTILE = "\x1b[31mred\x1b]0;title\x07\n|two\u202e"


def test_hostile_text_reaches_no_terminal(tmp_path: Path, cli: Command) -> None:
    """A name in square brackets is no style of the table library either."""
    file = a_file(
        tmp_path, model_name=f"[red]m[/red]{HOSTILE}",
        results={HOSTILE: {f"[red]x[/red]{HOSTILE}/mean,none": 1.0}},
        configs={HOSTILE: {"metadata": {"signature": {"task": HOSTILE, "note": HOSTILE}}}},
        chat_template_sha=7,
    )  # fmt: skip
    done = cli("show", str(file), "--signatures")
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout) & set("\x1b\x07\u202e")
    assert "[red]m[/red]" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.count("|") > 4]
    for pair in line.split("|"):
        assert ":" in pair


def test_the_table_shows_the_headline_and_published_values(tmp_path: Path) -> None:
    file = current(tmp_path, metrics={"direct": 0.5, "direct/affirmative_negation": 0.25})
    table = words(file)
    assert "lieder_base · org/a-model · 46 documents evaluated / 48 of the task" in table
    assert "direct (headline) 0.500 0.500 direct/affirmative_negation 0.250 0.500" in table
    assert "published direct/" not in table
    table = words(file, metrics=("direct/affirmative_negation",))
    assert "published Accuracy, affirmative / negation: humans 0.938" in table


def test_the_table_of_an_older_file_shows_its_metrics(tmp_path: Path) -> None:
    table = words(a_file(tmp_path))
    assert "direct/mean (headline) 0.500" in table
    assert "direct/pos_neg_s>pos_pos_s 0.750" in table


def test_noted_intervals_are_shown(tmp_path: Path) -> None:
    """Too few clusters have no interval, and the table gives the reason."""
    intervals = {
        "direct,none": {
            "documents": 48, "clusters": 16, "low": 0.25, "high": 0.75, "method": "wilson",
        },
        "relative,none": {"documents": 9, "clusters": 3},
    }  # fmt: skip
    metrics = {"direct": 0.5, "direct_stderr": 0.125, "relative": 0.25}
    file = current(tmp_path, metrics=metrics, intervals=intervals)
    assert run_in(file, "lieder_base").scores == {
        "direct": Estimate(0.5, 0.125, 48, 16, 0, 0.25, 0.75, "wilson"),
        "relative": Estimate(0.25, documents=9, clusters=3),
    }
    table = words(file)
    assert "0.500 [0.250, 0.750]" in table
    assert "clustered by item" in table
    assert "relative: no interval from 3 items, fewer than 6" in table


@pytest.mark.parametrize(
    ("score", "limit", "expected"),
    [
        pytest.param(
            Estimate(50.0, 0.0, 20, 5),
            20,
            "no interval from 5 interpretations, fewer than 6",
            id="few clusters",
        ),
        pytest.param(
            Estimate(50.0, 0.0, 20, 1),
            None,
            "no interval from 1 interpretation, fewer than 6",
            id="one cluster",
        ),
        pytest.param(
            Estimate(50.0, 0.0, 20, 6),
            None,
            "no interval, since it hangs on one interpretation",
            id="one large cluster",
        ),
        pytest.param(
            Estimate(50.0, 0.0, 20, 6, low=40.0, high=60.0), 20, "", id="there is an interval"
        ),
        pytest.param(
            Estimate(None, 0.0, 20, 5),
            20,
            "no interpretation has 5 % or more of its base questions",
            id="no value",
        ),
        pytest.param(Estimate(None, 0.0, 0, 0), 20, "no document has a value", id="no document"),
    ],
)
def test_a_missing_interval_or_value_has_its_reason(
    tmp_path: Path, score: Estimate, limit: int | None, expected: str
) -> None:
    """The reasons are in the words of MAGNIFICo's headline."""
    name, key = "magnifico_mini", "relative_performance"
    run = read(
        tmp_path,
        results={name: {f"{key},query": 0.0}},
        configs={name: {"metadata": {"benchmark": "magnifico"}}},
        config={"limit": limit},
        **{"n-samples": {name: {"original": 192, "effective": 20}}},
    )
    reason = reason_for(run, question_of(run, key).measure, score)
    assert expected in reason
    assert bool(expected) == bool(reason)


def test_a_task_that_is_not_ours_shows_its_value_without_interval(tmp_path: Path) -> None:
    table = words(a_file(tmp_path, **foreign("arc", {"acc,none": 0.5, "acc_stderr,none": 0.1})))
    assert "acc 0.500" in table
    assert "acc 0.500 acc" not in table
    assert "[" not in table
    empty = a_file(tmp_path / "b", results={"t": {"name": "t"}}, configs={"t": {}})
    assert "no document was scored" in shown(empty)


def test_the_list_of_tasks(cli: Command, real_data: Path) -> None:
    """Its looks are tested in tests/terminal."""
    rows = {row.task: row for row in task_rows()}
    assert rows["lieder"].requests == 3 * 576
    assert rows["lieder_base"].data == "available"
    assert rows["lieder_mini"].data == "embedded"
    assert rows["magnifico_own_desc"].data == "your own"
    assert "did you mean lieder" in cli("tasks", "leider").stderr
    assert "tasks --plain" not in cli("tasks").stdout
    assert "tasks --plain" in cli("tasks", env={"LM_EVAL_EXT_AUTOLOAD": "0"}, cold=True).stdout
    assert [row["task"] for row in json.loads(cli("tasks", "--json").stdout)] == list(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such folder or file: nowhere"),
        (["empty"], "no results_*.json under"),
        ([".", "--tasks", "cogs_mini"], "available: lieder_base"),
    ],
    ids=["no folder", "an empty folder", "another task"],
)
def test_errors_are_one_line_and_status_1(
    cli: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    a_file(tmp_path / "one")
    (tmp_path / "empty").mkdir()
    completed = cli("show", *arguments)
    assert completed.returncode == 1
    (line,) = completed.stderr.splitlines()
    assert line.startswith("lm-eval-ext: error: ")
    assert message in line


def test_a_run_without_samples_is_one_line_and_the_others_still_show(tmp_path: Path) -> None:
    samples = [{**row, "facets": {"type": "a"}} for row in answered_rows(20, 10)]
    for model, logged in (("a", samples), ("b", samples), ("c", samples[:8])):
        write_run(tmp_path / model, model, "cogs_mini_gen", logged)
    next((tmp_path / "b").glob("samples_*")).unlink()
    next((tmp_path / "c").glob("samples_*")).write_text("")
    table = words(tmp_path, tasks=["cogs_mini_gen"], by="type")
    assert "a a 0.500" in table
    assert "b: " in table
    assert "--log_samples" in table
    assert "cogs_mini_gen · a, b: 20 documents; c: 8 documents · Exact match" in table
    assert "has samples of 0 of the 8 documents that were scored" in table


def test_a_users_own_task_is_reported_as_its_benchmarks(tmp_path: Path) -> None:
    """The table has the card's rows, and N/A with its reason."""
    file = current(tmp_path, metrics={"direct": "N/A", "relative": 0.5})
    file.write_text(file.read_text().replace("lieder_base", "lieder_of_mine"))
    table = words(file)
    for phrase in (
        "lieder_of_mine · org/a-model · 46 documents evaluated / 48 of the task",
        "direct (headline) N/A",
        "direct: N/A, since no document has a value",
        "relative: no interval from 0 items, fewer than 6",
    ):  # fmt: skip
        assert phrase in table
