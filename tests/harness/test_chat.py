"""Chat templates: one policy for every benchmark, as a tiny model's log shows it."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs.answers import INSTRUCTION

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import Task
    from lm_eval.models.huggingface import HFLM

TASKS = ("lieder_mini", "magnifico_mini", "cogs_mini_id", "cogs_mini_overestimation",
         "cogs_mini_icl_id", "conceptual_mini", "diner_mini_icl")  # fmt: skip

TEMPLATE = (
    "{% for m in messages %}<{{m.role}}>{{m.content}}</turn>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def model(tiny_models: Path) -> "HFLM":
    """A tiny model with a chat template."""
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=str(tiny_models / "llama"), device="cpu", batch_size=8)
    model.tokenizer.chat_template = TEMPLATE
    return model


@pytest.fixture(scope="module")
def runs(model: "HFLM", run_cache: Path) -> dict[str, Any]:
    """Results of one document of each task, as lm-eval logs them."""
    from lm_eval import evaluate

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        tasks = {name: load_task(name) for name in TASKS}
    for task in tasks.values():
        if task.OUTPUT_TYPE == "generate_until":
            task.set_config("generation_kwargs", {"max_gen_toks": 3}, update=True)
    results: dict[str, Any] = evaluate(
        model, {"tasks": tasks, "groups": {}}, limit=1, bootstrap_iters=0,
        apply_chat_template=True, fewshot_as_multiturn=True, system_instruction="Be brief.",
    )  # fmt: skip
    return results


@pytest.mark.parametrize("name", TASKS)
def test_the_log_has_the_requests_of_the_model(name: str, runs: dict[str, Any]) -> None:
    """System message, turns, the document's text, the instruction and stop strings."""
    config = runs["configs"][name]
    signature = config["metadata"]["signature"]
    (sample,) = runs["samples"][name]
    doc = sample["doc"]
    contexts = doc.get("context") or [doc.get("prompt") or doc.get("input") or doc["sentence"]]
    for number, (prompt, continuation_or_settings) in enumerate(sample["arguments"]):
        system, *demonstrations, user_turn, end = prompt.split("</turn>")
        assert (system, end) == ("<system>Be brief.", "<assistant>")
        roles = [turn.partition(">")[0] for turn in demonstrations]
        assert roles == ["<user", "<assistant"] * (len(demonstrations) // 2)
        question = user_turn.removeprefix("<user>")
        context = contexts[number] if len(contexts) > 1 else contexts[0]
        if name == "lieder_mini":
            assert question == context
            assert continuation_or_settings == doc["continuation"][number].lstrip()
            continue
        assert continuation_or_settings["until"] == config["generation_kwargs"]["until"] == []
        assert continuation_or_settings["max_gen_toks"] == 3
        if name in ("cogs_mini_id", "cogs_mini_overestimation"):
            assert question == f"{INSTRUCTION}\n\n{context}"
            assert "instruction" in signature
        else:
            assert context in question
            assert "instruction" not in signature
    assert ("answers" in signature) is (name != "lieder_mini")


def build(task: "Task", limit: int, *, chat: bool = True, end: str = "") -> list["Instance"]:
    """Build requests, in a chat with a template that shows the last turn and ends with ``end``."""

    def chat_template(turns: list[dict[str, str]], **_options: object) -> str:
        return turns[-1]["content"] + end

    task.build_all_requests(
        limit=limit,
        rank=0,
        world_size=1,
        apply_chat_template=chat,
        chat_template=chat_template,
    )
    return list(task.instances)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"cogs_instruction": False}, id="no instruction"),
        pytest.param({"cogs_prefix": "Parse: "}, id="a prefix"),
    ],
)
def test_a_user_may_leave_the_instruction_out_or_write_another(options: dict[str, object]) -> None:
    task = load_task("cogs_mini_id", **options)
    (request,) = build(task, 1)
    assert request.args[0] == request.doc["sentence"]
    assert "instruction" not in task.dump_config()["metadata"]["signature"]


@pytest.mark.parametrize(
    ("name", "metric", "response", "right"),
    [
        pytest.param(
            "cogs_mini_id",
            "exact_match",
            "Here is the form:\n```\n{form}\n```",
            True,
            id="COGS, right",
        ),
        pytest.param(
            "cogs_mini_id",
            "exact_match",
            "Here is the form:\n```\n{form} AND\n```",
            False,
            id="COGS, wrong",
        ),
        pytest.param(
            "conceptual_mini",
            "accuracy",
            "<think>Hm.</think>The answer is {answer}.\n\nIt fits.",
            True,
            id="conceptual, right",
        ),
        pytest.param(
            "conceptual_mini",
            "accuracy",
            "The answer is not {answer}.",
            False,
            id="conceptual, wrong",
        ),
    ],
)
def test_answers_are_read_only_after_a_template(
    name: str, metric: str, response: str, right: bool, caplog: pytest.LogCaptureFixture
) -> None:
    task = load_task(name)
    for chat in (True, False):
        requests = build(task, 1, chat=chat)
        for request in requests:
            request.resps = [response.format(**request.doc)]
        task.apply_filters()
        answers = [request.filtered_resps["none"] for request in requests]
        rows = task.process_results(requests[0].doc, answers)["rows"]
        assert (rows[-1][metric] == 1.0) is (right and chat)
        assert requests[0].resps == [response.format(**requests[0].doc)], "the log keeps it"
    assert "thinking" not in caplog.text


def test_thoughts_that_do_not_end_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    task = load_task("cogs_mini_id")
    unfinished, finished = build(task, 2, end="<assistant><think>\n")
    form = finished.doc["form"]
    unfinished.resps = [form]
    finished.resps = [f"so</think>{form}"]
    with caplog.at_level(logging.WARNING):
        task.apply_filters()
    assert unfinished.filtered_resps["none"] == "", "the template opened a thought"
    assert finished.filtered_resps["none"] == form
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
    of_another_task, of_task = [message for message in caplog.messages if "gen_kw" in message]
    assert of_another_task == "another_task: Using gen_kwargs: {}"
    assert ("'until': []" in of_task) is chat
