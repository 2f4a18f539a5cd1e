"""Recorded answers: the format, matching, and messages about missing answers."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import MissingAnswer, MissingLogprob, MissingText, allow
from lm_eval_ext.models.recorded import AnswerError, RecordedLM

JsonRow = dict[str, Any]
"""A line of a file of recorded answers."""

Replay = Callable[..., RecordedLM]


def write_rows(path: Path, *rows: JsonRow) -> str:
    """Write recorded answers; return the path as an option has it."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """A function that returns the model of recorded answers."""

    def replay(*rows: JsonRow, **options: Any) -> RecordedLM:
        return RecordedLM(path=write_rows(tmp_path / "a.jsonl", *rows), **options)

    return replay


def row(*arguments: object, response: object) -> JsonRow:
    """Return the recorded response to a request with these arguments."""
    return {"arguments": list(arguments), "response": response}


def request(
    request_type: str,
    *arguments: object,
    doc: dict[str, object] | None = None,
    idx: int = 0,
    ours: bool = True,
) -> Instance:
    """Return a request of a task; only tasks of ours may lack an answer."""
    instance = Instance(
        request_type=request_type,
        doc=doc or {},
        arguments=arguments,
        idx=idx,
        metadata=("some_task", 0, 1),
    )
    if ours:
        allow(instance)
    return instance


def scoring_request(context: str, continuation: str, **options: Any) -> Instance:
    """Return a request for a log-probability."""
    return request("loglikelihood", context, continuation, **options)


def text_request(prompt: str, **options: Any) -> Instance:
    """Return a request for a text."""
    return request("generate_until", prompt, {"until": ["\n"]}, **options)


def is_missing(answer: object) -> bool:
    """Return whether an answer is the placeholder of a missing one."""
    return isinstance(answer, MissingAnswer)


def rolling_request(text: str) -> Instance:
    """Return a request for the log-probability of a whole text."""
    return request("loglikelihood_rolling", text)


def test_log_probabilities_are_those_of_the_rows(replay: Replay) -> None:
    model = replay(
        {"request_type": "loglikelihood", **row("A", " b", response=[-1.5, True])},
        row("A", " c", response=["-2.5", "False"]),
        {"request_type": "loglikelihood_rolling", **row("text", response=-7.25)},
        batch_size=8,
        device="cpu",
        max_batch_size=None,
    )
    requests = [scoring_request("A", " c"), scoring_request("A", " b")]
    assert model.loglikelihood(requests) == [(-2.5, False), (-1.5, True)]
    assert model.loglikelihood_rolling([rolling_request("text")]) == [-7.25]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("two\nlines", id="two lines"),
        pytest.param("红烧肉", id="Chinese"),
        pytest.param("<script>", id="markup"),
        pytest.param("\u202eright to left", id="right to left"),
        pytest.param("\x00nul", id="control character"),
    ],
)
def test_any_text_is_kept_whatever_the_settings_of_its_row(replay: Replay, text: str) -> None:
    model = replay(
        row("Q0", {"temperature": 1}, response="another"),
        row("Q1", {"temperature": 1}, response=text),
    )
    requests = [text_request("Q1"), text_request("Q0")]
    assert model.generate_until(requests) == [text, "another"]


PARTS_OF_DOCUMENTS = [
    {"doc": {"id": 7}, "response": "seven"},
    {"doc": {"id": 8, "side": "b"}, "response": "eight b"},
    {"doc": {"id": 9}, "idx": 1, "request_type": "loglikelihood", "response": [-1, False]},
]
"""Answers whose rows have a part of the document."""


def test_a_part_of_the_document_is_enough(replay: Replay) -> None:
    model = replay(*PARTS_OF_DOCUMENTS)
    seventh = text_request("p", doc={"id": 7, "text": "x"})
    eighth = text_request("q", doc={"id": 8, "side": "b", "x": "y"})
    assert model.generate_until([seventh, eighth]) == ["seven", "eight b"]
    ninth = scoring_request("c", " d", doc={"id": 9}, idx=1)
    assert model.loglikelihood([ninth]) == [(-1.0, False)]


@pytest.mark.parametrize(
    "doc",
    [
        pytest.param({"id": 8, "side": "a"}, id="another value"),
        pytest.param({"id": "7"}, id="a text for a number"),
        pytest.param({}, id="nothing"),
    ],
)
def test_a_document_that_differs_from_the_part_has_no_answer(
    replay: Replay, doc: dict[str, object]
) -> None:
    with pytest.raises(AnswerError):
        replay(*PARTS_OF_DOCUMENTS).generate_until([text_request("whatever", doc=doc)])


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


def test_lm_evals_samples_are_read_whatever_their_filters(replay: Replay) -> None:
    model = replay(SAMPLE, {**SAMPLE, "filter": "second"})
    requests = [scoring_request("1+1=", " 3"), scoring_request("1+1=", " 2")]
    assert model.loglikelihood(requests) == [(-4.000000000000001, False), (-0.5, True)]


def test_a_chat_template_needs_answers_that_are_matched_by_document(replay: Replay) -> None:
    with pytest.raises(OptionError, match="match=doc"):
        replay(SAMPLE).apply_chat_template([])
    prompt = replay(SAMPLE, match="doc").apply_chat_template([{"role": "user", "content": "1+1"}])
    assert "1+1" in prompt


def test_answers_that_are_matched_by_document_fit_any_prompt(replay: Replay) -> None:
    model = replay(SAMPLE, match="doc")
    templated = scoring_request("<|user|>1+1=", "3", doc={"n": 2, "q": "1+1"}, idx=1)
    assert model.loglikelihood([templated]) == [(-4.000000000000001, False)]
    of_another_document = scoring_request("1+1=", " 2", doc={"q": "1+1", "n": 3})
    with pytest.raises(AnswerError):
        model.loglikelihood([of_another_document])


def logged_row(
    question: str,
    arguments: Sequence[object],
    *responses: object,
    metrics: Sequence[str] | None = None,
) -> JsonRow:
    """Return a logged sample with one request; an empty list of metrics: it was not scored."""
    named = {f"arg_{position}": argument for position, argument in enumerate(arguments)}
    sample = {
        "doc": {"q": question},
        "arguments": {"gen_args_0": named},
        "resps": [responses],
    }
    if metrics is None:
        return sample
    return sample | {"metrics": metrics}


def text_row(question: str, *responses: str) -> JsonRow:
    """Return a logged row of a document's responses to the prompt P."""
    return logged_row(question, ["P", {"until": []}], *responses)


