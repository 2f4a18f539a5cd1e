"""Servers: requests that fail, and answers that lack something."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models import api_models
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from support.failing_server import Failing, answer, serving

from lm_eval_ext.runs import servers

Asked = Callable[..., list[Any]]


@pytest.fixture
def server() -> Iterator[Failing]:
    with serving() as failing:
        yield failing


@pytest.fixture
def ask(server: Failing, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return a function that asks as a process which ``run`` has started: by lm-eval's classes."""
    monkeypatch.setattr(api_models.TemplateAPI, "__init__", api_models.TemplateAPI.__init__)
    monkeypatch.setattr(api_models, "wait_exponential", lambda **_: lambda _: 0)
    servers.be_patient(api_models)

    def ask(kind: str, *, together: int = 1, **arguments: Any) -> list[Any]:
        model = LocalCompletionsAPI(
            model="any", num_concurrent=together, batch_size=1, tokenizer_backend=None,
            base_url=server.url, **arguments,
        )  # fmt: skip
        model.timeout = 1
        if kind == "log-probabilities":
            model.tokenizer, model.tokenized_requests = "ours", True
            rows = [(("", ""), [7, n], [n + 1, 9]) for n in range(5)]
            answers: list[Any] = model._loglikelihood_tokens(rows)
            return answers
        prompts = ((f"prompt {n}", {"until": ["\n"]}) for n in range(5))
        requests = [Instance("generate_until", {}, arguments, 0) for arguments in prompts]
        return list(model.generate_until(requests))

    return ask


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("kind", ["texts", "log-probabilities"])
def test_what_fails_for_a_while_changes_no_answer(
    server: Failing, ask: Asked, kind: str, together: int
) -> None:
    answers = ask(kind)
    assert len(set(answers)) == 5
    server.asked.clear()
    plan = {1: "429", 3: "503", 4: "503", 5: "503", 6: "half"}
    server.plan = lambda number: plan.get(number, "")
    assert ask(kind, together=together) == answers
    assert len(server.asked) == 10


@pytest.mark.parametrize(
    ("arguments", "attempts"), [({}, servers.ATTEMPTS), ({"max_retries": 2}, 2)], ids=str
)
def test_a_server_is_asked_as_often_as_the_model_says(
    server: Failing, ask: Asked, arguments: dict[str, int], attempts: int
) -> None:
    server.plan = lambda _: "503"
    with pytest.raises(Exception, match="503"):
        ask("texts", **arguments)
    assert len(server.asked) == attempts


GOOD = answer([7, 1, 2], 0)["logprobs"]


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {key: value[1:] for key, value in GOOD.items()},  # without BOS
        {key: [*value, value[-1]] for key, value in GOOD.items()},  # with one too many
        {**GOOD, "token_logprobs": [None, -1, None, -1]},
    ],
)
def test_log_probabilities_must_be_those_of_the_prompt(logprobs: Any) -> None:
    servers.check_log_probabilities({"logprobs": GOOD}, [7, 1, 2], None)
    with pytest.raises(servers.AnswerError):
        servers.check_log_probabilities({"logprobs": logprobs}, [7, 1, 2], None)


@pytest.mark.parametrize("how", ["empty", "fewer"])
def test_answers_that_lack_log_probabilities_end_the_evaluation(
    server: Failing, ask: Asked, how: str
) -> None:
    server.plan = lambda number: how * (number == 2)
    for together in (1, 3):
        server.asked.clear()
        with pytest.raises(servers.AnswerError):
            ask("log-probabilities", together=together, max_retries=1)


def test_nothing_generated_after_a_prompt_costs_no_token() -> None:
    choice = {"index": 0, "logprobs": {key: value[:-1] for key, value in GOOD.items()}}
    servers.check_log_probabilities(choice, [7, 1, 2], {"completion_tokens": 0})
    parsed = LocalCompletionsAPI.parse_logprobs({"choices": [choice]}, ctxlens=[1])
    assert parsed == [(-1.25, False)]


@pytest.mark.parametrize(
    ("sent", "until", "kept"),
    [
        ("a\n b", ["\n"], "a"), ("a;b\n", ["\n", ";"], "a"), ("a", ["\n"], "a"), ("", ["\n"], ""),
        ("a\nb", [], "a\nb"), ("a\\nb", ["\n"], "a\\nb"), (None, ["\n"], None),
    ],
)  # fmt: skip
def test_a_text_ends_before_its_stop_string(
    ask: Asked, sent: str | None, until: list[str], kept: str | None
) -> None:
    model = LocalChatCompletion(base_url="http://a", model="any")
    payload = model._create_payload(
        [], generate=True, gen_kwargs={"until": until}, seed=1, eos=None
    )
    assert payload.get("stop") == (until or None)
    response = {"choices": [{"index": 0, "message": {"content": sent}}]}
    assert model.parse_generations(outputs=response) == [kept]
