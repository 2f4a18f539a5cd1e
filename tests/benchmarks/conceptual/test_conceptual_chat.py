"""The answer in what a chat model wrote: what has to be read, and what must stay wrong."""

import pytest

from lm_eval_ext.benchmarks.conceptual.answers import in_chat, is_right
from lm_eval_ext.benchmarks.conceptual.records import Option

OPTIONS = [Option("A", "ice"), Option("B", "warm water"), Option("C", "iron")]

RIGHT = {
    "alone": "{a}",
    "a capital and a full stop": "{A}.",
    "an introduction": "Here is the answer:\n{a}",
    "an opening": "Sure!\n\n{a}",
    "a label": "Prediction: {a}",
    "a label in bold": "**Answer:** {a}",
    "a sentence": "The correct answer is {a}.",
    "reasons first": "Heat makes it change. So the answer is: {a}",
    "reasons on lines before": "It is heated.\nIt changes.\n\nFinal answer: {a}",
    "an explanation behind": "{a}\n\nExplanation: other things stay as they are.",
    "a fence": "```\n{a}\n```",
    "bold": "**{a}**",
    "thinking": "<think>Is it iron? The answer is iron.</think>\n{a}",
    "another example behind": "{a}\n\nInput: What is hot? Prediction: iron",
    "a correction": "The answer is iron. No, the answer is {a}.",
}

WRONG = {
    "another option": "iron",
    "a correction to another": "The answer is {a}.\nThe correct answer is iron.",
    "two": "{a} or iron",
    "negated": "The answer is not {a}",
    "only thought": "<think>{a}</think>\niron",
    "a thought without an end": "<think>\n{a}",
    "within a sentence": "It cannot be {a} since that melts",
    "another in the fence": "{a}\n```\niron\n```",
    "of a further question": "iron\n\nInput: What is wet? Prediction: {a}",
    "named late": "I am not sure.\n{a} is one of the options.",
    "refused": "I cannot answer that.",
    "nothing": "",
}


@pytest.mark.parametrize("right", OPTIONS[:2], ids=["short", "long"])
@pytest.mark.parametrize("why", [*RIGHT, *WRONG])
def test_each_family(why: str, right: Option) -> None:
    answer = {**RIGHT, **WRONG}[why].format(a=right.text, A=right.text.capitalize())
    read = in_chat(answer)
    assert is_right(read, right.text, OPTIONS, right.label, labels_shown=True) is (why in RIGHT), (
        read
    )


def test_labels_are_read_like_texts() -> None:
    for answer in ("The answer is (B).", "(B) warm water", "Answer: B", "**B**", "B. warm water"):
        for gold in ("warm water", "B"):
            assert is_right(in_chat(answer), gold, OPTIONS, "B", labels_shown=True), answer


def test_a_right_answer_is_returned_unchanged() -> None:
    for gold in ("ice", "warm water", "B", "yes", "no", "Chief of Protocol", "3 + 4 = 7", "3-2"):
        assert in_chat(gold) == gold


def test_a_long_answer_costs_little() -> None:
    for part in ("so the answer ", "answer is ", "```\n", "Sure! ", ". " * 40, "input:\n", "a:\n"):
        in_chat(part * (1_000_000 // len(part)))
