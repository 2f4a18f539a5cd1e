"""Reading results files and showing them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.asking import run_in
from support.results_files import rows as made_rows
from support.results_files import write_run

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
    """Of an older version, with a group."""
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
    """Of the only task; a group without scores is none."""
    ((run,),) = (one.runs for one in read_results(a_file(folder, **changes)))
    return run


def foreign(task: str, values: dict[str, float], documents: int = 46) -> dict[str, Any]:
    """Of a task that isn't ours."""
    counts = {task: {"original": documents, "effective": documents}}
    return {"results": {task: values}, "configs": {task: {}}, "n-samples": counts}


def current(
    folder: Path, name: str = "org/a-model", metrics: Any = None, intervals: Any = None
) -> Path:
    """Of this version, with metrics of lieder_base."""
    found = {f"{key},none": value for key, value in (metrics or {"direct": 0.5}).items()}
    metadata = {
        "signature": {"task": "lieder_base"}, "benchmark": "lieder", "intervals": intervals or {},
    }  # fmt: skip
    entries = [{"metric": key.partition(",")[0], "unit": "share"} for key in found]
    configs = {"lieder_base": {"metadata": metadata, "metric_list": entries}}
    return a_file(folder, model_name=name, results={"lieder_base": found}, configs=configs)


def shown(*files: Path, tasks: Any = (), width: int = 100, **asked: Any) -> str:
    return text(tables(read_models(files), ScoreQuery(**asked), tasks), width)


def words(*files: Path, **asked: Any) -> str:
    return " ".join(shown(*files, **asked).split())


def test_scores_and_counts(tmp_path: Path) -> None:
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
def test_what_is_no_results_file_is_one_line_and_the_rest_still_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    current(tmp_path, "good")
    file = tmp_path / "results_2026-01-02T00-00-00.json"
    file.write_text(content)
    with pytest.raises(DataError, match="not a results file of lm-eval") as caught:
        read_results(file)
    assert str(file) in str(caught.value) and len(str(caught.value)) < 1000
    assert "good" in shown(tmp_path)
    (line,) = caplog.messages
    assert str(caught.value) in line


HOSTILE = "\x1b[31mred\x1b]0;title\x07\n|two\u202e"


def test_hostile_text_reaches_no_terminal(tmp_path: Path, cli: Callable[..., Any]) -> None:
    """And a name in square brackets is no style of the table library."""
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
    assert all(":" in part for part in line.split("|")), "every part is still a pair"


def test_the_table_shows_the_headline_and_published_values(tmp_path: Path) -> None:
    """And an older file its own metrics."""
    file = current(tmp_path, metrics={"direct": 0.5, "direct/affirmative_negation": 0.25})
    said = words(file)
    assert "lieder_base · org/a-model · 46 of 48 documents" in said
    assert "direct 0.500 direct/affirmative_negation 0.250" in said
    assert "published direct/" not in said
    asked = words(file, metrics=("direct/affirmative_negation",))
    assert "published Accuracy, affirmative / negation: humans 0.938" in asked
    old = words(a_file(tmp_path / "old"))
    assert "direct/mean 0.500" in old and "direct/pos_neg_s>pos_pos_s 0.750" in old


def test_noted_intervals_are_shown(tmp_path: Path) -> None:
    """And where there are too few clusters, why there is none."""
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
    said = words(file)
    assert "0.500 [0.250, 0.750]" in said and "clustered by item" in said
    assert "relative: no interval from 3 items, fewer than 6" in said