def test_repeats_come_in_turn_for_each_document(replay: Replay) -> None:
    model = replay(text_row("a", "a1", "a2"), text_row("b", "b1", "b2"))
    a = text_request("P", doc={"q": "a"})
    b = text_request("P", doc={"q": "b"})
    assert model.generate_until([a, a, b, b]) == ["a1", "a2", "b1", "b2"]
    assert model.generate_until([a, b]) == ["a1", "b1"], "every run starts with the first"


RECURRING: dict[str, list[JsonRow]] = {
    "arguments": [row("P", response=answer) for answer in "aba"],
    "part": [{"doc": {"q": "d"}, "response": answer} for answer in "aba"],
    "several parts": [
        {"doc": {"q": "d"}, "response": "a"},
        {"doc": {"x": 2}, "response": "b"},
        {"doc": {"q": "d"}, "response": "a"},
    ],
    "samples of others": [text_row(str(number), answer) for number, answer in enumerate("aba")],
    "samples": [text_row("d", answer) for answer in "aba"],
}
"""Rows that give a document the answers a, b and a, by how they name it."""


@pytest.mark.parametrize("form", RECURRING)
def test_first_and_last_follow_the_rows_where_an_answer_recurs(replay: Replay, form: str) -> None:
    doc = {"q": "d"} if "samples" in form else {"q": "d", "x": 2}
    requests = [text_request("P", doc=doc)]
    rows = RECURRING[form]
    assert replay(*rows, conflict="first").generate_until(requests) == ["a"]
    assert replay(*rows, conflict="last").generate_until(requests) == ["a"]
    with pytest.raises(AnswerError, match="2 different answers"):
        replay(*rows).generate_until(requests)


def test_no_policy_gives_another_documents_answer(replay: Replay) -> None:
    """Batches of other shapes give one request slightly different log-probabilities."""
    rows = [text_row("d", "d1"), text_row("d", "d2"), text_row("e", "e1"), text_row("f", "f1")]
    of_e = text_request("P", doc={"q": "e"})
    of_d = text_request("P", doc={"q": "d"})
    assert replay(*rows, conflict="first").generate_until([of_e, of_d]) == ["e1", "d1"]
    assert replay(*rows, conflict="last").generate_until([of_e, of_d]) == ["e1", "d2"]
    assert replay(*rows).generate_until([of_e]) == ["e1"]


def test_different_answers_to_a_request_are_refused_with_both_lines(tmp_path: Path) -> None:
    x_file = write_rows(tmp_path / "a.jsonl", row("P", response="x"))
    y_file = write_rows(tmp_path / "b.jsonl", row("P", response="y"))
    with pytest.raises(AnswerError, match=r"different answers.*'P'.*a\.jsonl:1.*b\.jsonl:1"):
        RecordedLM(path=[x_file, y_file]).generate_until([text_request("P")])
    assert RecordedLM(path=[x_file, x_file]).generate_until([text_request("P")]) == ["x"]


