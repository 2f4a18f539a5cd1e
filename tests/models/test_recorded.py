"""Recorded answers: the format, matching, and messages about missing answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import MissingAnswer, allow
from lm_eval_ext.models.recorded import AnswerError, RecordedLM


def write(path: Path, *rows: Any) -> str:
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


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


def test_loglikelihood_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"request_type": "loglikelihood", "arguments": ["A", " b"], "response": [-1.5, True]},
        {"arguments": ["A", " c"], "response": ["-2.5", "False"]},
    )
    model = RecordedLM(path=path, batch_size=8, device="cpu", max_batch_size=None)
    assert model.loglikelihood([ll("A", " c"), ll("A", " b")]) == [(-2.5, False), (-1.5, True)]


def test_generation_rows_ignore_settings_and_keep_any_text(tmp_path: Path) -> None:
    texts = ["", "two\nlines", "红烧肉", "<script>", "\u202eright to left", "\x00nul"]
    path = write(
        tmp_path / "a.jsonl",
        *({"arguments": [f"Q{i}", {"temperature": 1}], "response": t} for i, t in enumerate(texts)),
    )
    model = RecordedLM(path=path)
    assert model.generate_until([gen(f"Q{i}") for i in range(len(texts))]) == texts


def test_rolling_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"request_type": "loglikelihood_rolling", "arguments": ["text"], "response": -7.25},
    )
    assert RecordedLM(path=path).loglikelihood_rolling(
        [request("loglikelihood_rolling", "text")]
    ) == [-7.25]


def test_a_part_of_the_document_is_enough(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"doc": {"id": 7}, "response": "seven"},
        {"doc": {"id": 8, "side": "b"}, "response": "eight b"},
        {"doc": {"id": 9}, "idx": 1, "request_type": "loglikelihood", "response": [-1, False]},
    )
    model = RecordedLM(path=path)
    answers = model.generate_until(
        [
            gen("whatever", doc={"id": 7, "text": "x"}),
            gen("other", doc={"id": 8, "side": "b", "text": "y"}),
        ]
    )
    assert answers == ["seven", "eight b"]
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


def test_lm_evals_own_samples(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_x.jsonl", SAMPLE, {**SAMPLE, "filter": "second"})
    model = RecordedLM(path=path)
    assert model.loglikelihood([ll("1+1=", " 3"), ll("1+1=", " 2")]) == [
        (-4.000000000000001, False),
        (-0.5, True),
    ]


def test_match_by_document_whatever_the_prompt(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_x.jsonl", SAMPLE)
    model = RecordedLM(path=path, match="doc")
    doc = {"n": 2, "q": "1+1"}
    assert model.loglikelihood([ll("<|user|>1+1=", "3", doc=doc, idx=1)]) == [
        (-4.000000000000001, False)
    ]
    assert "1+1" in model.apply_chat_template([{"role": "user", "content": "1+1"}])
    with pytest.raises(AnswerError):
        model.loglikelihood([ll("1+1=", " 2", doc={"q": "1+1", "n": 3})])


def test_a_chat_template_cannot_be_guessed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="match=doc"):
        RecordedLM(path=write(tmp_path / "a.jsonl", SAMPLE)).apply_chat_template([])


def repeated(doc: str, *responses: str) -> dict[str, Any]:
    return {
        "doc": {"q": doc},
        "arguments": {"gen_args_0": {"arg_0": "P", "arg_1": {"until": []}}},
        "resps": [list(responses)],
    }


def test_repeats_come_in_turn_for_each_document(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", repeated("a", "a1", "a2"), repeated("b", "b1", "b2"))
    model = RecordedLM(path=path)
    a, b = gen("P", doc={"q": "a"}), gen("P", doc={"q": "b"})
    assert model.generate_until([a, a, b, b]) == ["a1", "a2", "b1", "b2"]
    assert model.generate_until([a, b]) == ["a1", "b1"], "every run starts with the first"


RECURRING: dict[str, list[dict[str, Any]]] = {
    "arguments": [{"arguments": ["P"], "response": answer} for answer in "aba"],
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
def test_first_and_last_follow_the_rows_where_an_answer_recurs(tmp_path: Path, form: str) -> None:
    path = write(tmp_path / "a.jsonl", *RECURRING[form])
    doc = {"q": "d"} if "samples" in form else {"q": "d", "x": 2}
    asked = [gen("P", doc=doc)]
    for conflict in ("first", "last"):
        assert RecordedLM(path=path, conflict=conflict).generate_until(asked) == ["a"]  # type: ignore[arg-type]
    with pytest.raises(AnswerError, match="2 different answers"):
        RecordedLM(path=path).generate_until(asked)


@pytest.mark.parametrize("conflict", ["error", "first", "last"])
def test_no_policy_gives_another_documents_answer(tmp_path: Path, conflict: str) -> None:
    rows = [repeated("d", "d1"), repeated("d", "d2"), repeated("e", "e1"), repeated("f", "f1")]
    model = RecordedLM(path=write(tmp_path / "a.jsonl", *rows), conflict=conflict)  # type: ignore[arg-type]
    assert model.generate_until([gen("P", doc={"q": "e"})]) == ["e1"]
    if conflict == "error":
        with pytest.raises(AnswerError, match="2 different answers"):
            model.generate_until([gen("P", doc={"q": "d"})])
    else:
        expected = {"first": "d1", "last": "d2"}[conflict]
        assert model.generate_until([gen("P", doc={"q": "d"})]) == [expected]


def test_many_documents_with_one_prompt_cost_no_more_than_their_number(tmp_path: Path) -> None:
    count = 3000  # quadratic cost took a minute here
    rows = [repeated(str(n), f"answer {n}") for n in range(count)]
    model = RecordedLM(path=write(tmp_path / "a.jsonl", *rows))
    requests = [gen("P", doc={"q": str(n)}) for n in range(count)]
    assert model.generate_until(requests) == [f"answer {n}" for n in range(count)]


def test_different_answers_to_one_request(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", {"arguments": ["P"], "response": "x"})
    second = write(tmp_path / "b.jsonl", {"arguments": ["P"], "response": "y"})
    with pytest.raises(AnswerError, match=r"different answers.*'P'.*a\.jsonl:1.*b\.jsonl:1"):
        RecordedLM(path=[first, second]).generate_until([gen("P")])
    assert RecordedLM(path=[first, second], conflict="first").generate_until([gen("P")]) == ["x"]
    assert RecordedLM(path=str(tmp_path), conflict="last").generate_until([gen("P")]) == ["y"]
    assert RecordedLM(path=[first, first]).generate_until([gen("P")]) == ["x"]


def test_the_document_decides_between_different_answers(tmp_path: Path) -> None:
    """Batches of other shapes give one request slightly different log-probabilities."""
    other = {
        **SAMPLE,
        "doc": {"q": "again", "n": 2},
        "resps": [[["-0.25", "True"]], [["-4", "False"]]],
    }
    model = RecordedLM(path=write(tmp_path / "a.jsonl", SAMPLE, other))
    assert model.loglikelihood(
        [ll("1+1=", " 2", doc=other["doc"]), ll("1+1=", " 2", doc=SAMPLE["doc"])]
    ) == [
        (-0.25, True),
        (-0.5, True),
    ]


def test_a_missing_answer_is_quoted_from_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["A", " b"], "response": [-1, True]})
    with pytest.raises(AnswerError) as caught:
        RecordedLM(path=path).loglikelihood([ll("x" * 5000 + " the end", " continued")])
    message = str(caught.value)
    assert "the end' + ' continued'" in message
    assert "some_task" in message
    assert "1 answers were read" in message
    assert "missing=skip" in message
    assert len(message) < 800


def test_missing_answers_are_left_out_only_where_the_task_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["A", " b"], "response": [-1, True]})
    model = RecordedLM(path=path, missing="skip")
    with caplog.at_level("WARNING", logger="lm_eval"):
        answers = model.loglikelihood([ll("A", " b"), ll("A", " z")])
    assert answers[0] == (-1.0, True)
    assert isinstance(answers[1], MissingAnswer)
    assert "1 of 2 requests" in caplog.text
    with pytest.raises(AnswerError, match="own tasks only"):
        model.loglikelihood([ll("A", " z", ours=False)])


def test_what_was_left_out_is_left_out_again(tmp_path: Path) -> None:
    """Placeholders in a log must not become answers."""
    first = RecordedLM(
        path=write(
            tmp_path / "part.jsonl",
            {"arguments": ["A", " b"], "response": [-1, True]},
            {"arguments": ["P"], "response": "x"},
        ),
        missing="skip",
    )
    missing = first.loglikelihood([ll("A", " b"), ll("A", " c")])[1]
    absent = first.generate_until([gen("P"), gen("Q")])[1]

    def logged(arguments: list[Any], response: Any, metrics: list[str]) -> dict[str, Any]:
        as_text = [str(part) for part in response] if isinstance(response, tuple) else response
        named = {f"arg_{i}": argument for i, argument in enumerate(arguments)}
        return {
            "doc": {"q": arguments[0]},
            "arguments": {"gen_args_0": named},
            "resps": [[as_text]],
            "metrics": metrics,
        }

    path = write(
        tmp_path / "samples_x.jsonl",
        logged(["A", " b"], (-1.0, True), ["acc"]),
        logged(["A", " c"], missing, []),
        logged(["Q", {}], absent, []),
        logged(["R", {}], str(absent), ["acc"]),  # a model may say anything, and was scored
    )
    again = RecordedLM(path=path, missing="skip")
    assert isinstance(again.loglikelihood([ll("A", " b"), ll("A", " c")])[1], MissingAnswer)
    answers = again.generate_until([gen("Q"), gen("R")])
    assert [isinstance(answer, MissingAnswer) for answer in answers] == [True, False]


def test_nothing_answered_at_all_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["P"], "response": "x"})
    with pytest.raises(AnswerError, match="any of the 2 requests"):
        RecordedLM(path=path, missing="skip").generate_until([gen("Q"), gen("R")])


def test_a_cache_of_recorded_answers_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["P"], "response": "x"})
    with pytest.raises(OptionError, match="--use_cache gains nothing"):
        RecordedLM(path=path).set_cache_hook(None)


def test_rolling_texts_are_left_out_as_well(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["text"], "response": -7.25})
    model = RecordedLM(path=path, missing="skip")
    requests = [request("loglikelihood_rolling", text) for text in ("text", "other")]
    answers = model.loglikelihood_rolling(requests)
    assert answers[0] == -7.25
    assert isinstance(answers[1], MissingAnswer)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"bad\.jsonl:2: not JSON"),
        ('["a"]', r"bad\.jsonl:2: not a recorded answer"),
        ('{"response": "x"}', r"arguments"),
        ('{"arguments": "P", "response": "x"}', r"list of texts"),
        ('{"arguments": [], "response": "x"}', r"list of texts"),
        ('{"doc": {}, "response": "x"}', r"at least one field"),
        ('{"arguments": ["P", " c"], "response": [1]}', r"log-probability, is greedy"),
        ('{"arguments": ["P", " c"], "response": ["x", true]}', r"ValueError"),
        ('{"arguments": ["P", " c"], "response": [5, true]}', r"not a log-probability"),
        ('{"arguments": ["P"], "response": ' + "9" * 5000 + "}", r"bad\.jsonl:2"),
        ("[" * 100_000, r"bad\.jsonl:2"),
        ('{"doc": {"a": 1}, "arguments": [["P", {}]], "resps": [[]]}', r"0 has no response"),
        ('{"doc": {"a": 1}, "idx": null, "response": "x"}', r"idx must be"),
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


def test_a_huge_response_makes_no_huge_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"arguments": ["P", " c"], "response": ["x" * 3_000_000]})
    with pytest.raises(DataError) as caught:
        RecordedLM(path=path)
    assert len(str(caught.value)) < 1000


def test_a_byte_order_mark_and_words_for_truth_are_understood(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '\ufeff{"arguments": ["P", " c"], "response": [-1, "true"]}\n', encoding="utf-8"
    )
    assert RecordedLM(path=str(file)).loglikelihood([ll("P", " c")]) == [(-1.0, True)]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b'{"arguments": ["\xff\xfe"]}\n')
    with pytest.raises(DataError, match=r"bad\.jsonl: cannot be read"):
        RecordedLM(path=str(file))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": ""}, "path=FILE"),
        ({"path": 123}, "path=123 is not a path"),
        ({"path": True}, "path=True is not a path"),
        ({"path": None}, "path=None is not a path"),
        ({"path": ["a", 1]}, "is not a path"),
        ({"path": "nowhere.jsonl"}, r"no recorded answers at nowhere\.jsonl"),
        ({"path": "x", "missing": "ignore"}, "error or skip"),
        ({"path": "x", "match": "text"}, "arguments or doc"),
        ({"path": "x", "conflict": "all"}, "error or first or last"),
        ({"path": "x", "mising": "skip"}, "unknown argument mising"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RecordedLM(**arguments)  # type: ignore[arg-type]


def test_folders_patterns_and_lists(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "a.jsonl", {"arguments": ["A"], "response": "a"})
    write(tmp_path / "sub" / "b.jsonl", {"arguments": ["B"], "response": "b"})
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "named_like_a_file.jsonl").mkdir()  # as lm-eval names its folder for a path
    for path in (
        str(tmp_path),
        f"{tmp_path}/**/*.jsonl",
        [f"{tmp_path}/a.jsonl", f"{tmp_path}/sub"],
    ):
        assert RecordedLM(path=path).generate_until([gen("A"), gen("B")]) == ["a", "b"]


def test_how_far_answers_differ_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It was silent, and moved an accuracy of the recorded davinci-002 from .5625 to .5."""
    rows = [
        {"arguments": ["P", " a"], "response": [-1.0, False]},
        {"arguments": ["P", " b"], "response": [-2.0, False]},
        {"arguments": ["P", " b"], "response": [-2.25, False]},
        {"arguments": ["P", " c"], "response": [-3.0, False]},
        {"arguments": ["P", " c"], "response": [-3.125, False]},
    ]
    model = RecordedLM(path=write(tmp_path / "a.jsonl", *rows), conflict="first")
    asked = [ll("P", continuation) for continuation in (" a", " b", " c")]
    assert [answer[0] for answer in model.loglikelihood(asked)] == [-1.0, -2.0, -3.0]
    assert (
        "2 of 3 requests have different recorded answers, and the first one counts" in caplog.text
    )
    assert "differ by up to 0.25" in caplog.text
    caplog.clear()
    model.loglikelihood(asked[:1])
    assert not caplog.text
