"""``lm-eval-ext samples``: what models answered, and why it is right or wrong."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Literal

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import WIDTH, escape_markdown, markdown
from lm_eval_ext.results.inspection import (
    InspectedAnswer,
    InspectedDocument,
    LoggedSample,
    inspect_answers,
    inspect_documents,
    logged_samples,
    views_of,
)
from lm_eval_ext.results.models import Model, choose_tasks, runs_by_model
from lm_eval_ext.results.query import ScoreQuery, check
from lm_eval_ext.results.sample_scores import SampleScore, kind_of, values_for
from lm_eval_ext.results.samples import Part
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.statistics import number, parts
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

Format = Literal["text", "markdown", "jsonl"]

DEFAULT_LIMIT = 10
"""Samples that are shown of each part, unless more are asked for."""

_MOST_LINES = 30
"""Lines of one text that a terminal shows, unless the whole is asked for."""

_SIDE_BY_SIDE = 110
"""Columns of a terminal from which two models stand side by side."""

_LABEL = 10
"""Columns of the labels at the left."""

_LEAST_COLUMN = 6
"""Characters that a column of a table keeps, however narrow the terminal."""


@dataclass(frozen=True)
class SampleQuery:
    """Which samples of a task to show.

    Attributes:
        query: The score, by metric, and the rows that count.
        models: Labels, or parts of them; () for all, of which two are shown.
        is_wrong: Only samples that the first model has not right.
        is_different: Only samples that two models have different scores of.
        ids: Only samples with these ids or keys; () for all.
        limit: How many samples of each part; 0 for all.
        is_whole: Whether long texts are shown whole, and prompts, too.
    """

    query: ScoreQuery = field(default_factory=ScoreQuery)
    models: tuple[str, ...] = ()
    is_wrong: bool = False
    is_different: bool = False
    ids: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT
    is_whole: bool = False


@dataclass(frozen=True)
class ShownAnswer:
    """A model's answer with its score."""

    model: str
    value: float | None
    score: str
    answer: InspectedAnswer


@dataclass(frozen=True)
class ShownSample:
    """A document with the answers of one model or two."""

    key: str
    document: InspectedDocument
    answers: Sequence[ShownAnswer]


@dataclass(frozen=True)
class ShownPart:
    """Samples of one part of a task, such as a form of words.

    Attributes:
        heading: The part, the score, and how many samples there are.
        samples: Those that are shown.
    """

    heading: str
    samples: Sequence[ShownSample]


@dataclass(frozen=True)
class _ModelSamples:
    """One model's samples and its long table."""

    label: str
    run: Run
    samples: Mapping[str, LoggedSample]
    table: "DataFrame"


def samples_report(
    models: Sequence[Model], task: str, wanted: SampleQuery, format_: Format = "text"
) -> str:
    """Return the samples of a task as text, Markdown or JSON lines.

    Args:
        models: Of any results.
        task: The task; "" if the results have only one.
        wanted: Which samples.
        format_: The format.

    Raises:
        OptionError: No task, model, metric or facet has that name, or no sample is like this.
        DataError: Samples were not logged or cannot be read.
    """
    chosen = _choose_models(models, _choose_task(models, task), wanted)
    shown = list(_parts(chosen, wanted))
    if format_ == "jsonl":
        return "".join(_json_lines(chosen[0].run.task, shown))
    if format_ == "markdown":
        return "\n".join(_markdown(shown, wanted)).rstrip() + "\n"
    width = max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    return "\n".join(_text(shown, wanted, width)).rstrip() + "\n"


def _choose_task(models: Sequence[Model], task: str) -> str:
    available = choose_tasks(models, [task] if task else [], min_models=1)
    if len(available) > 1:
        raise OptionError(f"name one task with --task: {', '.join(available)}")
    return available[0]


def _choose_models(models: Sequence[Model], task: str, wanted: SampleQuery) -> list[_ModelSamples]:
    """Return the one model or the two that are shown."""
    runs = runs_by_model(models, task)
    labels = list(runs)
    if wanted.models:
        labels = [_label(name, list(runs)) for name in wanted.models]
    if len(labels) > 2:  # noqa: PLR2004
        raise OptionError(
            f"{len(labels)} models have results on {task}; name one or two with --model: "
            + ", ".join(labels)
        )
    if wanted.is_different and len(labels) != 2:  # noqa: PLR2004
        raise OptionError(f"--differ needs two models; {', '.join(labels)} is one")
    chosen = []
    for label in labels:
        samples = {sample.key: sample for sample in logged_samples(runs[label])}
        chosen.append(
            _ModelSamples(label, runs[label], samples, rows(runs[label], is_part_allowed=True))
        )
    return chosen


