"""Recorded answers: the format, matching, and messages about missing answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import MissingAnswer, MissingLogprob, MissingText, allow
from lm_eval_ext.models.recorded import AnswerError, RecordedLM

Replay = Callable[..., RecordedLM]


def write(path: Path, *rows: Any) -> str:
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """Makes a model of rows."""
    return lambda *rows, **options: RecordedLM(path=write(tmp_path / "a.jsonl", *rows), **options)


def row(*arguments: Any, response: Any) -> dict[str, Any]:
    return {"arguments": list(arguments), "response": response}


def request(
    kind: str, *arguments: Any, doc: dict[str, Any] | None = None, idx: int = 0, ours: bool = True
) -> Instance:
    instance = Instance(
        request_type=kind,  # type: ignore[arg-type]
        doc=doc or {},
        arguments=arguments,
        idx=idx,
        metadata=("some_task", 0, 1),
    )
    if ours:
        allow(instance)
    return instance


def ll(context: str, continuation: str, **kwargs: Any) -> Instance:
    return request("loglikelihood", context, continuation, **kwargs)


def gen(prompt: str, **kwargs: Any) -> Instance:
    return request("generate_until", prompt, {"until": ["\n"]}, **kwargs)


def rolling(text: str) -> Instance:
    return request("loglikelihood_rolling", text)


def test_log_probabilities(replay: Replay) -> None:
    model = replay(
        {"request_type": "loglikelihood", **row("A", " b", response=[-1.5, True])},
        row("A", " c", response=["-2.5", "False"]),
        {"request_type": "loglikelihood_rolling", **row("text", response=-7.25)},
        batch_size=8, device="cpu", max_batch_size=None,
    )  # fmt: skip
    assert model.loglikelihood([ll("A", " c"), ll("A", " b")]) == [(-2.5, False), (-1.5, True)]
    assert model.loglikelihood_rolling([rolling("text")]) == [-7.25]


def test_generation_rows_ignore_settings_and_keep_any_text(replay: Replay) -> None:
    texts = ["", "two\nlines", "红烧肉", "<script>", "\u202eright to left", "\x00nul"]
    model = replay(*(row(f"Q{i}", {"temperature": 1}, response=t) for i, t in enumerate(texts)))
    assert model.generate_until([gen(f"Q{i}") for i in range(len(texts))]) == texts


def test_a_part_of_the_document_is_enough(replay: Replay) -> None:
    model = replay(
        {"doc": {"id": 7}, "response": "seven"},
        {"doc": {"id": 8, "side": "b"}, "response": "eight b"},
        {"doc": {"id": 9}, "idx": 1, "request_type": "loglikelihood", "response": [-1, False]},
    )
    asked = [gen("p", doc={"id": 7, "text": "x"}), gen("q", doc={"id": 8, "side": "b", "x": "y"})]
    assert model.generate_until(asked) == ["seven", "eight b"]
    assert model.loglikelihood([ll("c", " d", doc={"id": 9}, idx=1)]) == [(-1.0, False)]
    for doc in ({"id": 8, "side": "a"}, {"id": "7"}, {}):
        with pytest.raises(AnswerError):
            model.generate_until([gen("whatever", doc=doc)])


SAMPLE = {
    "doc_id": 0,
    "doc": {"q": "1+1", "n": 2},
    "target": "2",
    "arguments": {
        "gen_args_0": {"arg_0": "1+1=", "arg_1": " 2"},
        "gen_args_1": {"arg_0": "1+1=", "arg_1": " 3"},
    },
    "resps": [[["-0.5", "True"]], [["-4.000000000000001", "False"]]],
    "filtered_resps": [["-0.5", "True"], ["-4.0", "False"]],
    "filter": "none",
}


def test_lm_evals_own_samples(replay: Replay) -> None:
    model = replay(SAMPLE, {**SAMPLE, "filter": "second"})
    assert model.loglikelihood([ll("1+1=", " 3"), ll("1+1=", " 2")]) == [
        (-4.000000000000001, False),
        (-0.5, True),
    ]
    with pytest.raises(OptionError, match="match=doc"):
        model.apply_chat_template([])


def test_match_by_document_whatever_the_prompt(replay: Replay) -> None:
    model = replay(SAMPLE, match="doc")
    asked = ll("<|user|>1+1=", "3", doc={"n": 2, "q": "1+1"}, idx=1)
    assert model.loglikelihood([asked]) == [(-4.000000000000001, False)]
    assert "1+1" in model.apply_chat_template([{"role": "user", "content": "1+1"}])
    with pytest.raises(AnswerError):
        model.loglikelihood([ll("1+1=", " 2", doc={"q": "1+1", "n": 3})])


def logged(doc: str, arguments: list[Any], *responses: Any, **more: Any) -> dict[str, Any]:
    """A row of lm-eval's samples with one request."""
    named = {f"arg_{place}": one for place, one in enumerate(arguments)}
    return {"doc": {"q": doc}, "arguments": {"gen_args_0": named}, "resps": [responses], **more}