def test_a_missing_answer_is_quoted_from_its_end(replay: Replay) -> None:
    model = replay(row("A", " b", response=[-1, True]))
    with pytest.raises(AnswerError) as caught:
        model.loglikelihood(
            [scoring_request("A", " b"), scoring_request("x" * 5000 + " the end", " continued")]
        )
    message = str(caught.value)
    for excerpt in ("the end' + ' continued'", "some_task", "1 answer was read", "missing=skip"):
        assert excerpt in message
    assert len(message) < 800


@pytest.fixture
def skipping(replay: Replay) -> RecordedLM:
    """A model that leaves out missing answers."""
    return replay(row("A", " b", response=[-1, True]), row("text", response=-7.25), missing="skip")


def test_missing_answers_are_left_out_where_the_task_can(
    skipping: RecordedLM, caplog: pytest.LogCaptureFixture
) -> None:
    requests = [scoring_request("A", " b"), scoring_request("A", " z")]
    with caplog.at_level("WARNING", logger="lm_eval"):
        answer, missing_answer = skipping.loglikelihood(requests)
    assert answer == (-1.0, True)
    assert is_missing(missing_answer)
    assert "1 of 2 requests" in caplog.text
    rolling_requests = [rolling_request("text"), rolling_request("other")]
    _, missing_logprob = skipping.loglikelihood_rolling(rolling_requests)
    assert is_missing(missing_logprob)


def test_an_answer_that_the_task_needs_is_not_left_out(skipping: RecordedLM) -> None:
    with pytest.raises(AnswerError, match="own tasks only"):
        skipping.loglikelihood([scoring_request("A", " b"), scoring_request("A", " z", ours=False)])


def test_all_answers_of_a_task_are_not_left_out(skipping: RecordedLM) -> None:
    with pytest.raises(AnswerError, match="for 2 requests"):
        skipping.generate_until([text_request("Q"), text_request("R")])


def test_a_task_without_recorded_answers_is_named_with_the_files(tmp_path: Path) -> None:
    """Files are named after tasks, so the line says which tasks were recorded; a quoted prompt of
    the other task would not."""
    first_file = write_rows(tmp_path / "other_task.jsonl", row("A", response="a"))
    second_file = write_rows(tmp_path / "third_task.jsonl", row("B", response="b"))
    with pytest.raises(AnswerError) as caught:
        RecordedLM(path=[first_file, second_file]).generate_until([text_request("P")])
    assert str(caught.value) == (
        f"no answer is recorded for 1 request of some_task; 2 answers were read from "
        f"{first_file}, {second_file}; the first request is generate_until of 'P'"
    )


def test_an_answer_that_was_left_out_is_left_out_again(replay: Replay) -> None:
    """Placeholders in a log must not become answers."""
    placeholder = [str(value) for value in MissingLogprob()]
    model = replay(
        logged_row("b", ["A", " b"], ["-1.0", "True"], metrics=["acc"]),
        logged_row("c", ["A", " c"], placeholder, metrics=[]),
        logged_row("Q", ["Q", {}], MissingText(), metrics=[]),
        # A model may say anything, and was scored.
        logged_row("R", ["R", {}], MissingText(), metrics=["acc"]),
        missing="skip",
    )
    b, c = model.loglikelihood([scoring_request("A", " b"), scoring_request("A", " c")])
    assert not is_missing(b)
    assert is_missing(c)
    unscored, scored = model.generate_until([text_request("Q"), text_request("R")])
    assert is_missing(unscored)
    assert not is_missing(scored)


def test_a_cache_of_recorded_answers_is_refused(replay: Replay) -> None:
    with pytest.raises(OptionError, match="--use_cache gains nothing"):
        replay(row("P", response="x")).set_cache_hook(None)


