"""MAGNIFICo's prompts, in the format "Create Table + Select 3" (paper, section 4, figures 20-22).

There are two layouts. ``released`` is that of the authors' code, which their published numbers rest
on; ``figure`` is how the paper's figures look. Prompts are never shortened: if they do not fit into
the model's window, lm-eval truncates them.
"""

from collections.abc import Iterable, Sequence

from lm_eval_ext.benchmarks.magnifico.records import Example, Layout, Position
from lm_eval_ext.benchmarks.magnifico.tables import SHOWN_ROWS, Table

INSTRUCTION = "-- Using valid {}, answer the following questions for the tables provided above."
"""With the name of the database's engine."""

SQLITE = "SQLite"
START = "SELECT"
"""The end of every prompt."""

SPEAKERS = ("User1", "User2")
"""The speakers who ask and who answer in dialogues."""


def for_question(
    blocks: Sequence[str],
    question: str,
    layout: Layout,
    *,
    descriptions: Sequence[str] = (),
    position: Position = "end",
    support: Iterable[Example] = (),
    dialect: str = SQLITE,
) -> str:
    """Renders a prompt from the blocks of :func:`schema`.

    Descriptions are before the tables ("start"), after the middle table ("mid"), or after the
    instruction ("end"). Support examples follow.
    """
    parts = list(blocks)
    lines = _described(descriptions, layout, position)
    if position == "start":
        parts = [*lines, *parts]
    elif position == "mid":
        middle = _middle(len(parts), layout)
        parts = [*parts[:middle], *lines, *parts[middle:]]
    parts.append(INSTRUCTION.format(dialect))
    if position == "end":
        parts += lines
    parts += [f"-- {example.question}\n{example.query}" for example in support]
    return _gap(layout).join([*parts, f"-- {question}\n{START}"])


def _gap(layout: Layout) -> str:
    """What separates tables, descriptions, examples and the question."""
    return "\n\n" if layout == "released" else "\n"


def _described(descriptions: Sequence[str], layout: Layout, position: Position) -> list[str]:
    if layout == "figure":
        return [f"-- {one}" for one in descriptions]
    text = " ".join(descriptions)
    if not text:
        return []
    return [f"-- {text}" if position == "end" else text]


def _middle(tables: int, layout: Layout) -> int:
    """How many tables precede a description in the middle.

    Of an odd number the smaller part in ``released`` (but at least one table), the larger one in
    ``figure``.
    """
    return max(1, tables // 2) if layout == "released" else (tables + 1) // 2


def in_dialogue(
    dialogue: str,
    blocks: Sequence[str],
    question: str,
    layout: Layout,
    *,
    dialect: str = SQLITE,
) -> str:
    """Renders a prompt that continues a dialogue (paper, figure 22)."""
    asks, answers = SPEAKERS
    turn = _gap(layout).join(
        [
            f"{asks}: Suppose you are given the following schema:",
            *blocks,
            f"Using valid {dialect}, answer the following question with the corresponding SQL "
            f"query:\n{question}",
        ]
    )
    return "\n\n".join([dialogue.strip(), turn, f"{answers}: {START}"])


def description(form: str, meaning: str) -> str:
    """Our own description of a word (in the manner of the paper's figure 20)."""
    kind = "phrase" if " " in form else "word"
    return f"The {kind} '{form}' refers to {meaning}."


def schema(tables: Iterable[Table], layout: Layout) -> list[str]:
    """Renders each table as a block of text."""
    block = _released_block if layout == "released" else _figure_block
    return [block(table) for table in tables]


def _released_block(table: Table) -> str:
    """Values are Python's ``str()``; blanks at the ends of a line are gone, as with the authors.

    A table without rows has an empty line in their place.
    """
    select = f"SELECT * FROM {table.spelt} LIMIT {SHOWN_ROWS};"
    header = "\t".join(table.header).strip()
    rows = "\n".join("\t".join(map(str, row)).strip() for row in table.rows).strip()
    if table.create is None:
        start = f"/*\n{SHOWN_ROWS} example rows of table {table.spelt}:"
    else:
        start = f"{table.create}\n/*\n{SHOWN_ROWS} example rows:"
    return "\n".join([start, select, header, rows, "*/"])


def _figure_block(table: Table) -> str:
    lines = ["\t".join(table.header), *("\t".join(map(_cell, row)) for row in table.rows)]
    return (
        f"{table.create}\n/*\n{SHOWN_ROWS} example rows:\n"
        f"SELECT * FROM {table.spelt} LIMIT {SHOWN_ROWS};\n" + "\n".join(lines) + "\n*/"
    )


def _cell(value: object) -> str:
    """A value without line breaks and tabs, which would break the table."""
    text = "NULL" if value is None else value.hex() if isinstance(value, bytes) else str(value)
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
