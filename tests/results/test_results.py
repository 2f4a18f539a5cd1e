"""Reading results files and showing them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lm_eval_ext.cards import cards
from lm_eval_ext.cli.task_list import task_rows
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.signature import UNKNOWN_TEMPLATE, of_config
from lm_eval_ext.results import files as results
from lm_eval_ext.results import show, why


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
        "direct/mean": results.Score(0.5, 0.125),
        "relative/mean": results.Score(0.25, None),
        "direct/pos_neg_s>pos_pos_s": results.Score(0.75, None),
        "direct/mean:know_doubt": results.Score(0.625, None),
        "direct/mean:affirmative_negation": results.Score(0.5, None),
        "relative/mean:affirmative_negation": results.Score(0.25, None),
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
    for command in ("show", "signature"):
        done = cli(command, str(file))
        assert done.returncode == 0, done.stderr
        assert not set(done.stdout) & set("\x1b\x07\u202e")
    (line,) = cli("signature", str(file)).stdout.splitlines()
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


def shown(file: Path, **kwargs: bool) -> str:
    console = Console(width=100, record=True)
    (read,) = results.find(file)
    for renderable in show.tables(read, **kwargs):
        console.print(renderable)
    return console.export_text()


def test_the_table_shows_the_headline_beside_published_values(tmp_path: Path) -> None:
    text = shown(a_file(tmp_path))
    assert "lieder_base · org/a-model · 46 of 48 documents" in text
    rows = [line.split() for line in text.splitlines() if "/mean" in line and "0." in line]
    assert rows == [
        ["*", "direct/mean", "0.500"],
        ["relative/mean", "0.250"],
        ["direct/mean:affirmative_negation", "0.500"],
        ["relative/mean:affirmative_negation", "0.250"],
    ]
    said = " ".join(text.split())
    assert "humans 0.938" in said, "beside the family that the paper is about"
    assert "* the task's headline; chance 0.5; 2 more metrics with --all" in said
    assert "no intervals: this file is of a version that noted no clusters" in said
    assert "pos_neg_s>pos_pos_s" not in text
    assert "pos_neg_s>pos_pos_s" in shown(a_file(tmp_path), every_metric=True)


def test_noted_intervals_are_shown(tmp_path: Path) -> None:
    """And where there are too few clusters, why there is none."""
    intervals = {
        "direct/mean,none": {
            "documents": 48,
            "clusters": 16,
            "low": 0.25,
            "high": 0.75,
            "method": "wilson",
        },
        "relative/mean,none": {"documents": 9, "clusters": 3},
    }
    metadata = {"signature": {"task": "lieder_base"}, "intervals": intervals}
    file = a_file(tmp_path, configs={"lieder_base": {"metadata": metadata}})
    (read,) = results.find(file)
    scores = read.scores("lieder_base")
    assert scores["direct/mean"] == results.Score(0.5, 0.125, (0.25, 0.75), "wilson", 16, 48)
    assert scores["relative/mean"] == results.Score(0.25, None, clusters=3, documents=9)
    text = " ".join(shown(file).split())
    assert "0.500 [0.250, 0.750]" in text
    assert "clustered by item" in text
    assert "relative/mean: no interval from 3 items, fewer than 6" in text
    assert "no intervals" not in text
    broken = {**metadata, "intervals": {"direct/mean,none": {"low": "x"}}}
    with pytest.raises(DataError, match="not a results file"):
        results.find(a_file(tmp_path / "b", configs={"lieder_base": {"metadata": broken}}))


def reasons(tmp_path: Path, **changes: Any) -> list[str]:
    """Why MAGNIFICo's headline has no interval, or no value."""
    name, key = "magnifico_mini", "populated/relative_performance"
    value, noted, trial = (changes.get(one) for one in ("value", "noted", "trial"))
    entry = {"metric": key, "aggregation": "magnifico_relative_performance"}
    metadata = {"signature": {"task": name}, "intervals": {f"{key},query": noted}, "trial": trial}
    file = a_file(
        tmp_path,
        results={name: {f"{key},query": value, "no_query,query": 0.0}},
        configs={name: {"metric_list": [entry], "metadata": metadata}},
        **{"n-samples": {name: {"original": 192, "effective": 20}}},
    )
    return why.reasons(results.find(file)[0], name, [key])


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
    (line,) = reasons(tmp_path, value=value, noted=counts, trial=trial)
    assert line.startswith("populated/relative_performance: ") and said in line
    bounds = {**counts, "low": 40.0, "high": 60.0}
    assert reasons(tmp_path, value=50.0, noted=bounds, trial=trial) == []


def test_former_intervals_are_not_shown(tmp_path: Path) -> None:
    """Percentiles of a bootstrap, which were too narrow; but a paper's own are."""
    found = {"m,none": 0.5, "m_stderr,none": 0.1, "m_ci95_low,none": 0.4, "m_ci95_high,none": 0.6}
    for noted, bounds in (({}, None), ({"intervals": {}}, (0.4, 0.6))):
        configs = {"t": {"metadata": {"signature": {"task": "t"}, **noted}}}
        file = a_file(tmp_path / str(bounds), results={"t": found}, configs=configs)
        (read,) = results.find(file)
        assert read.scores("t")["m"].interval == bounds


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
    assert "* acc 0.500 [0.295, 0.705]" in text, "46 documents that count as independent"


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
        ["signature", "nowhere"],
        ["data", "fetch", "liedr"],
        ["data", "path", "liedr"],
    ],
)
def test_errors_are_one_line_and_status_1(cli: Callable[..., Any], arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("lm-eval-ext: error: ")


def test_version_and_help(cli: Callable[..., Any]) -> None:
    from lm_eval_ext import __version__

    assert cli("--version").stdout.strip() == f"lm-eval-ext {__version__}"
    assert "tasks" in cli("--help").stdout


def test_only_some_tasks(cli: Callable[..., Any], tmp_path: Path) -> None:
    a_file(tmp_path)
    assert "lieder_base" in cli("show", str(tmp_path), "--tasks", "lieder_*").stdout
    none = cli("show", str(tmp_path), "--tasks", "cogs_mini")
    assert none.returncode == 1
    assert "not in these results; there is lieder_base" in none.stderr