BROKEN_ROWS = {
    "no JSON": ("{not json", r"bad\.jsonl:2: not JSON"),
    "a list": ('["a"]', r"bad\.jsonl:2: not a recorded answer"),
    "no request": ('{"response": "x"}', r"arguments"),
    "arguments as a text": ('{"arguments": "P", "response": "x"}', r"list of texts"),
    "an empty document": ('{"doc": {}, "response": "x"}', r"at least one field"),
    "a positive log-probability": (
        '{"arguments": ["P", " c"], "response": [5, true]}',
        r"not a log-probability",
    ),
    "three megabytes for a log-probability": (
        '{"arguments": ["P"], "response": ["' + "x" * 3_000_000 + '"]}',
        r"log-probability",
    ),
    "a number of 5000 digits": (
        '{"arguments": ["P"], "response": ' + "9" * 5000 + "}",
        r"bad\.jsonl:2",
    ),
    "nested too deep": ("[" * 100_000, r"bad\.jsonl:2"),
    "a sample without a response": (
        '{"doc": {"a": 1}, "arguments": [["P", {}]], "resps": [[]]}',
        r"0 has no response",
    ),
    "a truth value for a number": (
        '{"doc": {"a": 1}, "idx": true, "response": "x"}',
        r"idx must be",
    ),
    "a word for a truth value": (
        '{"arguments": ["P", " c"], "response": [-1, "maybe"]}',
        r"is greedy must be",
    ),
    "an unknown request type": (
        '{"request_type": "chat", "arguments": ["P"], "response": "x"}',
        r"request_type 'chat'",
    ),
    "a number for a text": (
        '{"request_type": "generate_until", "arguments": ["P"], "response": 3}',
        r"generated text",
    ),
    "fewer responses than requests": (
        '{"doc": {"a": 1}, "arguments": {"gen_args_0": {"arg_0": "P"}}, "resps": []}',
        r"zip",
    ),
}
"""Lines of a file, with the message about each."""


@pytest.mark.parametrize(("line", "message"), BROKEN_ROWS.values(), ids=BROKEN_ROWS)
def test_a_broken_row_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"arguments": ["P"], "response": "x"}\n' + line + "\n")
    with pytest.raises(DataError, match=message) as caught:
        RecordedLM(path=str(file))
    assert ":2" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_byte_order_mark_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    text = '{"arguments": ["P", " c"], "response": [-1, "true"]}\n'
    file.write_text(f"\ufeff{text}", encoding="utf-8")
    requests = [scoring_request("P", " c")]
    assert RecordedLM(path=str(file)).loglikelihood(requests) == [(-1.0, True)]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"arguments": ["\xff\xfe"]}\n')
    with pytest.raises(DataError, match=r"a\.jsonl: cannot be read"):
        RecordedLM(path=str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"path": ""}, "path=FILE", id="no path"),
        pytest.param({"path": ["a", 1]}, "is not a path", id="a number as a path"),
        pytest.param({"path": []}, "is not a path", id="an empty list of paths"),
        pytest.param(
            {"path": "nowhere.jsonl"},
            r"no recorded answers at nowhere\.jsonl",
            id="a missing file",
        ),
        pytest.param(
            {"path": "x", "conflict": "all"},
            "conflict: Input should be 'error', 'first' or 'last'",
            id="an unknown policy",
        ),
        pytest.param(
            {"path": "x", "mising": "skip"},
            "mising: unknown key; did you mean missing",
            id="a misspelt argument",
        ),
    ],
)
def test_a_wrong_argument_is_one_clear_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RecordedLM(**arguments)


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param("{}", id="a folder"),
        pytest.param("{}/**/*.jsonl", id="a pattern"),
        pytest.param(["{}/a.jsonl", "{}/sub"], id="a file and a folder"),
    ],
)
def test_answers_are_read_from_folders_patterns_and_lists(
    tmp_path: Path, paths: str | list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    write_rows(tmp_path / "a.jsonl", row("A", response="a"))
    write_rows(tmp_path / "sub" / "b.jsonl", row("B", response="b"))
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "named_like_a_file.jsonl").mkdir()  # as lm-eval names its folder for a path
    if isinstance(paths, str):
        model = RecordedLM(path=paths.format(tmp_path))
    else:
        model = RecordedLM(path=[path.format(tmp_path) for path in paths])
    assert model.generate_until([text_request("A"), text_request("B")]) == ["a", "b"]


def test_answers_that_differ_are_counted(replay: Replay, caplog: pytest.LogCaptureFixture) -> None:
    """It was silent, and moved an accuracy of the recorded davinci-002 from .5625 to .5."""
    model = replay(
        row("P", " a", response=[-1.0, False]),
        row("P", " b", response=[-2.0, False]),
        row("P", " b", response=[-2.25, False]),
        row("P", " c", response=[-3.0, False]),
        row("P", " c", response=[-3.125, False]),
        conflict="first",
    )
    requests = [scoring_request("P", continuation) for continuation in (" a", " b", " c")]
    logprobs = [logprob for logprob, _ in model.loglikelihood(requests)]
    assert logprobs == [-1.0, -2.0, -3.0]
    assert "2 of 3 requests have different recorded answers, and the first one" in caplog.text
    caplog.clear()
    model.loglikelihood(requests[:1])
    assert not caplog.text
