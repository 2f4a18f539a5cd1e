"""``lm-eval-ext samples``: what models answered, and why it is right or wrong."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import fill, wrap
from typing import Literal

from lm_eval_ext.results.detail_text import INDENT, LABEL_WIDTH, detail_text
from lm_eval_ext.results.grid import WIDTH
from lm_eval_ext.results.inspection import InspectedDocument
from lm_eval_ext.results.models import Model
from lm_eval_ext.results.sample_formats import json_lines, markdown_report
from lm_eval_ext.results.shown_samples import (
    ModelSamples,
    SampleQuery,
    ShownAnswer,
    ShownPart,
    ShownSample,
    choose_models,
    choose_task,
    short_key,
    shown_parts,
)
from lm_eval_ext.text import one_line

Format = Literal["text", "markdown", "jsonl"]

_MAX_LINES = 30
"""Lines of one text that a terminal shows without ``--whole``."""

_SIDE_BY_SIDE = 110
"""Columns of a terminal from which two models stand side by side."""

_MAX_INDENT = 8
"""Spaces that a line of a text keeps in front."""


def samples_report(
    models: Sequence[Model],
    task: str,
    query: SampleQuery,
    format_: Format = "text",
) -> str:
    """Return the samples of a task as text, Markdown or JSON lines.

    Args:
        models: The models of any results.
        task: The task; "" if the results have only one.
        query: Which samples to show.
        format_: The format.

    Raises:
        OptionError: No task, model, metric or facet has that name, or no sample is like this.
        DataError: Samples were not logged or cannot be read.
    """
    chosen = choose_models(models, choose_task(models, task), query)
    parts = list(shown_parts(chosen, query))
    if format_ == "jsonl":
        return "".join(json_lines(chosen[0].run.task, parts))
    if format_ == "markdown":
        return "\n".join(markdown_report(parts, query)).rstrip() + "\n"
    width = max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    report = "\n".join(_text(parts, query, width)).rstrip() + "\n"
    command = _explain_command(chosen, parts)
    if command:
        report += f"\nthe smallest rows on which two queries differ: {command}\n"
    return report


def _explain_command(models: Sequence[ModelSamples], parts: Sequence[ShownPart]) -> str:
    """Return the command that explains the first shown SQL with a wrong result; "" if none."""
    for part in parts:
        for sample in part.samples:
            for model in models:
                if sample.document.id and _has_wrong_result(model, sample.key):
                    return _explanation_of(model, sample.document.id)
    return ""


def _has_wrong_result(model: ModelSamples, key: str) -> bool:
    """Return whether a model's query was executed and returned something else than the gold."""
    logged = model.samples.get(key)
    return logged is not None and logged.verdict.get("status") == "wrong"


def _explanation_of(model: ModelSamples, document: str) -> str:
    """Return the command that explains a model's query for a document."""
    words = ["lm-eval-ext sql explain"]
    words += ["--results", shlex.quote(str(model.run.file.path.parent))]
    words += ["--task", one_line(model.run.task)]
    words += ["--model", shlex.quote(one_line(model.label))]
    words += ["--doc", shlex.quote(one_line(document))]
    return " ".join(words)


# For a terminal.


def _text(shown_parts: Sequence[ShownPart], query: SampleQuery, width: int) -> Iterator[str]:
    for part in shown_parts:
        for line in part.heading.splitlines():
            yield fill(line, width, subsequent_indent="  ")
        for position, sample in enumerate(part.samples, start=1):
            yield ""
            yield from _sample_text(position, sample, query, width)
        yield ""


def _sample_text(
    position: int, sample: ShownSample, query: SampleQuery, width: int
) -> Iterator[str]:
    document = sample.document
    head = f"── {position} · {one_line(document.id or short_key(sample.key))} "
    yield head + "─" * max(width - len(head), 0)
    yield from _field("question", document.title, query, width)
    yield from _field("gold", document.gold, query, width)
    if query.is_whole:
        for prompt in document.prompts:
            for turn in prompt:
                yield from _field(turn.role or "prompt", turn.text, query, width)
    for detail in document.details:
        if query.is_whole or detail.beside:
            yield from detail_text(detail, width)
    if len(sample.answers) == 2 and width >= _SIDE_BY_SIDE:  # noqa: PLR2004
        half = (width - 3) // 2
        left_column = _answer_text(sample.answers[0], document, query, half)
        right_column = _answer_text(sample.answers[1], document, query, half)
        for left_line, right_line in zip_longest(left_column, right_column, fillvalue=""):
            yield f"{left_line:{half}} │ {right_line}".rstrip()
        return
    for answer in sample.answers:
        yield from _answer_text(answer, document, query, width)


def _answer_text(
    answer: ShownAnswer, document: InspectedDocument, query: SampleQuery, width: int
) -> Iterator[str]:
    inspected = answer.answer
    yield from _field("model", answer.model, query, width)
    if inspected.response.strip() not in ("", inspected.answer.strip()):
        yield from _field("response", inspected.response, query, width)
    shown_answer = inspected.answer
    is_long = "\n" in shown_answer or len(shown_answer) > width
    if is_long and shown_answer.strip() == document.gold.strip():
        shown_answer = "the same as the gold"
    yield from _field("answer", shown_answer, query, width)
    if inspected.rule:
        yield from _field("read as", inspected.rule, query, width)
    yield from _field("score", answer.score, query, width)
    if inspected.reason:
        yield from _field("why", inspected.reason, query, width)
    for detail in inspected.details:
        if query.is_whole or not detail.is_extra:
            yield from detail_text(detail, width)
        else:
            hint = f"{detail.title}: --whole shows them"
            yield from wrap(hint, width, initial_indent=INDENT, subsequent_indent=INDENT)


def _field(label: str, content: str, query: SampleQuery, width: int) -> Iterator[str]:
    """Yield a text behind its label, with each of its lines wrapped; long ones are cut."""
    lines: list[str] = []
    for line in content.splitlines() or [""]:
        lines += _wrapped(line, width - LABEL_WIDTH)
    if not query.is_whole and len(lines) > _MAX_LINES:
        hidden = len(lines) - _MAX_LINES
        lines = [*lines[:_MAX_LINES], f"… {hidden} more lines; --whole shows them"]
    label = one_line(label)[: LABEL_WIDTH - 1]
    for line in lines:
        yield f"{label:{LABEL_WIDTH}}{line}".rstrip()
        label = ""


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line of any text as lines of this width, with the indent that it has."""
    safe = one_line(line.expandtabs(4)) if line.strip() else ""
    indent = " " * min(len(line) - len(line.lstrip(" ")), _MAX_INDENT)
    lines = [indent + text for text in wrap(safe, width - len(indent))]
    return lines or [""]
