"""Reading results files and showing them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.results_files import rows as made_rows
from support.results_files import write_run

from lm_eval_ext.cards import cards
from lm_eval_ext.cli.task_list import task_rows
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.signature import UNKNOWN_TEMPLATE, of_config
from lm_eval_ext.results import files as results
from lm_eval_ext.results.ask import question_of
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.show import Asked, reason_for, tables
from lm_eval_ext.stats.statistics import Figure


def a_file(folder: Path, name: str = "results_2026-01-01T00-00-00.json", **changes: Any) -> Path:
    content = {
        "results": {
            "lieder_base": {
                "name": "lieder_base",
                "alias": "lieder_base",
                "sample_len": 46,
                "direct/mean,none": 0.5,
                "direct/mean_stderr,none": 0.125,
                "direct/mean_stderr_stderr,none": "N/A",
                "relative/mean,none": 0.25,
                "relative/mean_stderr,none": "N/A",
                "direct/pos_neg_s>pos_pos_s,none": 0.75,
                "direct/mean:know_doubt,none": 0.625,
                "direct/mean:affirmative_negation,none": 0.5,
                "relative/mean:affirmative_negation,none": 0.25,
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
    }
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def test_scores_and_counts(tmp_path: Path) -> None:
    (read,) = results.find(a_file(tmp_path))
    assert read.model == "org/a-model"
    assert read.tasks == ["lieder_base"], "a group without scores is not a task"
    assert read.scores("lieder_base") == {
        "direct/mean": Figure(0.5, 0.125),
        "relative/mean": Figure(0.25, None),
        "direct/pos_neg_s>pos_pos_s": Figure(0.75, None),
        "direct/mean:know_doubt": Figure(0.625, None),
        "direct/mean:affirmative_negation": Figure(0.5, None),
        "relative/mean:affirmative_negation": Figure(0.25, None),
    }
    assert read.documents("lieder_base") == (46, 48)


def test_the_signature_adds_what_the_run_knows(tmp_path: Path) -> None:
    (read,) = results.find(a_file(tmp_path))
    assert read.signature("lieder_base") == (
        f"task:lieder_base|seed:7|version:1.0|config:{of_config({})}|docs:46/48|shots:0|chat:0123456789ab|system:no"
        "|lm-eval:0.4.13"
    )
    (foreign,) = results.find(a_file(tmp_path / "b", configs={"lieder_base": {}}))
    assert foreign.signature("lieder_base").startswith("task:lieder_base|version:1.0|")
    for template, said in ((None, "no"), ("", "yes"), (UNKNOWN_TEMPLATE, "unknown")):
        folder = tmp_path / f"chat {said}"
        (read,) = results.find(a_file(folder, chat_template=template, chat_template_sha=None))
        assert f"|chat:{said}|" in read.signature("lieder_base")


def test_several_filters_keep_their_names(tmp_path: Path) -> None:
    file = a_file(tmp_path, results={"t": {"acc,strict": 0.1, "acc,loose": 0.2}}, configs={"t": {}})
    (read,) = results.find(file)
    assert set(read.scores("t")) == {"acc,strict", "acc,loose"}


def test_a_folder_gives_the_newest_per_model_and_tasks(tmp_path: Path) -> None:
    a_file(tmp_path / "m", "results_2026-01-01T00-00-00.json", model_name="m")
    newest = a_file(tmp_path / "m", "results_2026-01-02T00-00-00.json", model_name="m")
    other = a_file(tmp_path / "n", "results_2025-01-01T00-00-00.json", model_name="n")
    assert {read.path for read in results.find(tmp_path)} == {newest, other}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"results": 3}', "\x00", '{"results": {"t": []}}', "[" * 100_000,
        '{"results": {}, "config": null}', '{"results": {}, "configs": null}',
        '{"results": {}, "n-samples": null}', '{"results": {"t": {}}, "configs": {"t": []}}',
        '{"results": {"t": {}}, "configs": {"t": {}}, "n-samples": {"t": {"effective": "x"}}}',
    ],
)  # fmt: skip
def test_what_is_no_results_file_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "results_x.json"
    file.write_text(content)
    with pytest.raises(DataError, match="not a results file of lm-eval") as caught:
        results.find(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000


HOSTILE = "\x1b[31mred\x1b]0;title\x07\n|two\u202e"


def test_hostile_text_reaches_no_terminal(tmp_path: Path, cli: Callable[..., Any]) -> None:
    own = {"task": HOSTILE, "note": HOSTILE}
    file = a_file(
        tmp_path,
        model_name=HOSTILE,
        results={HOSTILE: {f"[red]x[/red]{HOSTILE}/mean,none": 1.0}},
        configs={HOSTILE: {"metadata": {"signature": own}}},
        chat_template_sha=7,
    )
    done = cli("show", str(file), "--signatures")
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout) & set("\x1b\x07\u202e")
    (line,) = [line for line in done.stdout.splitlines() if line.count("|") > 4]
    assert all(":" in part for part in line.split("|")), "every part is still a pair"


def test_runs_of_other_settings_are_all_shown(tmp_path: Path) -> None:
    a_file(tmp_path, "results_2026-01-01T00-00-00.json")
    part = {"lieder_base": {"original": 48, "effective": 3}}
    a_file(tmp_path, "results_2026-01-02T00-00-00.json", **{"n-samples": part})
    assert len(results.find(tmp_path)) == 2
    stock = {"lieder_base": {"generation_kwargs": {"temperature": 0.7}}}
    a_file(tmp_path, "results_2026-01-03T00-00-00.json", configs=stock)
    a_file(tmp_path, "results_2026-01-04T00-00-00.json", config={"model_args": {"dtype": "x"}})
    assert len(results.find(tmp_path)) == 4


def test_a_task_without_scores_says_so(tmp_path: Path) -> None:
    file = a_file(tmp_path, results={"t": {"name": "t"}}, configs={"t": {}})
    assert "no document was scored" in shown(file)


def test_an_empty_folder_says_what_writes_results(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--output_path"):
        results.find(tmp_path)


def shown(*files: Path, width: int = 100, **asked: Any) -> str:
    console = Console(width=width, record=True)
    for renderable in tables(read_models(files), Asked(**asked), width):
        console.print(renderable)
    return console.export_text()


def current(folder: Path, name: str = "org/a-model", metrics: Any = None) -> Path:
    """A results file of this version, with metrics of lieder_base."""
    found = {f"{key},none": value for key, value in (metrics or {"direct": 0.5}).items()}
    metadata = {"signature": {"task": "lieder_base"}, "benchmark": "lieder", "intervals": {}}
    entries = [{"metric": key.partition(",")[0], "unit": "share"} for key in found]
    configs = {"lieder_base": {"metadata": metadata, "metric_list": entries}}
    return a_file(folder, model_name=name, results={"lieder_base": found}, configs=configs)


def test_the_table_shows_the_headline_and_published_values(tmp_path: Path) -> None:
    text = shown(current(tmp_path, metrics={"direct": 0.5, "direct/affirmative_negation": 0.25}))
    assert "lieder_base · org/a-model · 46 of 48 documents" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("direct")]
    assert rows == [["direct", "*", "0.500"], ["direct/affirmative_negation", "0.250"]]
    said = " ".join(text.split())
    assert "* the task's headline" in said
    assert "signature" not in said and "version:1.0" not in said
    every = " ".join(shown(tmp_path, everything=True).split())
    assert "published direct/affirmative_negation: humans 0.938" in every
    assert "version:1.0" in shown(tmp_path, signatures=True)


def test_an_older_file_shows_its_own_metrics_and_says_so(tmp_path: Path) -> None:
    text = " ".join(shown(a_file(tmp_path)).split())
    assert "direct/mean * 0.500" in text and "direct/pos_neg_s>pos_pos_s 0.750" in text
    assert "this file is of an older version; docs/old_names.csv has its metrics" in text


def test_models_by_benchmarks_come_first(tmp_path: Path) -> None:
    """Two models, a task of ours and a foreign one; at most 80 columns; a badge for a trial."""
    for name, value in (("a", 0.5), ("b", 0.25)):
        current(tmp_path / name, name, {"direct": value})
        a_file(
            tmp_path / name, "results_2026-01-02T00-00-00.json", model_name=name,
            results={"arc": {"acc,none": value}}, configs={"arc": {}},
            **{"n-samples": {"arc": {"original": 9, "effective": 9}}},
        )  # fmt: skip
    text = shown(tmp_path, width=80)
    assert max(map(len, text.splitlines())) <= 80
    rows = [line.split() for line in text.splitlines()]
    assert ["lieder", "arc"] in rows
    assert ["a", "0.500", "0.500"] in rows and ["b", "0.250", "0.250"] in rows
    assert "46/48" in text
    assert "lieder_base: Accuracy" in text
    assert "interval" not in text
    assert "0.500" in shown(tmp_path, tasks=["arc"]) and "lieder" not in shown(
        tmp_path, tasks=["arc"]
    )


def test_noted_intervals_are_shown(tmp_path: Path) -> None:
    """And where there are too few clusters, why there is none."""
    intervals = {
        "direct,none": {
            "documents": 48,
            "clusters": 16,
            "low": 0.25,
            "high": 0.75,
            "method": "wilson",
        },
        "relative,none": {"documents": 9, "clusters": 3},
    }
    metadata = {
        "signature": {"task": "lieder_base"}, "intervals": intervals, "benchmark": "lieder",
    }  # fmt: skip
    found = {
        "lieder_base": {"direct,none": 0.5, "direct_stderr,none": 0.125, "relative,none": 0.25}
    }
    file = a_file(tmp_path, results=found, configs={"lieder_base": {"metadata": metadata}})
    (read,) = results.find(file)
    scores = read.scores("lieder_base")
    assert scores["direct"] == Figure(0.5, 0.125, 0.25, 0.75, "wilson", 48, 16)
    assert scores["relative"] == Figure(0.25, documents=9, clusters=3)
    text = " ".join(shown(file).split())
    assert "0.500 [0.250, 0.750]" in text
    assert "clustered by item" in text
    assert "relative: no interval from 3 items, fewer than 6" in text
    broken = {**metadata, "intervals": {"direct,none": {"low": "x"}}}
    with pytest.raises(DataError, match="not a results file"):
        results.find(
            a_file(tmp_path / "b", results=found, configs={"lieder_base": {"metadata": broken}})
        )


def reason(tmp_path: Path, **changes: Any) -> str:
    """Why MAGNIFICo's headline has no interval, or no value."""
    name, key = "magnifico_mini", "relative_performance"
    value, noted, trial = (changes.get(one) for one in ("value", "noted", "trial"))
    metadata = {
        "signature": {"task": name}, "intervals": {f"{key},query": noted}, "trial": trial,
        "benchmark": "magnifico",
    }  # fmt: skip
    file = a_file(
        tmp_path,
        results={name: {f"{key},query": value, "sql_no_query,query": 0.0}},
        configs={name: {"metadata": metadata}},
        **{"n-samples": {name: {"original": 192, "effective": 20}}},
    )
    (run,) = results.find(file)
    return reason_for(run, name, question_of(run, name, key).measure, run.scores(name)[key])


