"""Servers: requests that fail, and responses that lack something."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models import api_models
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from support.failing_server import FailingServer, Logprobs, choice_for, serving

from lm_eval_ext.runs import servers

Answer = str | tuple[float, bool]
Evaluate = Callable[..., list[Answer]]


@pytest.fixture
def server() -> Iterator[FailingServer]:
    """A server that serves everything, until a test plans otherwise."""
    with serving() as failing_server:
        yield failing_server


def text_answers(model: LocalCompletionsAPI) -> list[Answer]:
    """Return a model's answers to five prompts."""
    requests = []
    for number in range(5):
        arguments = (f"prompt {number}", {"until": ["\n"]})
        requests.append(Instance("generate_until", {}, arguments, 0))
    return list(model.generate_until(requests))


def logprob_answers(model: LocalCompletionsAPI) -> list[Answer]:
    """Return the log-probabilities that a model gives to five continuations."""
    model.tokenizer = "ours"
    model.tokenized_requests = True
    requests = [(("", ""), [7, number], [number + 1, 9]) for number in range(5)]
    return list(model._loglikelihood_tokens(requests))


ANSWERS_OF_KIND = {"texts": text_answers, "log-probabilities": logprob_answers}


@pytest.fixture
def evaluate(server: FailingServer, monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    """A function that makes requests as a process of ``run`` does: by lm-eval's classes."""

    def no_wait(**_options: float) -> Callable[[object], int]:
        return lambda _attempt: 0

    monkeypatch.setattr(api_models.TemplateAPI, "__init__", api_models.TemplateAPI.__init__)
    monkeypatch.setattr(api_models, "wait_exponential", no_wait)
    servers.patch_requests(api_models)

    def evaluate(kind: str, *, concurrent: int = 1, **arguments: int) -> list[Answer]:
        model = LocalCompletionsAPI(
            model="any", num_concurrent=concurrent, batch_size=1, tokenizer_backend=None,
            base_url=server.url, **arguments,
        )  # fmt: skip
        model.timeout = 1
        return ANSWERS_OF_KIND[kind](model)

    return evaluate


def test_a_process_of_run_changes_lm_eval_before_it_makes_a_model() -> None:
    """lm-eval imports the model type first, which imports the module that is changed."""
    program = (
        "from lm_eval_ext._autoload import install, watch\n"
        "from lm_eval_ext.runs import servers\n"
        "install()\n"
        "watch(servers.MODULE, servers.patch_requests, '')\n"
        "from lm_eval.models.openai_completions import LocalChatCompletion\n"
        "model = LocalChatCompletion(base_url='http://127.0.0.1:1', model='any')\n"
        "print(model.max_retries)\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert process.stdout == f"{servers.ATTEMPTS}\n", process.stderr


@pytest.mark.parametrize("concurrent", [1, 3], ids=["one at a time", "three at a time"])
@pytest.mark.parametrize("kind", ANSWERS_OF_KIND)
def test_failures_that_pass_change_no_answer(
    server: FailingServer, evaluate: Evaluate, kind: str, concurrent: int
) -> None:
    answers = evaluate(kind)
    assert len(set(answers)) == 5
    server.requests.clear()
    failures = {1: "429", 3: "503", 4: "503", 5: "503", 6: "half"}

    def plan(request_number: int) -> str:
        return failures.get(request_number, "")

    server.plan = plan
    assert evaluate(kind, concurrent=concurrent) == answers
    assert len(server.requests) == len(answers) + len(failures)


@pytest.mark.parametrize(
    ("arguments", "attempts"),
    [
        pytest.param({}, servers.ATTEMPTS, id="default"),
        pytest.param({"max_retries": 2}, 2, id="max_retries"),
    ],
)
def test_a_request_is_repeated_as_often_as_the_model_says(
    server: FailingServer, evaluate: Evaluate, arguments: dict[str, int], attempts: int
) -> None:
    server.plan = lambda _: "503"
    with pytest.raises(Exception, match="503"):
        evaluate("texts", **arguments)
    assert len(server.requests) == attempts


PROMPT = [7, 1, 2]
COMPLETE = choice_for(PROMPT, 0)["logprobs"]


def choice_with(logprobs: Logprobs | None) -> servers.Choice:
    """Return a response to a prompt with these log-probabilities, which may be wrong."""
    return cast("servers.Choice", {"index": 0, "logprobs": logprobs})


def lists_of(logprobs: Logprobs, start: int, end: int) -> Logprobs:
    """Return a range of all lists of log-probabilities."""
    return {
        "token_logprobs": logprobs["token_logprobs"][start:end],
        "top_logprobs": logprobs["top_logprobs"][start:end],
    }


def with_repeated_end(logprobs: Logprobs) -> Logprobs:
    """Return lists of log-probabilities whose last element is there twice."""
    return {
        "token_logprobs": [*logprobs["token_logprobs"], logprobs["token_logprobs"][-1]],
        "top_logprobs": [*logprobs["top_logprobs"], logprobs["top_logprobs"][-1]],
    }


def test_log_probabilities_of_the_prompt_are_accepted() -> None:
    servers.check_log_probabilities(choice_with(COMPLETE), PROMPT, None)


@pytest.mark.parametrize(
    "logprobs",
    [
        pytest.param(None, id="none"),
        pytest.param(lists_of(COMPLETE, 1, 4), id="without the first token"),
        pytest.param(with_repeated_end(COMPLETE), id="one too many"),
        pytest.param({**COMPLETE, "token_logprobs": [None, -1, None, -1]}, id="one missing"),
    ],
)
def test_log_probabilities_that_are_not_those_of_the_prompt_are_refused(
    logprobs: Logprobs | None,
) -> None:
    with pytest.raises(servers.AnswerError):
        servers.check_log_probabilities(choice_with(logprobs), PROMPT, None)


@pytest.mark.parametrize("concurrent", [1, 3], ids=["one at a time", "three at a time"])
@pytest.mark.parametrize("failure", ["empty", "fewer"])
def test_responses_without_log_probabilities_end_the_evaluation(
    server: FailingServer, evaluate: Evaluate, failure: str, concurrent: int
) -> None:
    def fail_second(request_number: int) -> str:
        return failure if request_number == 2 else ""

    server.plan = fail_second
    with pytest.raises(servers.AnswerError):
        evaluate("log-probabilities", concurrent=concurrent, max_retries=1)


def test_nothing_generated_after_a_prompt_costs_no_token() -> None:
    choice = choice_with(lists_of(COMPLETE, 0, 3))
    servers.check_log_probabilities(choice, PROMPT, {"completion_tokens": 0})
    parsed = LocalCompletionsAPI.parse_logprobs({"choices": [choice]}, ctxlens=[1])
    assert parsed == [(-1.25, False)]


@pytest.mark.parametrize(
    ("content", "until", "text"),
    [
        pytest.param("a\n b", ["\n"], "a", id="stop string"),
        pytest.param("a;b\n", ["\n", ";"], "a", id="first of two stop strings"),
        pytest.param("a", ["\n"], "a", id="no stop string in the text"),
        pytest.param("", ["\n"], "", id="empty"),
        pytest.param("a\nb", [], "a\nb", id="without stop strings"),
        pytest.param("a\\nb", ["\n"], "a\\nb", id="escaped stop string"),
        pytest.param(None, ["\n"], None, id="no content"),
    ],
)
@pytest.mark.usefixtures("evaluate")
def test_a_text_ends_before_its_stop_string(
    content: str | None, until: list[str], text: str | None
) -> None:
    model = LocalChatCompletion(base_url="http://a", model="any")
    payload = model._create_payload(
        [], generate=True, gen_kwargs={"until": until}, seed=1, eos=None
    )
    assert payload.get("stop") == (until or None)
    response = {"choices": [{"index": 0, "message": {"content": content}}]}
    assert model.parse_generations(outputs=response) == [text]