def repeated(doc: str, *responses: str) -> dict[str, Any]:
    return logged(doc, ["P", {"until": []}], *responses)


def test_repeats_come_in_turn_for_each_document(replay: Replay) -> None:
    model = replay(repeated("a", "a1", "a2"), repeated("b", "b1", "b2"))
    a, b = gen("P", doc={"q": "a"}), gen("P", doc={"q": "b"})
    assert model.generate_until([a, a, b, b]) == ["a1", "a2", "b1", "b2"]
    assert model.generate_until([a, b]) == ["a1", "b1"], "every run starts with the first"


RECURRING: dict[str, list[dict[str, Any]]] = {
    "arguments": [row("P", response=answer) for answer in "aba"],
    "part": [{"doc": {"q": "d"}, "response": answer} for answer in "aba"],
    "several parts": [
        {"doc": {"q": "d"}, "response": "a"},
        {"doc": {"x": 2}, "response": "b"},
        {"doc": {"q": "d"}, "response": "a"},
    ],
    "samples of others": [repeated(str(n), answer) for n, answer in enumerate("aba")],
    "samples": [repeated("d", answer) for answer in "aba"],
}


@pytest.mark.parametrize("form", RECURRING)
def test_first_and_last_follow_the_rows_where_an_answer_recurs(replay: Replay, form: str) -> None:
    asked = [gen("P", doc={"q": "d"} if "samples" in form else {"q": "d", "x": 2})]
    for conflict in ("first", "last"):
        assert replay(*RECURRING[form], conflict=conflict).generate_until(asked) == ["a"]
    with pytest.raises(AnswerError, match="2 different answers"):
        replay(*RECURRING[form]).generate_until(asked)


def test_no_policy_gives_another_documents_answer(replay: Replay) -> None:
    """Batches of other shapes give one request slightly different log-probabilities."""
    rows = [repeated("d", "d1"), repeated("d", "d2"), repeated("e", "e1"), repeated("f", "f1")]
    asked = [gen("P", doc={"q": "e"}), gen("P", doc={"q": "d"})]
    for conflict, expected in (("first", "d1"), ("last", "d2")):
        assert replay(*rows, conflict=conflict).generate_until(asked) == ["e1", expected]
    assert replay(*rows).generate_until(asked[:1]) == ["e1"]