def _label(name: str, labels: Sequence[str]) -> str:
    """Return the label that a user names, whole or by a part that only it has."""
    if name in labels:
        return name
    matching = [label for label in labels if name.casefold() in label.casefold()]
    if len(matching) != 1:
        problem = "is several models" if matching else "is no model with results on this task"
        raise OptionError(f"--model {name} {problem}; available: {', '.join(labels)}")
    return matching[0]


def _parts(chosen: Sequence[_ModelSamples], wanted: SampleQuery) -> Iterator[ShownPart]:
    """Yield the parts of the first metric that is asked for, with their samples."""
    import pandas as pd

    first = chosen[0]
    metrics = wanted.query.metrics or (first.run.headline,)
    query = ScoreQuery(metrics[:1], wanted.query.value, wanted.query.where, wanted.query.by)
    ((title, question),) = query.questions(first.run)
    together = pd.concat([model.table for model in chosen])
    check(first.run.task, together, question, query.filter)
    measure = question.measure
    if measure.of_sample:
        title = title.replace(measure.title, measure.of_sample)
    score = SampleScore(list(metrics[:1]), title, kind_of(measure))
    has_samples = False
    for part, part_question in parts(together, question):
        values = [dict(values_for(model.table, part_question)) for model in chosen]
        if part:
            keys = [key for key in first.samples if any(key in own for own in values)]
        else:
            keys = list(first.samples)
        selected = [key for key in keys if _is_selected(key, first, values, score, wanted)]
        has_samples = has_samples or bool(selected)
        limited = selected[: wanted.limit] if wanted.limit else selected
        heading = _heading(chosen, part, score, values, len(keys), len(selected), len(limited))
        yield ShownPart(heading, _shown(chosen, limited, values, score))
    if not has_samples:
        conditions = ["--wrong"] if wanted.is_wrong else []
        conditions += ["--differ"] if wanted.is_different else []
        conditions += [f"--id {id_}" for id_ in wanted.ids]
        raise OptionError(f"no sample of {first.run.task} is like this: {', '.join(conditions)}")


def _is_selected(
    key: str,
    first: _ModelSamples,
    values: Sequence[Mapping[str, float]],
    score: SampleScore,
    wanted: SampleQuery,
) -> bool:
    if wanted.ids:
        id_ = str(first.samples[key].doc.get("id", ""))
        if not {key, _short(key), id_} & set(wanted.ids):
            return False
    if wanted.is_wrong and not score.is_wrong(values[0].get(key)):
        return False
    return not (wanted.is_different and values[0].get(key) == values[1].get(key))


def _short(key: str) -> str:
    """Return a key with the start of its hash; most documents occur once, so without a count."""
    document, _, count = key.partition("#")
    return document[:12] if count == "0" else f"{document[:12]}#{count}"


def _heading(
    chosen: Sequence[_ModelSamples],
    part: Mapping[str, str],
    score: SampleScore,
    values: Sequence[Mapping[str, float]],
    *counts: int,
) -> str:
    """Return the task, the part, the score, and how many samples there are and are shown."""
    card = chosen[0].run.card
    words = [card.word(value) if card else value for value in part.values()]
    total, selected, limited = counts
    names = [one_line(chosen[0].run.task), *words, score.title]
    texts = [" · ".join(names)]
    for model, own in zip(chosen, values, strict=True):
        scored = [value for key, value in own.items() if key in model.samples]
        wrong = sum(score.is_wrong(value) for value in scored)
        missing = total - len(scored)
        counted = f"{one_line(model.label)}: {wrong:,} of {len(scored):,} samples are not right"
        if score.kind in ("gain", "loss"):
            counted = counted.replace("are not right", "are lost")
        if missing > 0:
            counted += f"; {missing:,} have no score here"
        documents, _ = model.run.documents
        if len(model.samples) < documents:
            counted += f"; {documents - len(model.samples):,} samples are missing in the file"
        texts.append(counted)
    if limited < selected:
        texts.append(f"shown: {limited:,} of {selected:,}; --limit 0 shows all")
    return "\n".join(texts)


