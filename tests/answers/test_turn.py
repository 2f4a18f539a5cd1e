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
from lm_eval_ext.answers.turn import MAX_CHARACTERS, turn_text
from lm_eval_ext.benchmarks.cogs.answers import READER as COGS_READER
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.slog.answers import READERS as SLOG_READERS

CASES: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("turn_cases.yaml").read_text(encoding="utf-8")
)
"""By family: responses, each with what is left of it."""

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
    parameters: list[object] = []
    for family, texts in CASES.items():
        for number, (response, text) in enumerate(texts.items()):
            parameters.append(pytest.param(response, text, id=f"{family} {number}"))
    return parameters


@pytest.mark.parametrize(("response", "text"), cases())
def test_tokens_channels_and_reasoning_are_no_part_of_a_turn(response: str, text: str) -> None:
    """They go, as invisible characters do; texts that look like them stay."""
    assert turn_text(response) == text


def forms_of_an_answer() -> list[str]:
    """Return the responses with tokens or channels around the answer A, and no other text."""
    forms = []
    for family in ("special tokens", "channels"):
        for response, text in CASES[family].items():
            if text.strip() == "A" and "B" not in response:
                forms.append(response)
    return forms


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("form", forms_of_an_answer())
def test_every_benchmark_reads_tokens_and_channels(form: str, name: str) -> None:
    """All benchmarks know the same families."""
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
    """A model does not answer what it only thinks."""
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
    """The text outside of reasoning is cut, so that no response costs more than that."""
    assert len(turn_text("ice " * 100_000)) == MAX_CHARACTERS


def test_a_thought_that_the_prompt_opened_is_one() -> None:
    """Some templates end with the opening tag, which the response then lacks."""
    assert with_opened_thought("x <think>\n", "a") == "<think>\na"
    assert with_opened_thought("<think>x", "a") == "a"
    assert with_opened_thought([{"role": "user"}], "a") == "a"


def test_fenced_blocks_are_recognized_by_either_mark() -> None:
    """Also with blank lines inside, behind words, and where one is never closed."""
    text = "a\n```py\nb\n\nc\n```\nd\n~~~\ne\n~~~\nHere: ```\nf```\ng\n```\nh"
    assert [block.text.strip() for block in fenced_blocks(text)] == ["b\n\nc", "e", "f", "h"]
    assert fenced_blocks("a `b` c") == []


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        pytest.param("- **(B) ice**", "(B) ice", id="bold in a list"),
        pytest.param("1. `A`.", "A", id="code in a numbered list"),
        pytest.param(r"$\boxed{\text{A}}$", "A", id="box in a formula"),
        pytest.param("> “A”", "A", id="quotation"),
        pytest.param("[[A]]", "A", id="brackets"),
        pytest.param("**a** or **b**", "**a** or **b**", id="two bold words"),
        pytest.param(r"\* dog ( x \_ 1 )", "dog ( x _ 1 )", id="escaped signs"),
    ],
)
def test_layers_of_markup_come_off_one_after_the_other(text: str, inner: str) -> None:
    """Two marks beside each other enclose nothing."""
    *_, innermost = unwrapped(text)
    assert innermost.strip() == inner


def test_a_box_ends_at_its_own_brace() -> None:
    """One that is never closed is none."""
    assert [span.text for span in boxes(r"\boxed{a{b}} \boxed{c")] == ["a{b}"]


def test_a_tag_may_stay_open() -> None:
    """Its text goes to the end of the response."""
    assert [span.text for span in tagged_texts("<answer>A</answer> <final>B")] == ["A", "B"]


def test_json_has_one_text_or_a_key_that_is_named_for_an_answer() -> None:
    """Objects with other keys have no answer."""
    text = 'x {"answer": "A", "why": "B"} {"a": "b", "c": "d"} ["E"] {\'answer\': \'F\'}'
    assert [span.text for span in json_texts(text)] == ["A", "E", "F"]


def test_the_steps_of_a_reading_can_be_listed() -> None:
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


class _NoGrammar:
    """A grammar that finds no candidates."""

    def find(self, text: str) -> list[object]:
        return []


def test_tokens_of_a_tokenizer_may_be_named() -> None:
    """A family that nobody knew yet is an option."""
    reader = AnswerReader(ReaderOptions(_NoGrammar(), special_tokens=("<fin!>",)))  # type: ignore[arg-type]
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
    small = processor_seconds(read, piece * (5_000 // len(piece)))
    large = processor_seconds(read, piece * (20_000 // len(piece)))
    assert large < max(3, 12 * small)


def processor_seconds(read: Callable[[str], str], response: str) -> float:
    """Return the processor time of a reading."""
    start = process_time()
    read(response)
    return process_time() - start


@pytest.mark.parametrize("name", READERS)
@given(response=st.text(alphabet="AB<>|/`*~_{}[]()\"'\\#.:\n ansiwerthk菜名是：", max_size=200))
def test_no_response_raises(name: str, response: str) -> None:
    """Any text has a reading, whose answer is a text."""
    assert isinstance(READERS[name].read(response), str)
