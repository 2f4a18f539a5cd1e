"""Chat templates: one policy for every benchmark, as a tiny model's log shows it."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs.answers import INSTRUCTION

TASKS = ("lieder_mini", "magnifico_mini", "cogs_mini_id", "cogs_mini_overestimation",
         "cogs_mini_icl_id", "conceptual_mini", "diner_mini_icl")  # fmt: skip

TEMPLATE = (
    "{% for m in messages %}<{{m.role}}>{{m.content}}</turn>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def model(tiny_models: Path) -> Any:
    from lm_eval.models.huggingface import HFLM

    found = HFLM(pretrained=str(tiny_models / "llama"), device="cpu", batch_size=8)
    found.tokenizer.chat_template = TEMPLATE
    return found


@pytest.fixture(scope="module")
def runs(model: Any, run_cache: Path) -> Iterator[dict[str, Any]]:
    """What lm-eval logs of a document of each task."""
    from lm_eval import evaluate

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        tasks = {name: load_task(name) for name in TASKS}
    for task in tasks.values():
        if task.OUTPUT_TYPE == "generate_until":
            task.set_config("generation_kwargs", {"max_gen_toks": 3}, update=True)
    return evaluate(
        model, {"tasks": tasks, "groups": {}}, limit=1, bootstrap_iters=0,
        apply_chat_template=True, fewshot_as_multiturn=True, system_instruction="Be brief.",
    )  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_what_is_logged_is_what_was_asked(name: str, runs: Any) -> None:
    config, (sample,) = runs["configs"][name], runs["samples"][name]
    signed, doc = config["metadata"]["signature"], sample["doc"]
    context = doc.get("context") or [doc.get("prompt") or doc.get("input") or doc["sentence"]]
    for number, (prompt, second) in enumerate(sample["arguments"]):
        system, *turns, end = prompt.split("</turn>")
        assert (system, end) == ("<system>Be brief.", "<assistant>")
        assert [turn.partition(">")[0] for turn in turns[:-1]] == (
            ["<user", "<assistant"] * (len(turns) // 2)
        )
        asked = turns[-1].removeprefix("<user>")
        own = context[number if len(context) > 1 else 0]
        if name == "lieder_mini":
            assert asked == own and second == doc["continuation"][number].lstrip()
            continue
        assert second["until"] == config["generation_kwargs"]["until"] == []
        assert second["max_gen_toks"] == 3
        bare = name in ("cogs_mini_id", "cogs_mini_overestimation")
        assert asked == f"{INSTRUCTION}\n\n{own}" if bare else own in asked
        assert ("instruction" in signed) is bare
    assert ("answers" in signed) is (name != "lieder_mini")


def build(task: Any, limit: int, *, chat: bool = True, end: str = "") -> list[Any]:
    task.build_all_requests(
        limit=limit, rank=0, world_size=1, apply_chat_template=chat,
        chat_template=lambda turns, **_: turns[-1]["content"] + end,
    )  # fmt: skip
    found: list[Any] = task.instances
    return found


def test_a_user_may_leave_the_instruction_out_or_has_an_own() -> None:
    for options in ({"cogs_instruction": False}, {"cogs_prefix": "Parse: "}):
        task = load_task("cogs_mini_id", **options)
        (request,) = build(task, 1)
        assert request.args[0] == request.doc["sentence"]
        assert "instruction" not in task.dump_config()["metadata"]["signature"]


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("cogs_mini_id", "Here is the form:\n```\n{form}\n```", True),
        ("cogs_mini_id", "Here is the form:\n```\n{form} AND\n```", False),
        ("conceptual_mini", "<think>Hm.</think>The answer is {answer}.\n\nIt fits.", True),
        ("conceptual_mini", "The answer is not {answer}.", False),
    ],
)
def test_answers_are_read_only_after_a_template(
    name: str, answer: str, right: bool, caplog: pytest.LogCaptureFixture
) -> None:
    task = load_task(name)
    value = "exact_match" if "cogs" in name else "accuracy"
    for chat in (True, False):
        requests = build(task, 1, chat=chat)
        for request in requests:
            request.resps = [answer.format(**request.doc)]
        task.apply_filters()
        answers = [request.filtered_resps["none"] for request in requests]
        scored = task.process_results(requests[0].doc, answers)["rows"]
        assert (scored[-1][value] == 1.0) is (right and chat)
        assert requests[0].resps == [answer.format(**requests[0].doc)]
    assert "thinking" not in caplog.text


def test_thoughts_that_do_not_end_are_told(caplog: pytest.LogCaptureFixture) -> None:
    task = load_task("cogs_mini_id")
    first, second = build(task, 2, end="<assistant><think>\n")
    first.resps, second.resps = [second.doc["form"]], [f"so</think>{second.doc['form']}"]
    with caplog.at_level(logging.WARNING):
        task.apply_filters()
    assert first.filtered_resps["none"] == "", "the template opened a thought"
    assert second.filtered_resps["none"] == second.doc["form"]
    assert "1 of 2 answers end before the model has finished thinking" in caplog.text


@pytest.mark.parametrize("chat", [True, False], ids=["chat template", "none"])
def test_the_log_has_no_stop_strings_that_are_not_used(
    chat: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """lm-eval logs a task's settings before it is known whether a template drops stop strings."""
    task = load_task("cogs_mini_id")
    evaluator = logging.getLogger("lm_eval.evaluator")
    settings = f"cogs_mini_id: Using gen_kwargs: {task.config.generation_kwargs}"
    with caplog.at_level(logging.INFO):
        evaluator.info(settings)
        evaluator.info("another_task: Using gen_kwargs: {}")
        build(task, 1, chat=chat)
    messages = [record.getMessage() for record in caplog.records if "gen_kw" in record.getMessage()]
    assert messages[0] == "another_task: Using gen_kwargs: {}"
    assert len(messages) == 2
    assert ("'until': []" in messages[1]) is chat