@pytest.mark.parametrize(
    ("value", "noted", "trial", "said"),
    [
        (50.0, (20, 5), {"enough": 24}, "no interval from 5 databases, fewer than 6; --limit 24"),
        (50.0, (20, 1), None, "no interval from 1 database, fewer than 6"),
        (50.0, (20, 4), {"enough": None}, "fewer than 6; no --limit has more"),
        (50.0, (20, 6), None, "no interval, since it hangs on one database"),
        ("N/A", (20, 5), {"enough": 24}, "no interpretation has 5 % or more of its base questions"),
        ("N/A", (0, 0), {"enough": 24}, "there are none of its documents among 20 of 192"),
    ],
)
def test_why_there_is_none(
    tmp_path: Path, value: Any, noted: tuple[int, int], trial: Any, said: str
) -> None:
    counts = dict(zip(("documents", "clusters"), noted, strict=True))
    assert said in reason(tmp_path, value=value, noted=counts, trial=trial)
    bounds = {**counts, "low": 40.0, "high": 60.0}
    assert reason(tmp_path, value=50.0, noted=bounds, trial=trial) == ""


def test_former_intervals_are_not_shown(tmp_path: Path) -> None:
    """Percentiles of a bootstrap, which were too narrow; but a paper's own are."""
    found = {"m,none": 0.5, "m_stderr,none": 0.1, "m_ci95_low,none": 0.4, "m_ci95_high,none": 0.6}
    for noted, bounds in (({}, None), ({"intervals": {}}, (0.4, 0.6))):
        configs = {"t": {"metadata": {"signature": {"task": "t"}, **noted}}}
        file = a_file(tmp_path / str(bounds), results={"t": found}, configs=configs)
        (read,) = results.find(file)
        found_bounds = (read.scores("t")["m"].low, read.scores("t")["m"].high)
        assert found_bounds == (bounds or (None, None))


