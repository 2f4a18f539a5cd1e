"""``lm-eval-ext samples``: what is shown of a sample, and that all readers mean the same one."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.asking import run_in
from support.commands import Command
from support.results_files import answered_rows, write_run

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.inspection import (
    InspectedDocument,
    LoggedSample,
    first_difference,
    inspect_answers,
    verdict_text,
)
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.sample_report import samples_report
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView
from lm_eval_ext.results.shown_samples import SampleQuery
from lm_eval_ext.results.table import keyed_samples, rows
from lm_eval_ext.results.turns import Turn, turns_of

TASK = "cogs_mini_gen"


def write(folder: Path, right: int, name: str = "a", **changes: Any) -> Path:
    """Write results of a model that answers the first ones of eight documents right."""
    samples = [{**row, **changes} for row in answered_rows(8, right)]
    for sample in samples:
        sample["doc"] = {**sample["doc"], "form": "x", "sentence": "Who?"}
    return write_run(folder / name, name, TASK, samples)


def edit_samples(folder: Path, edit: Any) -> None:
    """Change each logged sample in place."""
    (file,) = folder.rglob("samples_*")
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    for sample in samples:
        edit(sample)
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))


def report(folder: Path, format_: Any = "text", **options: Any) -> str:
    """The report on a folder."""
    return samples_report(read_models([folder]), "", SampleQuery(**options), format_)


def lines_of(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The same as JSON."""
    return [json.loads(line) for line in report(folder, "jsonl", **options).splitlines()]


def test_wrong_samples_have_question_gold_response_answer_score_and_reason(tmp_path: Path) -> None:
    """One sample says all that is needed to see why it is wrong."""
    write(tmp_path, 6)

    def lengthen(sample: dict[str, Any]) -> None:
        sample["resps"] = [["the answer is y"]]

    edit_samples(tmp_path, lengthen)
    shown = lines_of(tmp_path, is_wrong=True)
    assert [sample["id"] for sample in shown] == ["6", "7"]
    (model,) = shown[0]["models"]
    assert shown[0]["question"] == "Who? (t)"
    assert shown[0]["gold"] == "x"
    assert model["response"] == "the answer is y"
    assert model["answer"] == "y"
    assert model["read_as"] == "characters 15 to 15 of 15"
    assert model["score"] == "Exact match 0.000: wrong"
    assert model["reason"] == "word 1 is “y”, not “x”"
    text = report(tmp_path, is_wrong=True)
    assert "a: 2 of 8 samples are not right" in text
    for label in ("question", "gold", "response", "answer", "read as", "score", "why"):
        assert any(line.startswith(label) for line in text.splitlines()), label


def test_a_right_answer_has_no_reason_for_being_wrong(tmp_path: Path) -> None:
    """A scorer may accept more than the gold: the first word that differs is no reason then."""
    samples = [{**row, "target": "x"} for row in answered_rows(8, 6)]
    write_run(tmp_path / "a", "a", "plurals", samples)

    def lengthen(sample: dict[str, Any]) -> None:
        sample["filtered_resps"] = [f"The answer is {sample['filtered_resps'][0]}."]

    edit_samples(tmp_path / "a", lengthen)
    reason_by_id = {sample["id"]: sample["models"][0]["reason"] for sample in lines_of(tmp_path)}
    assert reason_by_id["5"] == ""
    assert reason_by_id["6"] == "word 1 is “The”, not “x”"


