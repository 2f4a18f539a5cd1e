"""Servers: what they are sent, what is asked again, and one line where that does not help."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from lm_eval.models import api_models
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from support.failing_server import Failing, answer, serving

from lm_eval_ext.runs import server_answers, servers
from lm_eval_ext.runs.tasks import own_manager

ONCE = ("429", "500", "502", "503", "408", "half", "cut", "hangs up", "error", "empty")
FINAL = {
    "400": "told 400.*does not take such requests",
    "401": "told 401.*OPENAI_API_KEY",
    "404": "told 404.*correct base_url",
    "422": "told 422.*does not take such requests",
    "429 86400": "told 429.*after 86400 s; wait, or lower num_concurrent",
}
Asked = Callable[..., list[Any]]


@pytest.fixture
def server() -> Iterator[Failing]:
    with serving() as failing:
        yield failing


@pytest.fixture
def ask(server: Failing, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Asks through lm-eval's own classes, as a process that ``run`` has started."""
    monkeypatch.setattr(api_models, "retry", api_models.retry)
    monkeypatch.setattr(api_models.TemplateAPI, "__init__", api_models.TemplateAPI.__init__)
    servers.be_patient(api_models)

    def ask(
        what: str,
        *,
        together: int = 1,
        batch: int = 1,
        count: int = 5,
        until: Sequence[str] = ("\n",),
        timeout_s: float = 60,
        **given: Any,
    ) -> list[Any]:
        kind = LocalChatCompletion if what == "chat" else LocalCompletionsAPI
        arguments = {
            "retry_wait": 0.002,
            "tokenizer_backend": None,
            "base_url": server.url,
            **given,
        }
        model = kind(model="any", num_concurrent=together, batch_size=batch, **arguments)
        model.timeout = timeout_s
        if what == "log-probabilities":
            model.tokenizer, model.tokenized_requests = "ours", True
            rows = [(("", ""), [7, n], [n + 1, 9]) for n in range(count)]
            found: list[Any] = model._loglikelihood_tokens(rows)
            return found
        prompts: list[Any] = [f"prompt {number}" for number in range(count)]
        if what == "chat":
            prompts = [model.apply_chat_template([{"role": "user", "content": p}]) for p in prompts]
        return list(
            model.generate_until(
                [
                    Instance("generate_until", {}, (p, {"until": list(until)}), n)
                    for n, p in enumerate(prompts)
                ]
            )
        )

    def in_a_thread(*args: Any, **given: Any) -> list[Any]:
        # In the main one a browser of other tests may keep a loop of asyncio running.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(ask, *args, **given).result()

    return in_a_thread


def expected(what: str, count: int = 5) -> list[Any]:
    if what == "log-probabilities":
        values = [answer([7, n, n + 1, 9], 0)["logprobs"]["token_logprobs"] for n in range(count)]
        return [(sum(one[2:-1]), all(value == -0.25 for value in one[2:-1])) for one in values]
    texts: list[Any] = [f"prompt {number}" for number in range(count)]
    if what == "chat":
        texts = [[{"role": "user", "content": text}] for text in texts]
    return [answer(text, 0)["text"] for text in texts]


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("what", ["texts", "chat", "log-probabilities"])
def test_what_fails_for_a_while_changes_no_answer(
    server: Failing, ask: Asked, what: str, together: int
) -> None:
    # Without log-probabilities a server is taken for one that cannot give them.
    ways = [how for how in ONCE if (how, what) != ("empty", "log-probabilities")]
    plan = dict(enumerate((how for way in ways for how in (way, "", "")), start=1))
    server.plan = lambda number: plan.get(number, "")
    assert ask(what, together=together, count=24) == expected(what, 24)
    assert len(server.asked) == 24 + len(ways)
    assert len(server.answered) == len(set(server.answered)) == 24


@pytest.mark.parametrize("together", [1, 3])
def test_a_batch_counts_only_if_it_is_whole(server: Failing, ask: Asked, together: int) -> None:
    server.plan = lambda number: {1: "fewer", 3: "empty", 4: "fewer"}.get(number, "")
    assert ask("texts", together=together, batch=2) == expected("texts")
    assert ask("log-probabilities", together=together, batch=2) == expected("log-probabilities")


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("how", [*ONCE, *FINAL])
def test_what_does_not_end_is_one_line(
    server: Failing, ask: Asked, how: str, together: int
) -> None:
    server.plan = lambda number: how if number > 2 else ""
    with pytest.raises(servers.ServerError) as caught:
        ask("chat", together=together, max_retries=3)
    said = str(caught.value)
    assert said.startswith(f"{server.url} ")
    assert "\n" not in said
    assert said.endswith("answers so far are kept, and the same command continues with them")
    assert len(server.answered) == 2
    if how in FINAL:
        assert re.search(FINAL[how], said)
        assert " times" not in said
    else:
        assert " 3 times in " in said
        # Two others may be under way when the first one gives up.
        assert 3 <= len(server.asked) - 2 <= 3 * together