def test_the_text_of_a_model_name_is_shown_as_text(tmp_path: Path) -> None:
    """A name in square brackets would be a style to the table library."""
    assert "[red]m[/red]" in shown(a_file(tmp_path, model_name="[red]m[/red]"))


def test_a_task_that_is_not_ours_shows_all_it_has(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        results={"arc": {"acc,none": 0.5, "acc_stderr,none": 0.1}},
        configs={"arc": {}},
        **{"n-samples": {"arc": {"original": 46, "effective": 46}}},
    )
    text = " ".join(shown(file).split())
    assert "arc" in text
    assert "acc 0.500 [0.295, 0.705]" in text, "46 documents that count as independent"


def test_the_list_of_tasks(cli: Callable[..., Any]) -> None:
    rows = {row.task: row for row in task_rows()}
    assert rows["lieder"].requests == 3 * 576
    assert rows["lieder"].data == rows["lieder_base"].data == "to fetch"
    assert rows["lieder_mini"].data == "embedded"
    done = cli("tasks")
    assert done.returncode == 0
    assert all(f"tasks {benchmark}" in done.stdout for benchmark in cards())
    every = cli("tasks", "*").stdout
    assert all(f" {task} " in every for task in rows)
    assert "did you mean lieder?" in cli("tasks", "leider").stderr
    assert "--include_path" not in done.stdout
    assert "--include_path" in cli("tasks", env={"LM_EVAL_EXT_AUTOLOAD": "0"}).stdout
    assert [row["task"] for row in json.loads(cli("tasks", "--json").stdout)] == list(rows)