def test_two_models_stand_side_by_side_where_they_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide terminal has both on one line; a narrow one has them below each other."""
    write(tmp_path, 8, "a")
    write(tmp_path, 5, "b")
    shown = lines_of(tmp_path, is_different=True)
    assert [sample["id"] for sample in shown] == ["5", "6", "7"]
    assert [[model["value"] for model in sample["models"]] for sample in shown] == [[1.0, 0.0]] * 3
    monkeypatch.setenv("COLUMNS", "120")
    wide = report(tmp_path, is_different=True)
    assert any("model     a" in line and "│ model     b" in line for line in wide.splitlines())
    monkeypatch.setenv("COLUMNS", "80")
    narrow = report(tmp_path, is_different=True)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "│" not in narrow


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(ScoreQuery(), ["2", "3"], id="headline"),
        pytest.param(ScoreQuery(metrics=("equivalent",)), ["1", "3"], id="another metric"),
        pytest.param(ScoreQuery(value="equivalent"), ["1", "3"], id="another column of values"),
    ],
)
def test_wrong_follows_the_score_that_is_asked_for(
    tmp_path: Path, query: ScoreQuery, expected: list[str]
) -> None:
    """A sample that one score calls wrong may be right by another."""
    scored = answered_rows(4, 2)
    for number, row in enumerate(scored):
        row["doc"] = {**row["doc"], "form": "x", "sentence": "Who?"}
        row["facets"] = {"equivalent": float(number in (0, 2))}
    write_run(tmp_path, "a", TASK, scored)
    assert [sample["id"] for sample in lines_of(tmp_path, is_wrong=True, query=query)] == expected


def test_show_names_the_samples_of_the_score_that_it_shows(tmp_path: Path, cli: Command) -> None:
    """The command has all that was asked, and samples takes it: of several metrics the first."""
    write(tmp_path, 6, facets={"type": "t"})
    metric = ["--metric", "exact_match"]
    conditions = ["--value", "exact_match", "--where", "type=t", "--by", "type"]
    shown = cli("show", str(tmp_path), *metric, *metric, *conditions).stdout
    _, _, hint = shown.partition("samples: lm-eval-ext samples ")
    arguments = hint.split()
    assert arguments == [str(tmp_path), "--task", TASK, *metric, *conditions, "--wrong"]
    assert cli("samples", *arguments).stdout.count(": wrong") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"is_wrong": True}, "no sample .* is like this: --wrong", id="none is wrong"),
        pytest.param({"is_different": True}, "--differ needs two models", id="one model"),
        pytest.param({"models": ("q",)}, "--model q is no model .* available: a", id="no model"),
        pytest.param({"ids": ("99",)}, "is like this: --id 99", id="no such id"),
        pytest.param({"query": ScoreQuery(("no",))}, "no metric no", id="no such metric"),
    ],
)
def test_a_query_for_no_samples_is_one_line(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    """Every mistake names what is legal."""
    write(tmp_path, 8)
    with pytest.raises(OptionError, match=message):
        report(tmp_path, **options)


def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path) -> None:
    """Escapes, a fence of Markdown and half a surrogate pair stay text in every format."""
    write(tmp_path, 0)
    hostile = "\x1b[31m```\n# head\nhalf \ud83d"

    def change(sample: dict[str, Any]) -> None:
        sample["resps"] = [[hostile]]

    edit_samples(tmp_path, change)
    text = report(tmp_path, limit=1)
    assert "\x1b" not in text
    assert "\ud83d" not in text
    markdown = report(tmp_path, "markdown", limit=1)
    assert "\n````\n" in markdown, "a longer fence"
    markdown.encode()
    (line,) = report(tmp_path, "jsonl", limit=1).splitlines()
    assert json.loads(line)["models"][0]["response"] == hostile
    assert line.isascii()


def test_all_readers_have_one_key_for_a_sample(tmp_path: Path) -> None:
    """A document that occurs twice is told apart, also where the first one has no score."""
    write(tmp_path, 4)

    def change(sample: dict[str, Any]) -> None:
        sample["doc_hash"] = f"doc{sample['doc_id'] // 2}"
        if sample["doc_id"] == 2:
            sample["metrics"] = []

    edit_samples(tmp_path, change)
    run = run_in(tmp_path, TASK)
    keys = [sample.key for sample in keyed_samples(run)]
    assert keys == [f"doc{number // 2}#{number % 2}" for number in range(8)]
    assert list(rows(run)["document"]) == [key for key in keys if key != "doc1#0"]
    assert [sample["key"] for sample in lines_of(tmp_path)] == keys
    scores = {sample["key"]: sample["models"][0]["score"] for sample in lines_of(tmp_path)}
    assert scores["doc1#0"] == "not scored"
    assert scores["doc1#1"] == "Exact match 1.000: right"


def test_a_verdict_is_said_in_words() -> None:
    """The engine's error, the database that decided, and the rule."""
    verdict = {
        "status": "wrong",
        "reason": "2 of 14 rows are missing",
        "database": "small-3",
        "rule": "strict-v2",
        "original_status": "correct",
    }
    assert verdict_text(verdict) == (
        "the result is wrong: 2 of 14 rows are missing (decided on the small-3 database by "
        "strict-v2); on the original database the result is right"
    )
    error = {"status": "prediction_error", "reason": "no such column: q\n", "original_status": None}
    assert verdict_text(error) == "the query fails: no such column: q"


class QueryViews:
    """A view whose answers return the same error or rows."""

    def __init__(self, detail: Detail) -> None:
        self.detail = detail

    def documents(self, docs: Any, prompts: Any) -> list[DocumentView]:
        raise NotImplementedError

    def answers(self, docs: Any, answers: Any) -> list[AnswerView]:
        return [AnswerView("SELECT q", (self.detail,))]


