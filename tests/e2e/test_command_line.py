"""lm_eval itself: errors before the model loads, recorded answers, the readable tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

NO_MODEL = ("--model", "hf", "--model_args", "pretrained=no-such/model")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # Nobody listens at port 9.
        (("lieder", *NO_MODEL), ("LM_EVAL_EXT_DATA", "Connection refused")),
        (
            ("lieder_mini", *NO_MODEL, "--metadata", '{"lieder_experimant": "base"}'),
            ("unknown metadata key lieder_experimant", "lieder_experiment"),
        ),
        (
            ("lieder_mini", "--model", "recorded", "--model_args", "path=none.jsonl", "--limit=1"),
            ("no answer is recorded for the loglikelihood request",),
        ),
        (("lieder_mini", "--model", "hf", "--model_args", "pretrained={folder}/broken"), ()),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_defects_keep_their_traceback(
    words: tuple[str, ...], said: tuple[str, ...], lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "none.jsonl").write_text('{"arguments": ["P"], "response": "x"}\n')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    words = tuple(word.replace("{folder}", str(tmp_path)) for word in words)
    done = lm_eval("--tasks", *words, env={"LM_EVAL_EXT_MIRROR": "http://127.0.0.1:9"})
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) == (not said)
    if said:
        *_, line = done.stderr.strip().splitlines()
        assert line.startswith("lm-eval-ext: error: ")
        assert all(part in line for part in said), line
    if "no-such/model" in words:
        assert "Initializing hf model" not in done.stderr, "the model was not touched"
    assert not list(tmp_path.rglob("samples_*")), "nothing half-written"


@pytest.mark.usefixtures("kept_cache")
def test_every_benchmark_runs_in_a_new_process_and_goes_on_from_the_cache(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], tmp_path: Path
) -> None:
    """Of a process that hashes otherwise; both kinds of requests."""
    tasks = ("lieder_mini", "magnifico_mini", "cogs_mini_id", "conceptual_mini", "diner_mini_icl")
    common = ["--model", "dummy", "--use_cache", str(tmp_path / "c"), "--tasks"]
    first = lm_eval(*common, ",".join(tasks[:2]), "--limit", "2")
    assert first.returncode == 0, first.stderr[-3000:]
    assert first.results()["n-samples"]["lieder_mini"] == {"original": 48, "effective": 2}
    assert [len(sample["arguments"]) for sample in first.samples("lieder_mini")] == [12] * 2
    second = lm_eval(
        *common, ",".join(tasks), "--limit", "3", output=tmp_path / "second", cold=True
    )
    assert second.returncode == 0, second.stderr[-3000:]
    assert "jieba" not in second.stderr
    assert set(second.results()["n-samples"]) == set(tasks)
    assert "Cached requests: 24, Requests remaining: 12" in second.stderr
    # Three documents of four tasks, two requests for each of conceptual's; two were cached.
    assert "Cached requests: 2, Requests remaining: 13" in second.stderr
    for task in tasks[:2]:
        answers = [
            {sample["doc_id"]: sample["resps"] for sample in run.samples(task)}
            for run in (first, second)
        ]
        assert answers[0].items() <= answers[1].items()
    shown = cli("show", str(second.output))
    assert shown.returncode == 0, shown.stderr
    assert all(task in shown.stdout for task in tasks)


def test_the_group_is_replayed_and_signed(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], shared_data: Path
) -> None:
    recorded = shared_data / "lieder/recorded/*_gpt2.responses.jsonl"
    done = lm_eval("--tasks", "lieder", "--model", "recorded",
                   "--model_args", json.dumps({"path": str(recorded), "conflict": "first"}),
                   env={"LM_EVAL_EXT_DATA": str(shared_data)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    shown = cli("show", str(done.output), "--signatures")
    assert shown.returncode == 0, shown.stderr
    lines = [line for line in shown.stdout.splitlines() if line.startswith("task:")]
    assert len(lines) == 3
    for line in lines:
        parts = dict(part.split(":", 1) for part in line.split("|"))
        assert parts["version"] == "1.2"
        assert parts["data"].startswith("lieder@ab5f161feb0b")
        assert (parts["scoring"], parts["chat"]) == ("summed-logprob", "no")
        assert parts["lm-eval"].startswith("0.4.")