@pytest.mark.parametrize(
    ("noted", "limit", "said"),
    [
        ((50.0, 20, 5), 20, "no interval from 5 interpretations, fewer than 6"),
        ((50.0, 20, 1), None, "no interval from 1 interpretation, fewer than 6"),
        ((50.0, 20, 6), None, "no interval, since it hangs on one interpretation"),
        ((50.0, 20, 6, 40.0, 60.0), 20, ""),
        ((None, 20, 5), 20, "no interpretation has 5 % or more of its base questions"),
        ((None, 0, 0), 20, "no document has a value"),
    ],
)
def test_why_there_is_none(tmp_path: Path, noted: Any, limit: int | None, said: str) -> None:
    """No interval, or no value, of MAGNIFICo's headline."""
    name, key = "magnifico_mini", "relative_performance"
    run = read(
        tmp_path,
        results={name: {f"{key},query": 0.0}},
        configs={name: {"metadata": {"benchmark": "magnifico"}}},
        config={"limit": limit},
        **{"n-samples": {name: {"original": 192, "effective": 20}}},
    )
    value, documents, clusters, *ends = noted
    found = Estimate(value, 0.0, documents, clusters, 0, *ends)
    reason = reason_for(run, question_of(run, key).measure, found)
    assert said in reason and bool(said) == bool(reason)


def test_a_task_that_is_not_ours_shows_all_it_has(tmp_path: Path) -> None:
    said = words(a_file(tmp_path, **foreign("arc", {"acc,none": 0.5, "acc_stderr,none": 0.1})))
    assert "acc 0.500 acc" not in said and "acc 0.500" in said and "[" not in said
    empty = a_file(tmp_path / "b", results={"t": {"name": "t"}}, configs={"t": {}})
    assert "no document was scored" in shown(empty)


def test_the_list_of_tasks(cli: Callable[..., Any], real_data: Path) -> None:
    """tests/terminal has what it looks like."""
    rows = {row.task: row for row in task_rows()}
    assert rows["lieder"].requests == 3 * 576
    found = {name: rows[name].data for name in ("lieder_base", "lieder_mini", "magnifico_own_desc")}
    assert list(found.values()) == ["available", "embedded", "your own"]
    assert "did you mean lieder" in cli("tasks", "leider").stderr
    assert "tasks --plain" not in cli("tasks").stdout
    assert "tasks --plain" in cli("tasks", env={"LM_EVAL_EXT_AUTOLOAD": "0"}, cold=True).stdout
    assert [row["task"] for row in json.loads(cli("tasks", "--json").stdout)] == list(rows)


def test_errors_are_one_line_and_status_1(cli: Callable[..., Any], tmp_path: Path) -> None:
    a_file(tmp_path / "one")
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        (["show", "nowhere"], "no such folder or file: nowhere"),
        (["show", str(tmp_path / "empty")], "no results_*.json under"),
        (["show", str(tmp_path), "--tasks", "cogs_mini"], "available: lieder_base"),
    ):
        done = cli(*arguments)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("lm-eval-ext: error: ") and said in line


def test_a_run_without_samples_is_one_line_and_the_others_still_show(tmp_path: Path) -> None:
    made = [{**row, "facets": {"type": "a"}} for row in made_rows(20, 10)]
    for model, some in (("a", made), ("b", made), ("c", made[:8])):
        write_run(tmp_path / model, model, "cogs_mini_gen", some)
    next((tmp_path / "b").glob("samples_*")).unlink()
    next((tmp_path / "c").glob("samples_*")).write_text("")
    said = words(tmp_path, tasks=["cogs_mini_gen"], by="type")
    assert "a a 0.500" in said and "b: " in said and "--log_samples" in said
    assert "cogs_mini_gen · a, b: 20 of 20 documents; c: 8 of 8 documents · Exact match" in said
    assert "has samples of 0 of the 8 documents that were scored" in said


def test_a_users_own_task_is_reported_as_its_benchmarks(tmp_path: Path) -> None:
    """It printed 41 raw rows, a star without its meaning, and N/A without a reason."""
    file = current(tmp_path, metrics={"direct": "N/A", "relative": 0.5})
    file.write_text(file.read_text().replace("lieder_base", "lieder_of_mine"))
    said = words(file)
    for part in (
        "lieder_of_mine · org/a-model · 46 of 48 documents", "direct N/A",
        "direct: N/A, since no document has a value",
        "relative: no interval from 0 items, fewer than 6",
    ):  # fmt: skip
        assert part in said