@pytest.mark.parametrize(
    ("verdict", "detail", "is_shown"),
    [
        ("no such column: q", Detail("R", "no such column: q (in the query: SELECT q)"), False),
        ("no such table: q", Detail("R", "no such column: q (in the query: SELECT q)"), True),
        ("1 row instead of 2", Detail("R", table=(("q",), ("1",))), True),
        ("", Detail("R", "no such column: q"), True),
    ],
    ids=["same error", "another error", "rows", "no verdict"],
)
def test_an_error_is_said_once(verdict: str, detail: Detail, is_shown: bool) -> None:
    """The line of the verdict has the error that the query's result would repeat."""
    verdict_keys = {"status": "prediction_error", "reason": verdict} if verdict else {}
    sample = LoggedSample(
        "1",
        "none",
        {},
        ("?",),
        "SELECT 1",
        ("SELECT q",),
        ("SELECT q",),
        (),
        verdict_keys,
        True,
        (),
    )
    document = InspectedDocument("?", "1", "SELECT 1", (), ())
    (inspected,) = inspect_answers([sample], [document], QueryViews(detail))
    assert inspected.details == ((detail,) if is_shown else ())


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        pytest.param("a b c", "a x c", "word 2 is “x”, not “b”", id="another word"),
        pytest.param("a b", "a b c d", "2 words too many, from “c”", id="too long"),
        pytest.param("a b c", "a", "2 words are missing, from “b”", id="too short"),
        pytest.param("a b", "a  b", "", id="spaces only"),
        pytest.param("a", "", "", id="nothing"),
    ],
)
def test_the_first_word_that_differs_is_named(gold: str, answer: str, expected: str) -> None:
    """The first word that differs is named."""
    assert first_difference(gold, answer) == expected


@pytest.mark.parametrize(
    "template",
    [
        pytest.param(
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ\n1<|im_end|>\n"
            "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nR<|im_end|>\n"
            "<|im_start|>assistant\n",
            id="ChatML",
        ),
        pytest.param(
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nQ\n1<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nR<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            id="Llama 3",
        ),
        pytest.param(
            "<|system|>\nS<|end|>\n<|user|>\nQ\n1<|end|>\n<|assistant|>\nA<|end|>\n"
            "<|user|>\nR<|end|>\n<|assistant|>\n",
            id="Phi",
        ),
        pytest.param(
            json.dumps(
                [
                    {"role": "system", "content": "S"},
                    {"role": "user", "content": "Q\n1"},
                    {"role": "assistant", "content": "A"},
                    {"role": "user", "content": "R"},
                ]
            ),
            id="messages of a server",
        ),
    ],
)
def test_a_prompt_is_divided_into_the_turns_of_its_template(template: str) -> None:
    """Demonstrations are turns of a conversation, not tokens of a template."""
    assert turns_of(template) == [
        Turn("system", "S"),
        Turn("user", "Q\n1"),
        Turn("assistant", "A"),
        Turn("user", "R"),
    ]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        pytest.param("plain [text] <b>", [Turn("", "plain [text] <b>")], id="no template"),
        pytest.param("[1, 2]", [Turn("", "[1, 2]")], id="JSON that is no messages"),
        pytest.param(
            "<bos><start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n",
            [Turn("user", "Q")],
            id="Gemma",
        ),
        pytest.param(
            "<s>[INST] Q [/INST] A</s>[INST] R [/INST]",
            [Turn("user", " Q "), Turn("assistant", " A"), Turn("user", " R ")],
            id="Mistral",
        ),
    ],
)
def test_a_prompt_without_a_known_template_stays_one_text(
    prompt: str, expected: list[Turn]
) -> None:
    """A prompt without a known chat template stays one text."""
    assert turns_of(prompt) == expected


def test_several_answers_have_numbers_so_that_an_empty_one_is_seen(tmp_path: Path) -> None:
    """Joined without numbers, an empty answer and a right one look like the gold."""
    samples = [{**row, "target": "x"} for row in answered_rows(8, 0)]
    write_run(tmp_path / "a", "a", "plurals", samples)

    def answer_twice(sample: dict[str, Any]) -> None:
        sample["resps"] = [[""], ["x"]]
        sample["filtered_resps"] = ["", "x"]

    edit_samples(tmp_path / "a", answer_twice)
    shown = lines_of(tmp_path, is_wrong=True)
    assert shown[0]["models"][0]["answer"] == "(1) \n(2) x"
    assert "the same as the gold" not in report(tmp_path, is_wrong=True)
