"""From an example to what a model is asked: text in, text out.

The format is "Create Table + Select 3" (paper section 4 and figures 20 to 22). Prompts are
never shortened: a model whose window is too small sees what its own truncation leaves.
"""

from collections.abc import Iterable, Sequence

from lm_eval_ext.benchmarks.magnifico.records import Example, Position
from lm_eval_ext.benchmarks.magnifico.tables import SHOWN_ROWS, Table

INSTRUCTION = "-- Using valid SQLite, answer the following questions for the tables provided above."
START = "SELECT"
"""How every prompt ends, and how every query begins."""

SPEAKERS = ("User1", "User2")
"""Who asks and who answers in the dialogues."""


def schema(tables: Iterable[Table]) -> list[str]:
    """Renders tables, one block of text each."""
    blocks = []
    for table in tables:
        lines = ["\t".join(table.header), *("\t".join(row) for row in table.rows)]
        blocks.append(
            f"{table.create}\n/*\n{SHOWN_ROWS} example rows:\n"
            f"SELECT * FROM {_spelt(table.name)} LIMIT {SHOWN_ROWS};\n" + "\n".join(lines) + "\n*/"
        )
    return blocks


def _spelt(name: str) -> str:
    """A name as SQL takes it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def description(form: str, meaning: str) -> str:
    """The line that says what a word means (paper, figure 20)."""
    kind = "phrase" if " " in form else "word"
    return f"-- The {kind} '{form}' refers to {meaning}."


def for_question(
    blocks: Sequence[str],
    question: str,
    *,
    descriptions: Sequence[str] = (),
    position: Position = "end",
    support: Iterable[Example] = (),
) -> str:
    """Renders a direct, a description or a few-shot prompt.

    Args:
        blocks: The schema, table by table (:func:`schema`).
        question: What is asked.
        descriptions: Lines of :func:`description`; none for a direct prompt.
        position: Where the descriptions go: before the tables, after the middle one (the first
            half is the larger one), or after the instruction.
        support: Solved examples to put before the question.
    """
    parts = list(blocks)
    if position == "start":
        parts = [*descriptions, *parts]
    elif position == "mid":
        middle = (len(parts) + 1) // 2
        parts = [*parts[:middle], *descriptions, *parts[middle:]]
    parts.append(INSTRUCTION)
    if position == "end":
        parts += descriptions
    for example in support:
        parts += [f"-- {example.question}", example.query]
    return "\n".join([*parts, f"-- {question}", START])


def in_dialogue(dialogue: str, blocks: Sequence[str], question: str) -> str:
    """Renders a prompt that goes on a conversation (paper, figure 22)."""
    asks, answers = SPEAKERS
    turn = "\n".join(
        [
            f"{asks}: Suppose you are given the following schema:",
            *blocks,
            "Using valid SQLite, answer the following question with the corresponding SQL query:",
            question,
        ]
    )
    return "\n\n".join([dialogue.strip(), turn, f"{answers}: {START}"])
