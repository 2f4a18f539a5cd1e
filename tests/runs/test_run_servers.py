"""Servers: requests that fail, and answers that lack something."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
    """Asks through lm-eval's own classes, as a process that ``run`` has started."""
    monkeypatch.setattr(api_models.TemplateAPI, "__init__", api_models.TemplateAPI.__init__)
    monkeypatch.setattr(api_models, "wait_exponential", lambda **_: lambda _: 0)
    servers.be_patient(api_models)

    def ask(what: str, *, together: int = 1, count: int = 5, **given: Any) -> list[Any]:
        model = LocalCompletionsAPI(
            model="any", num_concurrent=together, batch_size=1, tokenizer_backend=None,
            base_url=server.url, **given,
        )  # fmt: skip
        model.timeout = 1
        if what == "log-probabilities":
            model.tokenizer, model.tokenized_requests = "ours", True
            rows = [(("", ""), [7, n], [n + 1, 9]) for n in range(count)]
            found: list[Any] = model._loglikelihood_tokens(rows)
            return found
        requests = [
            Instance("generate_until", {}, (f"prompt {n}", {"until": ["\n"]}), n)
            for n in range(count)
        ]
        return list(model.generate_until(requests))

    def in_a_thread(*args: Any, **given: Any) -> list[Any]:
        # In the main one a browser of other tests may keep a loop of asyncio running.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(ask, *args, **given).result()

    return in_a_thread


def expected(what: str, count: int) -> list[Any]:
    if what == "log-probabilities":
        values = [answer([7, n, n + 1, 9], 0)["logprobs"]["token_logprobs"] for n in range(count)]
        return [(sum(one[2:-1]), all(value == -0.25 for value in one[2:-1])) for one in values]
    return [answer(f"prompt {number}", 0)["text"] for number in range(count)]


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("what", ["texts", "log-probabilities"])
def test_what_fails_for_a_while_changes_no_answer(
    server: Failing, ask: Asked, what: str, together: int
) -> None:
    plan = {1: "429", 3: "503", 4: "503", 5: "503", 6: "half"}
    server.plan = lambda number: plan.get(number, "")
    assert ask(what, together=together) == expected(what, 5)


def test_a_server_is_asked_as_often_as_the_model_says(server: Failing, ask: Asked) -> None:
    server.plan = lambda _: "503"
    for given, times in (({}, servers.ATTEMPTS), ({"max_retries": 2}, 2)):
        server.asked.clear()
        with pytest.raises(Exception, match="503"):
            ask("texts", count=1, **given)
        assert len(server.asked) == times


LOGGED: dict[str, Any] = {"index": 0, "logprobs": answer([7, 1, 2], 0)["logprobs"]}
SHORT = {key: value[1:] for key, value in LOGGED["logprobs"].items()}
LONG = {key: [*value, value[-1]] for key, value in LOGGED["logprobs"].items()}
OTHERS = {
    "no log-probabilities": {"index": 0, "text": "a"},
    "null": {"index": 0, "logprobs": None},
    "without BOS": {"index": 0, "logprobs": SHORT},
    "with BOS": {"index": 0, "logprobs": LONG},
    "null inside": {
        "index": 0, "logprobs": {**LOGGED["logprobs"], "token_logprobs": [None, -1, None, -1]},
    },
}  # fmt: skip


@pytest.mark.parametrize("choice", OTHERS.values(), ids=OTHERS)
def test_log_probabilities_must_be_those_of_the_prompt(choice: Any) -> None:
    servers.check_log_probabilities(LOGGED, [7, 1, 2], None)
    with pytest.raises(servers.AnswerError):
        servers.check_log_probabilities(choice, [7, 1, 2], None)


def test_answers_that_lack_log_probabilities_end_the_evaluation(
    server: Failing, ask: Asked
) -> None:
    for how in ("empty", "fewer"):
        for together in (1, 3):
            server.plan = lambda number, how=how: how * (number == 2)  # type: ignore[misc]
            server.asked.clear()
            with pytest.raises(servers.AnswerError):
                ask("log-probabilities", together=together, max_retries=1)


def test_nothing_generated_after_a_prompt_costs_no_token() -> None:
    logged = {
        "token_logprobs": [None, -1.0, -2.0, -4.0],
        "top_logprobs": [None, *[{"a": -1.0}] * 3],
    }
    choice = {"index": 0, "logprobs": logged}
    servers.check_log_probabilities(choice, [7, 1, 2, 3], {"completion_tokens": 0})
    assert LocalCompletionsAPI.parse_logprobs({"choices": [choice]}, ctxlens=[2]) == [(-6.0, False)]


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
    given = {"until": until}
    payload = model._create_payload([], generate=True, gen_kwargs=given, seed=1, eos=None)
    assert payload.get("stop", []) == until and ("stop" in payload) == bool(until)
    said = {"choices": [{"index": 0, "message": {"content": sent}}]}
    assert model.parse_generations(outputs=said) == [kept]
