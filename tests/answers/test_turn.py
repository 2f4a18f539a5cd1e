"""The stages that all benchmarks share: tokens, channels, reasoning; markup; hostile responses."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.answers.markdown import (
    boxes,
    fenced_blocks,
    json_texts,
    tagged_texts,
    unwrapped,
)
from lm_eval_ext.answers.reader import UNREAD, AnswerReader, ReadAnswer, ReaderOptions
from lm_eval_ext.answers.reasoning import with_opened_thought
from lm_eval_ext.answers.turn import MAX_CHARACTERS, said
from lm_eval_ext.benchmarks.cogs.answers import READER as COGS_READER
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.slog.answers import READERS as SLOG_READERS

CASES = yaml.safe_load(Path(__file__).with_name("turn_cases.yaml").read_text(encoding="utf-8"))
OPTIONS = (Option("A", "ice"), Option("B", "warm water"), Option("C", "iron"))
READERS = {
    "COGS": COGS_READER,
    "SLOG, COGS's notation": SLOG_READERS["cogs"],
    "SLOG, variable-free": SLOG_READERS["varfree"],
    "options": reader_for(OPTIONS, "options"),
    "labels": reader_for((), "follows"),
    "words": reader_for((), "text_first"),
    "dishes": NAME_READER,
}
ANSWERS = {
    "COGS": "dog ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )",
    "SLOG, COGS's notation": "dog ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )",
    "SLOG, variable-free": "run ( agent = * dog )",
    "options": "ice",
    "labels": "yes",
    "words": "Hugo Lamm",
    "dishes": "红烧土豆",
}


def cases() -> list[object]:
    """Return all cases with their family in the id."""
    found = []
    for family, pairs in CASES.items():
        for number, (response, text) in enumerate(pairs):
            found.append(pytest.param(response, text, id=f"{family} {number}"))
    return found


@pytest.mark.parametrize(("response", "text"), cases())
def test_what_a_model_says(response: str, text: str) -> None:
    """Tokens, channels, reasoning and invisible characters go; what looks like them stays."""
    assert said(response) == text


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "form",
    [response for family in ("special tokens", "channels") for response, text in CASES[family]
     if text.strip() == "A" and "B" not in response],
)  # fmt: skip
def test_every_benchmark_reads_tokens_and_channels(form: str, name: str) -> None:
    """One set of families for all benchmarks."""
    answer = ANSWERS[name]
    response = form.replace("A<", f"{answer}<").replace("A[", f"{answer}[")
    response = response.replace("A [", f"{answer} [")
    if response.endswith("A"):
        response = response[:-1] + answer
    assert READERS[name].read(response) == answer


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "form", ["<think>{}", "<think>{}</think>", "<|channel|>analysis<|message|>{}"]
)
def test_an_answer_in_the_reasoning_alone_is_none(form: str, name: str) -> None:
    """What a model only thinks is not what it answers."""
    assert READERS[name].read(form.format(ANSWERS[name])) == ""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "form",
    [
        "<think>{thought}</think>\n\n{answer}",
        "{thought}</think>{answer}",
        "<think>{thought}</think>{blank}{answer}",
        "<|channel|>analysis<|message|>{thought}<|end|><|channel|>final<|message|>{answer}",
    ],
    ids=["closed", "only a closing tag", "blank space behind it", "channel"],
)
def test_an_answer_behind_a_thought_of_any_length_is_read(form: str, name: str) -> None:
    """A thought of a megabyte hides no answer, and costs little."""
    thought = "Maybe it is not so. " * 50_000
    response = form.format(thought=thought, blank=" " * 200_000, answer=ANSWERS[name])
    start = process_time()
    assert READERS[name].read(response) == ANSWERS[name]
    assert process_time() - start < 10


def test_an_unended_text_is_read_to_a_limit() -> None:
    """What stands outside of reasoning is cut, so that no response costs more than that."""
    assert len(said("ice " * 100_000)) == MAX_CHARACTERS


def test_a_thought_that_the_prompt_opened_is_one() -> None:
    """Some templates end with the opening tag, which the response then lacks."""
    assert with_opened_thought("x <think>\n", "a") == "<think>\na"
    assert with_opened_thought("<think>x", "a") == "a"
    assert with_opened_thought([{"role": "user"}], "a") == "a"


def test_fenced_blocks() -> None:
    """Both marks, blank lines inside, a fence behind words, and one that is never closed."""
    text = "a\n```py\nb\n\nc\n```\nd\n~~~\ne\n~~~\nHere: ```\nf```\ng\n```\nh"
    assert [block.text.strip() for block in fenced_blocks(text)] == ["b\n\nc", "e", "f", "h"]
    assert fenced_blocks("a `b` c") == []


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("- **(B) ice**", "(B) ice"),
        ("1. `A`.", "A"),
        (r"$\boxed{\text{A}}$", "A"),
        ("> “A”", "A"),
        ("[[A]]", "A"),
        ("**a** or **b**", "**a** or **b**"),
        (r"\* dog ( x \_ 1 )", "dog ( x _ 1 )"),
    ],
)
def test_layers_of_markup(text: str, inner: str) -> None:
    """Layers come off one after the other, and two marks beside each other enclose nothing."""
    assert [*unwrapped(text)][-1].removeprefix("* ").strip() in (inner, inner.strip("*"))


def test_boxes_tags_and_json() -> None:
    """Braces are balanced, tags may be open, JSON has one text or a key named for an answer."""
    assert [span.text for span in boxes(r"\boxed{a{b}} \boxed{c")] == ["a{b}"]
    assert [span.text for span in tagged_texts("<answer>A</answer> <final>B")] == ["A", "B"]
    text = 'x {"answer": "A", "why": "B"} {"a": "b", "c": "d"} ["E"] {\'answer\': \'F\'}'
    assert [span.text for span in json_texts(text)] == ["A", "E", "F"]


def test_steps_can_be_listed() -> None:
    """Each step has a name and the text after it, and the last one is the answer."""
    reading = READERS["options"].explain("<think>iron?</think>\n**Answer:** ice<|im_end|>")
    names = [step.name for step in reading.why]
    assert names == [
        "response", "outside of reasoning", "special tokens", "announcement “Answer”",
    ]  # fmt: skip
    assert reading.why[-1].text == reading.answer == "ice"
    assert reading.summary == " > ".join(names[1:])
    answer = ReadAnswer(reading.answer, reading.summary)
    assert (answer, answer.summary, ReadAnswer("a").summary) == ("ice", reading.summary, UNREAD)


class _Echo:
    def find(self, text: str) -> list[object]:
        return []


def test_tokens_of_a_tokenizer_may_be_named() -> None:
    """A family that nobody knew yet is an option."""
    reader = AnswerReader(ReaderOptions(_Echo(), special_tokens=("<fin!>",)))  # type: ignore[arg-type]
    assert reader.read("A<fin!>B") == "A"


PIECES = [
    "dog ( x _ 1 ) AND\n", "a : ", "```\n", "~~~\n", "<think>", "</think>", "Sentence:\n", "`",
    "the answer is ", "**", r"\boxed{", "<answer>", '{"a":', "[[", "> ", "\n", "Answer: A\n",
    "see ( agent = ", "ice or ", "not ", "Explanation\n", "(", "<|", "~~", "<!--", "\u200b",
    "“番", "菜名：", "这道菜叫", "- ice\n", "<|channel|>final<|message|>", "[/INST]", "no, ",
    "| a | b |\n", "| - ", "|---|\n", "Sure! ",
]  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("piece", PIECES)
def test_a_response_of_20_kb_costs_little(piece: str, name: str) -> None:
    """Four times the length costs far less than sixteen times as much, which is quadratic."""
    read = READERS[name].read
    small, large = (measured(read, piece * (size // len(piece))) for size in (5_000, 20_000))
    assert large < max(0.3, 12 * small) or large < 3


def measured(read: Callable[[str], str], response: str) -> float:
    """Return the processor time in seconds, with a generous bound above."""
    start = process_time()
    read(response)
    return process_time() - start


@pytest.mark.parametrize("name", READERS)
@given(response=st.text(alphabet="AB<>|/`*~_{}[]()\"'\\#.:\n ansiwerthk菜名是：", max_size=200))
def test_no_response_raises(name: str, response: str) -> None:
    """Any text has a reading, whose answer is a text."""
    assert isinstance(READERS[name].read(response), str)
