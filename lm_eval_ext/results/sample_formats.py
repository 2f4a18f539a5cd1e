"""The samples that are shown, as Markdown for a document and as JSON lines for programs."""

import json
from collections.abc import Iterator, Sequence

from lm_eval_ext.results.detail_text import detail_section
from lm_eval_ext.results.grid import escape_markdown, markdown
from lm_eval_ext.results.samples import Detail
from lm_eval_ext.results.shown_samples import (
    SampleQuery,
    ShownAnswer,
    ShownPart,
    ShownSample,
    short_key,
)
from lm_eval_ext.text import one_line


def markdown_report(shown_parts: Sequence[ShownPart], query: SampleQuery) -> Iterator[str]:
    """Yield the lines of a document in Markdown."""
    for part in shown_parts:
        title, *lines = part.heading.splitlines()
        yield f"## {escape_markdown(title)}"
        yield ""
        for line in lines:
            yield f"- {escape_markdown(line)}"
        for position, sample in enumerate(part.samples, start=1):
            yield from _sample_markdown(position, sample, query)


def _sample_markdown(position: int, sample: ShownSample, query: SampleQuery) -> Iterator[str]:
    document = sample.document
    name = one_line(document.id or short_key(sample.key))
    yield ""
    yield f"### {position}. {escape_markdown(name)}"
    yield from _block("Question", document.title)
    yield from _block("Gold", document.gold)
    if query.is_whole:
        for prompt in document.prompts:
            for turn in prompt:
                yield from _block(turn.role.capitalize() or "Prompt", turn.text)
    for detail in document.details:
        yield from _detail_markdown(detail)
    for answer in sample.answers:
        inspected = answer.answer
        yield ""
        yield f"#### {escape_markdown(one_line(answer.model))}: {answer.score}"
        if inspected.reason:
            yield ""
            yield escape_markdown(inspected.reason)
        if inspected.response and inspected.response != inspected.answer:
            yield from _block("Response", inspected.response)
        yield from _block("Answer", inspected.answer)
        if inspected.rule:
            yield ""
            yield f"Read as: {escape_markdown(inspected.rule)}"
        for detail in inspected.details:
            yield from _detail_markdown(detail)


def _block(label: str, content: str) -> Iterator[str]:
    """Yield a text as a block of code, which no model's text can end."""
    ticks = "```"
    while ticks in content:
        ticks += "`"
    writable = content.encode("utf-8", "backslashreplace").decode()
    yield from ("", f"{label}:", "", ticks, writable, ticks)


def _detail_markdown(detail: Detail) -> Iterator[str]:
    if not detail.table:
        yield from _block(detail.title, detail.text)
        return
    yield ""
    yield markdown([detail_section(detail)]).rstrip()


def json_lines(task: str, shown_parts: Sequence[ShownPart]) -> Iterator[str]:
    """Yield a line of JSON for each sample."""
    for part in shown_parts:
        for sample in part.samples:
            document = sample.document
            content = {
                "task": task,
                "part": part.heading.splitlines()[0],
                "key": sample.key,
                "id": document.id,
                "question": document.title,
                "gold": document.gold,
                "document": [_detail_fields(detail) for detail in document.details],
                "prompts": [list(map(vars, prompt)) for prompt in document.prompts],
                "models": [_answer_fields(answer) for answer in sample.answers],
            }
            # ASCII, so that half a surrogate pair in a response stays an escape.
            yield json.dumps(content) + "\n"


def _answer_fields(answer: ShownAnswer) -> dict[str, object]:
    inspected = answer.answer
    return {
        "model": answer.model,
        "value": answer.value,
        "score": answer.score,
        "response": inspected.response,
        "answer": inspected.answer,
        "read_as": inspected.rule,
        "reason": inspected.reason,
        "parts": [_detail_fields(detail) for detail in inspected.details],
    }


def _detail_fields(detail: Detail) -> dict[str, object]:
    return {
        "title": detail.title,
        "text": detail.text,
        "table": detail.table,
        "marked": detail.marked,
    }
