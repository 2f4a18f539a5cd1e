"""lm_eval itself: errors before the model loads, recorded answers, the readable tables."""

import json
from pathlib import Path

import pytest
from support.commands import Command

pytestmark = pytest.mark.e2e

NO_MODEL = ("--model", "hf", "--model_args", "pretrained=no-such/model")


@pytest.mark.parametrize(
    ("words", "phrases"),
    [
        # Nobody listens at port 9.
        (("lieder", *NO_MODEL), ("LM_EVAL_EXT_DATA", "Connection refused")),
        (
            ("lieder_mini", *NO_MODEL, "--metadata", '{"lieder_experimant": "base"}'),
            ("unknown metadata key lieder_experimant", "lieder_experiment"),
        ),
        (
            ("lieder_mini", "--model", "recorded", "--model_args", "path=none.jsonl", "--limit=1"),
            ("no answer is recorded for 12 requests of lieder_mini", "1 answer was read"),
        ),
        (("lieder_mini", "--model", "hf", "--model_args", "pretrained={folder}/broken"), ()),
    ],
)
def test_an_error_that_a_user_can_mend_is_one_line_and_defects_keep_their_traceback(
    words: tuple[str, ...], phrases: tuple[str, ...], lm_eval: Command, tmp_path: Path
) -> None:
    (tmp_path / "none.jsonl").write_text('{"arguments": ["P"], "response": "x"}\n')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    words = tuple(word.replace("{folder}", str(tmp_path)) for word in words)
    done = lm_eval("--tasks", *words, env={"LM_EVAL_EXT_MIRROR": "http://127.0.0.1:9"})
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) == (not phrases)
    if phrases:
        *_, line = done.stderr.strip().splitlines()
        assert line.startswith("lm-eval-ext: error: ")
        assert all(phrase in line for phrase in phrases), line
    if "no-such/model" in words:
        assert "Initializing hf model" not in done.stderr, "the model was not touched"
    assert not list(tmp_path.rglob("samples_*")), "nothing half-written"


@pytest.mark.usefixtures("kept_cache")
def test_every_benchmark_runs_in_a_new_process_and_goes_on_from_the_cache(
    lm_eval: Command, cli: Command, tmp_path: Path
) -> None:
    """The cache is that of a process with other hashes, and has both kinds of requests."""
    tasks = ("lieder_mini", "magnifico_mini", "cogs_mini_id", "conceptual_mini", "diner_mini_icl")
    common = ["--model", "dummy", "--use_cache", str(tmp_path / "c"), "--tasks"]
    two_tasks = lm_eval(*common, ",".join(tasks[:2]), "--limit", "2")
    assert two_tasks.returncode == 0, two_tasks.stderr[-3000:]
    assert two_tasks.results()["n-samples"]["lieder_mini"] == {"original": 48, "effective": 2}
    assert [len(sample["arguments"]) for sample in two_tasks.samples("lieder_mini")] == [12] * 2
    all_tasks = lm_eval(
        *common, ",".join(tasks), "--limit", "3", output=tmp_path / "second", cold=True
    )
    assert all_tasks.returncode == 0, all_tasks.stderr[-3000:]
    assert "jieba" not in all_tasks.stderr
    assert set(all_tasks.results()["n-samples"]) == set(tasks)
    assert "Cached requests: 24, Requests remaining: 12" in all_tasks.stderr
    # Three documents of four tasks, two requests for each of conceptual's; two were cached.
    assert "Cached requests: 2, Requests remaining: 13" in all_tasks.stderr
    for task in tasks[:2]:
        answers = [
            {sample["doc_id"]: sample["resps"] for sample in run.samples(task)}
            for run in (two_tasks, all_tasks)
        ]
        assert answers[0].items() <= answers[1].items()
    shown = cli("show", str(all_tasks.output))
    assert shown.returncode == 0, shown.stderr
    assert all(task in shown.stdout for task in tasks)


def test_the_group_is_replayed_and_signed(
    lm_eval: Command, cli: Command, shared_data: Path
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
        signature = dict(pair.split(":", 1) for pair in line.split("|"))
        assert signature["version"] == "1.2"
        assert signature["data"].startswith("lieder@ab5f161feb0b")
        assert (signature["scoring"], signature["chat"]) == ("summed-logprob", "no")
        assert signature["lm-eval"].startswith("0.4.")