def test_available_data_are_listed_as_such(real_data: Path) -> None:
    states = {row.task: row.data for row in task_rows()}
    assert set(states.values()) <= {"available", "embedded", "your own", "to fetch"}
    assert states["lieder_base"] == states["magnifico_dialogue"] == "available"
    assert states["lieder_mini"] == states["magnifico_mini"] == "embedded"
    assert states["magnifico_own_desc"] == "your own"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nowhere"],
        ["data", "fetch", "liedr"],
    ],
)
def test_errors_are_one_line_and_status_1(cli: Callable[..., Any], arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("lm-eval-ext: error: ")


def test_a_folder_that_is_not_there_is_said_to_be_so(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert "no such folder or file: nowhere" in cli("show", "nowhere").stderr
    assert "no results_*.json under" in cli("show", str(tmp_path / "empty")).stderr


def test_version_and_help(cli: Callable[..., Any]) -> None:
    from lm_eval_ext import __version__

    assert cli("--version").stdout.strip() == f"lm-eval-ext {__version__}"
    assert "tasks" in cli("--help").stdout


def test_only_some_tasks(cli: Callable[..., Any], tmp_path: Path) -> None:
    a_file(tmp_path)
    assert "lieder_base" in cli("show", str(tmp_path), "--tasks", "lieder_*").stdout
    none = cli("show", str(tmp_path), "--tasks", "cogs_mini")
    assert none.returncode == 1
    assert "cogs_mini is in the results; there is: lieder_base" in none.stderr


def test_a_half_written_file_is_one_line_and_the_rest_still_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    current(tmp_path, "good")
    broken = tmp_path / "results_2026-01-02T00-00-00.json"
    broken.write_text('{"results": {"lieder_base": {"direct,none"')
    assert "good" in shown(tmp_path)
    (line,) = caplog.messages
    assert str(broken) in line and "not a results file" in line


def test_a_run_without_samples_is_one_line_and_the_others_still_show(tmp_path: Path) -> None:
    made = [{**row, "facets": {"type": "a"}} for row in made_rows(20, 10)]
    for model in "ab":
        write_run(tmp_path / model, model, "cogs_mini_gen", made)
    next((tmp_path / "b").glob("samples_*")).unlink()
    text = " ".join(shown(tmp_path, tasks=["cogs_mini_gen"], by="type").split())
    assert "a a 0.500" in text
    assert "b: " in text and "--log_samples" in text


def test_a_users_own_task_is_reported_as_its_benchmarks(tmp_path: Path) -> None:
    """It printed 41 raw rows, a star without its meaning, and N/A without a reason."""
    file = current(tmp_path, metrics={"direct": "N/A", "relative": 0.5})
    file.write_text(file.read_text().replace("lieder_base", "lieder_of_mine"))
    text = " ".join(shown(file).split())
    assert "lieder_of_mine · org/a-model · 46 of 48 documents" in text
    assert "direct * N/A" in text and "* the task's headline" in text
    assert "direct: N/A, since there are none of its documents" in text
    assert "relative: no interval from 0 items, fewer than 6" in text