def test_different_answers_to_one_request(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", row("P", response="x"))
    second = write(tmp_path / "b.jsonl", row("P", response="y"))
    with pytest.raises(AnswerError, match=r"different answers.*'P'.*a\.jsonl:1.*b\.jsonl:1"):
        RecordedLM(path=[first, second]).generate_until([gen("P")])
    assert RecordedLM(path=[first, first]).generate_until([gen("P")]) == ["x"]


def test_a_missing_answer_is_quoted_from_its_end(replay: Replay) -> None:
    with pytest.raises(AnswerError) as caught:
        replay(row("A", " b", response=[-1, True])).loglikelihood(
            [ll("x" * 5000 + " the end", " continued")]
        )
    message = str(caught.value)
    for part in ("the end' + ' continued'", "some_task", "1 answers were read", "missing=skip"):
        assert part in message
    assert len(message) < 800


def test_missing_answers_are_left_out_only_where_the_task_can(
    replay: Replay, caplog: pytest.LogCaptureFixture
) -> None:
    model = replay(row("A", " b", response=[-1, True]), row("text", response=-7.25), missing="skip")
    with caplog.at_level("WARNING", logger="lm_eval"):
        found, absent = model.loglikelihood([ll("A", " b"), ll("A", " z")])
    assert found == (-1.0, True) and isinstance(absent, MissingAnswer)
    assert "1 of 2 requests" in caplog.text
    _, number = model.loglikelihood_rolling([rolling("text"), rolling("other")])
    assert isinstance(number, MissingAnswer)
    with pytest.raises(AnswerError, match="own tasks only"):
        model.loglikelihood([ll("A", " z", ours=False)])
    with pytest.raises(AnswerError, match="any of the 2 requests"):
        model.generate_until([gen("Q"), gen("R")])


def test_what_was_left_out_is_left_out_again(replay: Replay) -> None:
    """Placeholders in a log must not become answers."""
    model = replay(
        logged("b", ["A", " b"], ["-1.0", "True"], metrics=["acc"]),
        logged("c", ["A", " c"], list(map(str, MissingLogprob())), metrics=[]),
        logged("Q", ["Q", {}], MissingText(), metrics=[]),
        # A model may say anything, and was scored.
        logged("R", ["R", {}], MissingText(), metrics=["acc"]),
        missing="skip",
    )
    pairs = model.loglikelihood([ll("A", " b"), ll("A", " c")])
    texts = model.generate_until([gen("Q"), gen("R")])
    missing = [isinstance(one, MissingAnswer) for one in (*pairs, *texts)]
    assert missing == [False, True, True, False]


def test_a_cache_of_recorded_answers_is_refused(replay: Replay) -> None:
    with pytest.raises(OptionError, match="--use_cache gains nothing"):
        replay(row("P", response="x")).set_cache_hook(None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"bad\.jsonl:2: not JSON"),
        ('["a"]', r"bad\.jsonl:2: not a recorded answer"),
        ('{"response": "x"}', r"arguments"),
        ('{"arguments": "P", "response": "x"}', r"list of texts"),
        ('{"doc": {}, "response": "x"}', r"at least one field"),
        ('{"arguments": ["P", " c"], "response": [5, true]}', r"not a log-probability"),
        ('{"arguments": ["P"], "response": ["' + "x" * 3_000_000 + '"]}', r"log-probability"),
        ('{"arguments": ["P"], "response": ' + "9" * 5000 + "}", r"bad\.jsonl:2"),
        ("[" * 100_000, r"bad\.jsonl:2"),
        ('{"doc": {"a": 1}, "arguments": [["P", {}]], "resps": [[]]}', r"0 has no response"),
        ('{"doc": {"a": 1}, "idx": true, "response": "x"}', r"idx must be"),
        ('{"arguments": ["P", " c"], "response": [-1, "maybe"]}', r"is greedy must be"),
        (
            '{"request_type": "chat", "arguments": ["P"], "response": "x"}',
            r"request_type 'chat'",
        ),
        (
            '{"request_type": "generate_until", "arguments": ["P"], "response": 3}',
            r"generated text",
        ),
        ('{"doc": {"a": 1}, "arguments": {"gen_args_0": {"arg_0": "P"}}, "resps": []}', r"zip"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"arguments": ["P"], "response": "x"}\n' + line + "\n")
    with pytest.raises(DataError, match=message) as caught:
        RecordedLM(path=str(file))
    assert ":2" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_bytes_of_a_file(tmp_path: Path) -> None:
    """A byte order mark is understood, what is no text is named."""
    file = tmp_path / "a.jsonl"
    text = '{"arguments": ["P", " c"], "response": [-1, "true"]}\n'
    file.write_text(f"\ufeff{text}", encoding="utf-8")
    assert RecordedLM(path=str(file)).loglikelihood([ll("P", " c")]) == [(-1.0, True)]
    file.write_bytes(b'{"arguments": ["\xff\xfe"]}\n')
    with pytest.raises(DataError, match=r"a\.jsonl: cannot be read"):
        RecordedLM(path=str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": ""}, "path=FILE"),
        ({"path": ["a", 1]}, "is not a path"),
        ({"path": []}, "is not a path"),
        ({"path": "nowhere.jsonl"}, r"no recorded answers at nowhere\.jsonl"),
        ({"path": "x", "conflict": "all"}, "conflict: Input should be 'error', 'first' or 'last'"),
        ({"path": "x", "mising": "skip"}, "mising: unknown key; did you mean missing"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(arguments: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RecordedLM(**arguments)


def test_folders_patterns_and_lists(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "a.jsonl", row("A", response="a"))
    write(tmp_path / "sub" / "b.jsonl", row("B", response="b"))
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "named_like_a_file.jsonl").mkdir()  # as lm-eval names its folder for a path
    for path in (
        str(tmp_path),
        f"{tmp_path}/**/*.jsonl",
        [f"{tmp_path}/a.jsonl", f"{tmp_path}/sub"],
    ):
        assert RecordedLM(path=path).generate_until([gen("A"), gen("B")]) == ["a", "b"]


def test_answers_that_differ_are_counted(replay: Replay, caplog: pytest.LogCaptureFixture) -> None:
    """It was silent, and moved an accuracy of the recorded davinci-002 from .5625 to .5."""
    numbers = ((" a", -1.0), (" b", -2.0), (" b", -2.25), (" c", -3.0), (" c", -3.125))
    model = replay(*(row("P", c, response=[one, False]) for c, one in numbers), conflict="first")
    asked = [ll("P", c) for c in (" a", " b", " c")]
    assert [answer[0] for answer in model.loglikelihood(asked)] == [-1.0, -2.0, -3.0]
    assert "2 of 3 requests have different recorded answers, and the first one" in caplog.text
    caplog.clear()
    model.loglikelihood(asked[:1])
    assert not caplog.text