def _shown(
    chosen: Sequence[_ModelSamples],
    keys: Sequence[str],
    values: Sequence[Mapping[str, float]],
    score: SampleScore,
) -> list[ShownSample]:
    first = chosen[0]
    samples = [first.samples[key] for key in keys]
    views, documents = inspect_documents(samples, views_of(first.run), first.run.task)
    answers: dict[str, list[ShownAnswer]] = {key: [] for key in keys}
    for model, own in zip(chosen, values, strict=True):
        there = [key for key in keys if key in model.samples]
        by_key = dict(zip(keys, documents, strict=True))
        inspected = inspect_answers(
            [model.samples[key] for key in there], [by_key[key] for key in there], views
        )
        for key, answer in zip(there, inspected, strict=True):
            value = own.get(key)
            outcome = score.outcome(value)
            words = outcome if value is None else f"{score.title} {number(value)}: {outcome}"
            answers[key].append(ShownAnswer(model.label, value, words, answer))
    return [
        ShownSample(key, document, answers[key])
        for key, document in zip(keys, documents, strict=True)
    ]


# For a terminal.


def _text(shown: Sequence[ShownPart], wanted: SampleQuery, width: int) -> Iterator[str]:
    for part in shown:
        for line in part.heading.splitlines():
            yield fill(line, width, subsequent_indent="  ")
        for place, sample in enumerate(part.samples, start=1):
            yield ""
            yield from _sample_text(place, sample, wanted, width)
        yield ""


def _sample_text(place: int, sample: ShownSample, wanted: SampleQuery, width: int) -> Iterator[str]:
    document = sample.document
    head = f"── {place} · {one_line(document.id or _short(sample.key))} "
    yield head + "─" * max(width - len(head), 0)
    yield from _field("question", document.title, wanted, width)
    yield from _field("gold", document.gold, wanted, width)
    if wanted.is_whole:
        for prompt in document.prompts:
            for turn in prompt:
                yield from _field(turn.role or "prompt", turn.text, wanted, width)
    for part in document.parts:
        if wanted.is_whole or part.beside:
            yield from _part_text(part, width)
    if len(sample.answers) == 2 and width >= _SIDE_BY_SIDE:  # noqa: PLR2004
        half = (width - 3) // 2
        left, right = (
            list(_answer_text(answer, document, wanted, half)) for answer in sample.answers
        )
        height = max(len(left), len(right))
        left += [""] * (height - len(left))
        right += [""] * (height - len(right))
        for one_side, other_side in zip(left, right, strict=True):
            yield f"{one_side:{half}} │ {other_side}".rstrip()
        return
    for answer in sample.answers:
        yield from _answer_text(answer, document, wanted, width)


def _answer_text(
    answer: ShownAnswer, document: InspectedDocument, wanted: SampleQuery, width: int
) -> Iterator[str]:
    inspected = answer.answer
    yield from _field("model", answer.model, wanted, width)
    if inspected.response and inspected.response != inspected.answer:
        yield from _field("response", inspected.response, wanted, width)
    shown = inspected.answer
    if shown.strip() == document.gold.strip():
        shown = "the same as the gold" if "\n" in shown or len(shown) > width else shown
    yield from _field("answer", shown, wanted, width)
    if inspected.rule:
        yield from _field("read as", inspected.rule, wanted, width)
    yield from _field("score", answer.score, wanted, width)
    if inspected.reason:
        yield from _field("why", inspected.reason, wanted, width)
    for part in inspected.parts:
        yield from _part_text(part, width)


def _field(label: str, content: str, wanted: SampleQuery, width: int) -> Iterator[str]:
    """Yield a text behind its label, with each of its lines wrapped; long ones are cut."""
    lines: list[str] = []
    for line in content.splitlines() or [""]:
        safe = one_line(line.expandtabs(4)) if line.strip() else ""
        indent = " " * min(len(line) - len(line.lstrip(" ")), 8)
        lines += [indent + one for one in wrap(safe, width - _LABEL - len(indent))] or [""]
    if not wanted.is_whole and len(lines) > _MOST_LINES:
        left_out = len(lines) - _MOST_LINES
        lines = [*lines[:_MOST_LINES], f"… {left_out} more lines; --whole shows them"]
    for number_of_line, line in enumerate(lines):
        name = one_line(label)[: _LABEL - 1] if number_of_line == 0 else ""
        yield f"{name:{_LABEL}}{line}".rstrip()


