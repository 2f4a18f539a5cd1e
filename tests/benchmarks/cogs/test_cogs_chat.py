"""The form in a chat model's answer: what has to be read, and what must stay wrong."""

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs.chat import INSTRUCTION, form_in
from lm_eval_ext.benchmarks.cogs.score import score
from lm_eval_ext.logical_forms import parse

FORMS = (
    "* knight ( x _ 1 ) ; yawn . agent ( x _ 2 , x _ 1 )",
    "pebble ( x _ 1 ) AND like . agent ( x _ 2 , x _ 1 ) AND like . theme ( x _ 2 , Hugo )",
    "* cat ( x _ 1 ) ; * mat ( x _ 8 ) ; see . agent ( x _ 2 , x _ 1 ) AND "
    "see . theme ( x _ 2 , x _ 4 ) AND dog ( x _ 4 ) AND dog . nmod . on ( x _ 4 , x _ 8 )",
)
OTHER = "frog ( x _ 1 ) AND jump . agent ( x _ 2 , x _ 1 )"

RIGHT = {
    "alone": "{form}",
    "a blank line before": "\n\n{form}\n",
    "an introduction": "Here is the form:\n{form}",
    "an introduction on the line": "Sure! Here is the logical form: {form}",
    "an introduction and a blank line": "Certainly!\n\nThe logical form is:\n\n{form}\n",
    "a label": "Logical form: {form}",
    "a label in bold": "**Logical form:** {form}",
    "a sentence": "The logical form is {form}.",
    "a fence": "```\n{form}\n```",
    "a fence with a language": "Here is the form:\n```text\n{form}\n```\nIt has all roles.",
    "an open fence": "```\n{form}",
    "backticks": "`{form}`",
    "quotation marks": 'The answer: "{form}"',
    "bold": "**{form}**",
    "an explanation behind": "{form}\n\nThis form states the agent and what it does.",
    "a note behind": "{form}\nNote: positions start at 0.",
    "several lines": "Here it is:\n{broken}",
    "several lines in a fence": "```\n{broken}\n```",
    "thinking": "<think>\n" + OTHER + "\n</think>\n{form}",
    "thinking that the prompt opened": "maybe " + OTHER + "?\n</think>\n\n{form}",
    "steps": "Step 1: nouns\ndog ( x _ 1 )\nStep 2: all\n{form}",
    "a draft": "First: " + OTHER + "\nOn reflection, the answer is: {form}",
    "escaped Markdown": "{escaped}",
    "the sentence repeated": "Sentence: A knight yawned .\nLogical form: {form}",
    "another example behind": "{form}\n\nSentence: A frog jumped .\nLogical form: " + OTHER,
    "an end of turn": "{form}<|im_end|>",
    "a bullet": "- {form}",
}

WRONG = {
    "another form": OTHER,
    "a correction to another": "{form}\nWait, rather: " + OTHER,
    "two in a fence": "```\n{form}\n" + OTHER + "\n```",
    "another in the fence": "{form}\n```\n" + OTHER + "\n```",
    "only thought": "<think>{form}</think>\n" + OTHER,
    "only thought, and nothing said": "<think>{form}</think>",
    "a thought without an end": "<think>\nSo it is\n{form}",
    "more than the form": "{form} AND big ( x _ 1 )",
    "more on the next line": "{form} AND\nbig ( x _ 1 )",
    "negated": "The logical form is not {form}",
    "within a sentence": "One might say {form} here",
    "cut off": "{cut}",
    "a bracket too many": "{form} )",
    "without AND": "{listed}",
    "other positions": "{moved}",
    "of a further sentence": OTHER + "\nSentence: A knight yawned .\nLogical form: {form}",
    "prose": "I cannot do that.",
    "nothing": "",
}


def made(shape: str, form: str) -> str:
    return shape.format(
        form=form,
        broken=form.replace(" AND ", " AND\n").replace(" ; ", " ;\n"),
        escaped=form.replace("*", r"\*").replace("_", r"\_"),
        cut=form.rpartition(" ")[0],
        listed=form.replace(" AND ", "\n").replace(" ; ", "\n") + "\nmat ( x _ 9 )",
        moved=form.replace("x _ 1 ", "x _ 7 "),
    )


@pytest.mark.parametrize("why", [*RIGHT, *WRONG])
def test_each_family(why: str) -> None:
    shape = {**RIGHT, **WRONG}[why]
    for form in FORMS:
        answer = made(shape, form)
        assert score(form_in(answer), form)["exact_match"] is (why in RIGHT), form_in(answer)


def test_a_long_answer_costs_little() -> None:
    for part in ("dog ( x _ 1 ) AND\n", "a : ", "```\n", "<think>", "Sentence:\n"):
        form_in(part * (1_000_000 // len(part)))


def test_the_instruction_is_true_of_every_form() -> None:
    """Its example is a form; what it says about order holds for the corpus."""
    example = INSTRUCTION.partition("becomes\n")[2].partition("\n")[0]
    assert len(parse(example).atoms) == 5
    task = load_task("cogs_mini_gen")
    for doc in task.eval_docs:
        atoms = parse(doc["form"]).atoms
        definite = [atom.definite for atom in atoms]
        assert definite == sorted(definite, reverse=True)
        words = doc["sentence"].split()
        for atom in atoms:
            positions = [int(one[4:]) for one in atom.terms if one.startswith("x _ ")]
            assert all(0 <= position < len(words) for position in positions)