@pytest.mark.parametrize("together", [1, 3])
def test_a_server_that_says_nothing(
    server: Failing, ask: Asked, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan = lambda _: "is silent"
    with pytest.raises(servers.ServerError, match=r"did not answer within 0.1 s 4 times .*timeout"):
        ask("texts", together=together, timeout_s=0.1)
    monkeypatch.setattr(servers, "OF_DOUBTFUL", 50)  # a busy machine is silent, too
    server.asked.clear()
    server.plan = lambda number: "is silent" * (number < 4)
    found = ask("texts", together=together, timeout_s=1, max_retries=50)
    assert found == expected("texts")


def test_nobody_else_is_asked_while_a_busy_server_is_waited_for(
    server: Failing, ask: Asked
) -> None:
    server.plan = lambda number: "429" if number <= 9 else ""
    assert ask("texts", together=3, count=30) == expected("texts", 30)
    assert len(set(server.asked[:9])) == 3


def test_pauses_grow_and_are_as_long_as_the_server_asks_for(
    server: Failing, ask: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    plan = {1: "503", 2: "503", 3: "429 0.3", 4: "503"}
    server.plan = lambda number: plan.get(number, "")
    with caplog.at_level(logging.WARNING):
        ask("texts", count=1, retry_wait=0.04)
    pauses = [float(one) for one in re.findall(r"the next one in ([\d.]+) s", caplog.text)]
    for pause, least in zip(pauses, (0.04, 0.08, 0.3, 0.32), strict=True):
        assert least - 0.01 <= pause <= least + 0.02
    soon = datetime.now(timezone.utc) + timedelta(seconds=100)
    seconds = server_answers.refusal(
        503, "", {"Retry-After": f"{soon:%a, %d %b %Y %H:%M:%S GMT}"}, ""
    )
    assert 90 < seconds.after_s <= 100
    assert not server_answers.refusal(503, None, {"Retry-After": "soon"}, "<html>").after_s


def test_a_server_that_is_not_there_and_an_address_that_is_none(
    server: Failing, ask: Asked
) -> None:
    url = server.url.replace("//", "//user:secret@").replace("completions", "none?key=secret")
    for together in (1, 2):
        with pytest.raises(servers.ServerError, match=r"Connection refused.*see that it runs"):
            ask("texts", together=together, base_url="http://127.0.0.1:9/v1", max_retries=2)
        with pytest.raises(servers.ServerError, match="is no address; correct base_url"):
            ask("texts", together=together, base_url="http:///v1", max_retries=2)
        server.plan = lambda _: "404"
        with pytest.raises(servers.ServerError) as caught:
            ask("texts", together=together, base_url=url)
        assert "secret" not in str(caught.value)


WHOLE = {
    "null": {"index": 0, "message": {"content": None}, "finish_reason": "length"},
    "empty": {"index": 0, "message": {"content": ""}},
    "refused": {"index": 0, "message": {"refusal": "no"}},
    "thought": {
        "index": 0,
        "message": {"content": "a", "reasoning_content": "b"},
        "logprobs": None,
    },
}
LOGGED: dict[str, Any] = {"index": 0, "logprobs": answer([7, 1, 2], 0)["logprobs"]}
SHORT = {key: value[1:] for key, value in LOGGED["logprobs"].items()}
LONG = {key: [*value, value[-1]] for key, value in LOGGED["logprobs"].items()}
OTHERS = {
    "no log-probabilities": {"index": 0, "text": "a"},
    "null": {"index": 0, "logprobs": None},
    "chat's": {"index": 0, "logprobs": {"content": [{"token": "a", "logprob": -1}]}},
    "one token": {"index": 0, "logprobs": {"token_logprobs": [-1.0], "top_logprobs": [{}]}},
    "without BOS": {"index": 0, "logprobs": SHORT},
    "with BOS": {"index": 0, "logprobs": LONG},
    "null inside": {
        "index": 0, "logprobs": {**LOGGED["logprobs"], "token_logprobs": [None, -1, None, -1]},
    },
}  # fmt: skip


def test_what_is_whole_and_what_is_of_other_tokens() -> None:
    chat, completions = object.__new__(LocalChatCompletion), object.__new__(LocalCompletionsAPI)
    for choice in WHOLE.values():
        server_answers.check(chat, {"choices": [choice]}, ["a"], {"generate": True})
    server_answers.check(completions, {"choices": [LOGGED]}, [[7, 1, 2]], {"generate": False})
    for name, choice in OTHERS.items():
        with pytest.raises(server_answers.AnswerError) as caught:
            server_answers.check(
                completions, {"choices": [choice]}, [[7, 1, 2]], {"generate": False}
            )
        assert caught.value.again is (name == "null inside"), name


@pytest.mark.parametrize("multiturn", [True, False])
def test_a_chat_server_gets_the_turns_that_hf_makes_its_prompt_of(
    server: Failing, ask: Asked, multiturn: bool
) -> None:
    def rendered(turns: list[dict[str, str]], *_: Any, **__: Any) -> str:
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)

    chat = LocalChatCompletion(base_url=server.url, model="any", max_retries=1)
    for name in ("conceptual_mini", "cogs_mini_icl_gen", "diner_mini_name"):
        prompts = []
        for template in (rendered, chat.apply_chat_template):
            task = own_manager().load([name])["tasks"][name]
            task.build_all_requests(
                limit=2, rank=0, world_size=1, apply_chat_template=True, chat_template=template,
                fewshot_as_multiturn=multiturn, system_instruction="Be brief.\n",
            )  # fmt: skip
            prompts.append(task.instances)
        server.asked.clear()
        chat.generate_until(prompts[1])
        arrived = [rendered(turns) for asked in server.asked for turns in json.loads(asked)]
        assert sorted(arrived) == sorted(one.arguments[0] for one in prompts[0])
        assert all(text.startswith("<system>Be brief.") for text in arrived)


@pytest.mark.parametrize(
    ("sent", "until", "kept"),
    [
        ("a\n b", ["\n"], "a"), ("a;b\n", ["\n", ";"], "a"), ("a", ["\n"], "a"), ("", ["\n"], ""),
        ("a\nb", [], "a\nb"), ("a\nb", None, "a\nb"), ("a\\nb", ["\n"], "a\\nb"), ("a", [""], "a"),
    ],
)  # fmt: skip
def test_a_text_ends_before_its_stop_string(sent: str, until: list[str], kept: str) -> None:
    options = {"generate": True, "gen_kwargs": {"until": until}}
    for kind, choice in ((LocalCompletionsAPI, {"text": sent}), (LocalChatCompletion, {})):
        said = {"choices": [{"index": 0, "message": {"content": sent}, **choice}]}
        model = object.__new__(kind)
        model.think_end_token = None
        server_answers.check(model, said, ["a"], options)
        assert model.parse_generations(said) == [kept]


def test_nothing_generated_after_a_prompt_costs_no_token() -> None:
    model, values = object.__new__(LocalCompletionsAPI), [None, -1.0, -2.0, -4.0]
    logged = {"token_logprobs": values, "top_logprobs": [None, *({"a": -1.0} for _ in values[1:])]}
    said = {"choices": [{"index": 0, "logprobs": logged}], "usage": {"completion_tokens": 0}}
    server_answers.check(model, said, [[7, 1, 2, 3]], {"generate": False})
    assert model.parse_logprobs(said, ctxlens=[2]) == [(-6.0, False)]


def test_a_request_without_stop_strings_has_no_list_of_them(server: Failing, ask: Asked) -> None:
    sent: list[Any] = []
    server.plan = lambda _: sent.append(server.body) or ""
    ask("chat", count=1, until=[])
    ask("chat", count=1, until=["\n"])
    assert [body.get("stop") for body in sent] == [None, ["\n"]]
    assert "stop" not in sent[0]


def test_what_the_page_says_of_lm_eval_alone(server: Failing) -> None:
    """An answer without choices is an empty one, and without the prompt's tokens all are alike."""
    server.plan = lambda _: "error"
    chat = LocalChatCompletion(base_url=server.url, model="any", max_retries=1)
    prompt = chat.apply_chat_template([{"role": "user", "content": "a"}])
    request = Instance("generate_until", {}, (prompt, {"until": []}), 0)
    assert chat.generate_until([request]) == [""]
    one = {"index": 0, "logprobs": {"token_logprobs": [-1.0], "top_logprobs": [{"a": -1.0}]}}
    assert LocalCompletionsAPI.parse_logprobs({"choices": [one]}, ctxlens=[3]) == [(0, True)]