def _part_text(part: Part, width: int) -> Iterator[str]:
    """Yield a part's text or table below its title."""
    indent = " " * _LABEL
    if not part.table:
        yield fill(
            f"{part.title}: {one_line(part.text)}",
            width,
            initial_indent=indent,
            subsequent_indent=indent,
        )
        return
    heading, columns, lines = _section(part)
    yield fill(heading, width, initial_indent=indent, subsequent_indent=indent)
    for line in _table_text([columns, *lines], width - _LABEL):
        yield f"{indent}{line}".rstrip()


def _table_text(lines: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a table with a head, whose widest columns are wrapped until it fits the width."""
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    while sum(sizes) + 2 * (len(sizes) - 1) > width and max(sizes) > _LEAST_COLUMN:
        sizes[sizes.index(max(sizes))] -= 1
    for place, row in enumerate(lines):
        cells = [wrap(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for texts in zip_longest(*cells, fillvalue=""):
            padded = [f"{cell:{size}}" for cell, size in zip(texts, sizes, strict=True)]
            yield "  ".join(padded)
        if place == 0:
            yield "─" * (sum(sizes) + 2 * (len(sizes) - 1))


def _section(part: Part) -> tuple[str, list[str], list[list[str]]]:
    """Return a part's table with a first column that marks the rows that differ."""
    head, *body = part.table
    columns = [one_line(cell, limit=60) for cell in head]
    lines = [[one_line(cell, limit=60) for cell in row] for row in body]
    if part.marked:
        columns.insert(0, "")
        for place, row in enumerate(lines):
            row.insert(0, "≠" if place in part.marked else "")
    return one_line(part.title), columns, lines


# For a document, and for programs.


def _markdown(shown: Sequence[ShownPart], wanted: SampleQuery) -> Iterator[str]:
    for part in shown:
        first, *more = part.heading.splitlines()
        yield f"## {escape_markdown(first)}"
        yield ""
        for line in more:
            yield f"- {escape_markdown(line)}"
        for place, sample in enumerate(part.samples, start=1):
            yield from _sample_markdown(place, sample, wanted)


def _sample_markdown(place: int, sample: ShownSample, wanted: SampleQuery) -> Iterator[str]:
    document = sample.document
    name = one_line(document.id or _short(sample.key))
    yield ""
    yield f"### {place}. {escape_markdown(name)}"
    yield from _block("Question", document.title)
    yield from _block("Gold", document.gold)
    if wanted.is_whole:
        for prompt in document.prompts:
            for turn in prompt:
                yield from _block(turn.role.capitalize() or "Prompt", turn.text)
    for part in document.parts:
        yield from _part_markdown(part)
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
        for part in inspected.parts:
            yield from _part_markdown(part)


def _block(label: str, content: str) -> Iterator[str]:
    """Yield a text as a block of code, which no model's text can end."""
    ticks = "```"
    while ticks in content:
        ticks += "`"
    writable = content.encode("utf-8", "backslashreplace").decode()
    yield from ("", f"{label}:", "", ticks, writable, ticks)


def _part_markdown(part: Part) -> Iterator[str]:
    if not part.table:
        yield from _block(part.title, part.text)
        return
    yield ""
    yield markdown([_section(part)]).rstrip()


def _json_lines(task: str, shown: Sequence[ShownPart]) -> Iterator[str]:
    for part in shown:
        for sample in part.samples:
            document = sample.document
            content = {
                "task": task,
                "part": part.heading.splitlines()[0],
                "key": sample.key,
                "id": document.id,
                "question": document.title,
                "gold": document.gold,
                "document": [_part_fields(one) for one in document.parts],
                "prompts": [[vars(turn) for turn in prompt] for prompt in document.prompts],
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
        "parts": [_part_fields(part) for part in inspected.parts],
    }


def _part_fields(part: Part) -> dict[str, object]:
    return {"title": part.title, "text": part.text, "table": part.table, "marked": part.marked}
