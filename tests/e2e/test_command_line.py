"""lm_eval itself: errors before the model loads, recorded answers, the readable tables."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def last_line(done: Any) -> str:
    return str(done.stderr.strip().splitlines()[-1])


def test_missing_data_are_one_line_before_the_model_is_touched(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        env = {"LM_EVAL_EXT_MIRROR": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
        done = lm_eval("--tasks", "lieder", "--model", "hf",
                       "--model_args", "pretrained=no-such/model", env=env, cold=True)  # fmt: skip
    assert done.returncode == 1
    assert last_line(done).startswith("lm-eval-ext: error: ")
    assert "LM_EVAL_EXT_DATA" in last_line(done), "the remedy"
    assert "Traceback" not in done.stderr
    assert "Initializing hf model" not in done.stderr, "the model was not touched"
    assert not list(Path(tmp_path).rglob("*.jsonl")), "nothing half-written"


def test_a_wrong_metadata_key_is_one_line_before_the_model_is_touched(
    lm_eval: Callable[..., Any],
) -> None:
    done = lm_eval("--tasks", "lieder_mini", "--model", "hf",
                   "--model_args", "pretrained=no-such/model",
                   "--metadata", '{"lieder_experimant": "base"}')  # fmt: skip
    assert done.returncode == 1
    assert "unknown metadata key lieder_experimant" in last_line(done)
    assert "lieder_experiment" in last_line(done)
    assert "Traceback" not in done.stderr


def test_a_request_without_an_answer_is_quoted_in_one_line(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "none.jsonl").write_text('{"arguments": ["P"], "response": "x"}\n')
    done = lm_eval("--tasks", "lieder_mini", "--model", "recorded", "--model_args",
                   f"path={tmp_path / 'none.jsonl'}", "--limit", "1")  # fmt: skip
    assert done.returncode == 1
    assert "no answer is recorded for the loglikelihood request" in last_line(done)
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("kept_cache")
def test_every_benchmark_runs_in_a_process_that_has_imported_nothing(
    lm_eval: Callable[..., Any], cli: Callable[..., Any]
) -> None:
    tasks = ("lieder_mini", "cogs_mini_id", "conceptual_mini", "diner_mini_icl", "magnifico_mini")
    done = lm_eval("--tasks", ",".join(tasks), "--model", "dummy", "--limit", "1", cold=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "jieba" not in done.stderr
    assert set(done.results()["n-samples"]) == set(tasks)
    shown = cli("show", str(done.output), cold=True)
    assert shown.returncode == 0, shown.stderr
    assert all(task in shown.stdout for task in tasks)


def test_defects_keep_their_traceback(lm_eval: Callable[..., Any]) -> None:
    done = lm_eval("--tasks", "lieder_mini", "--model", "hf", "--model_args", "pretrained=.")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_replaying_the_group_and_reading_the_tables(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], shared_data: Path
) -> None:
    recorded = shared_data / "lieder/recorded/*_gpt2.responses.jsonl"
    done = lm_eval("--tasks", "lieder", "--model", "recorded",
                   "--model_args", json.dumps({"path": str(recorded), "conflict": "first"}),
                   env={"LM_EVAL_EXT_DATA": str(shared_data)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    shown = cli("show", str(done.output))
    assert shown.returncode == 0, shown.stderr
    assert "lieder_base: Accuracy" in shown.stdout, "the overview comes first"
    every = cli("show", str(done.output), "--tasks", "*").stdout
    assert every.count("48 of 48 documents") == 3
    published = cli("show", str(done.output), "--tasks", "lieder_base",
                    "--metric", "direct/affirmative_negation")  # fmt: skip
    assert "humans" in published.stdout
    asked = cli("show", str(done.output), "--tasks", "lieder_base", "--by", "comparison").stdout
    assert "pos_neg_s>pos_pos_s" in asked and "pos_neg_s>pos_pos_s" not in every
    shown = cli("show", str(done.output), "--signatures").stdout
    lines = [line for line in shown.splitlines() if line.startswith("task:")]
    assert len(lines) == 3
    for line in lines:
        parts = dict(part.split(":", 1) for part in line.split("|"))
        assert parts["version"] == "1.2"
        assert parts["data"].startswith("lieder@ab5f161feb0b")
        assert parts["scoring"] == "summed-logprob"
        assert parts["chat"] == "no"
        assert parts["lm-eval"].startswith("0.4.")


@pytest.mark.usefixtures("kept_cache")
def test_a_run_is_resumed_from_its_cache(lm_eval: Callable[..., Any], tmp_path: Path) -> None:
    """By a process that hashes otherwise; both kinds of requests."""
    common = ["--tasks", "lieder_mini,magnifico_mini", "--model", "dummy",
              "--use_cache", str(tmp_path / "c")]  # fmt: skip
    first = lm_eval(*common, "--limit", "4")
    assert first.returncode == 0, first.stderr[-3000:]
    assert first.results()["n-samples"]["lieder_mini"] == {"original": 48, "effective": 4}
    assert [len(sample["arguments"]) for sample in first.samples("lieder_mini")] == [12] * 4
    second = lm_eval(*common, "--limit", "6", output=tmp_path / "second", cold=True)
    assert second.returncode == 0, second.stderr[-3000:]
    assert "Cached requests: 48, Requests remaining: 24" in second.stderr
    assert "Cached requests: 4, Requests remaining: 2" in second.stderr
    for task in ("lieder_mini", "magnifico_mini"):
        answers = [
            {sample["doc_id"]: sample["resps"] for sample in run.samples(task)}
            for run in (first, second)
        ]
        assert answers[0].items() <= answers[1].items()
