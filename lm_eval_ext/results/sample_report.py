"""``lm-eval-ext samples``: what models answered, and why it is right or wrong."""

import json
import shlex
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
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.sample_scores import (
    SampleScore,
    hint_for_differences,
    kind_of,
    question_about_samples,
    values_for,
)
from lm_eval_ext.results.samples import Detail
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.statistics import number, split_question
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

Format = Literal["text", "markdown", "jsonl"]

DEFAULT_LIMIT = 10
"""Samples that are shown of each part, unless more are asked for."""

_MAX_LINES = 30
"""Lines of one text that a terminal shows without ``--whole``."""

_SIDE_BY_SIDE = 110
"""Columns of a terminal from which two models stand side by side."""

_LABEL_WIDTH = 10
"""Columns of the labels at the left."""

_INDENT = " " * _LABEL_WIDTH
"""What stands in front of lines without a label."""

_MAX_INDENT = 8
"""Spaces that a line of a text keeps in front."""

_MAX_CELL = 60
"""Characters of a cell of a table."""

_SHORT_HASH = 12
"""Characters of a document's hash that are shown."""

_MIN_COLUMN = 6
"""Characters that a column of a table keeps, however narrow the terminal."""


@dataclass(frozen=True)
class SampleQuery:
    """Which samples of a task to show.

    Attributes:
        query: The score, by metric, and the rows that count.
        models: Labels, or parts of them; () for all, of which two are shown.
        is_wrong: Only samples that the first model did not get right.
        is_different: Only samples for which two models have different scores.
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
    """One model's samples by key, and its long table."""

    label: str
    run: Run
    samples: Mapping[str, LoggedSample]
    table: "DataFrame"


@dataclass(frozen=True)
class _ScoredPart:
    """One part of a task with the values of its samples.

    Attributes:
        models: The one model or the two that are shown.
        words: The part in words; [] for the whole task.
        score: What the samples are judged by.
        values: Of each model, the values of its samples by key.
        keys: The samples of the part.
        remark: Which score was chosen instead of the headline; "" if it is that.
    """

    models: Sequence[_ModelSamples]
    words: Sequence[str]
    score: SampleScore
    values: Sequence[Mapping[str, float]]
    keys: Sequence[str]
    remark: str = ""

    def select(self, query: SampleQuery) -> list[str]:
        """Return the keys of the samples that are asked for."""
        return [key for key in self.keys if self._is_selected(key, query)]

    def _is_selected(self, key: str, query: SampleQuery) -> bool:
        if query.ids:
            document_id = str(self.models[0].samples[key].doc.get("id", ""))
            if not {key, _short(key), document_id} & set(query.ids):
                return False
        values = [model_values.get(key) for model_values in self.values]
        if query.is_wrong and not self.score.is_wrong(values[0]):
            return False
        return not (query.is_different and values[0] == values[1])

    def heading(self, *, selected: int, limited: int) -> str:
        """Return the task, the part, the score, and how many samples there are and are shown."""
        task = one_line(self.models[0].run.task)
        lines = [" · ".join([task, *self.words, self.score.title])]
        for model, values in zip(self.models, self.values, strict=True):
            lines.append(self._model_heading(model, values))
        if self.remark:
            lines.append(self.remark)
        if limited < selected:
            lines.append(f"shown: {limited:,} of {selected:,}; --limit 0 shows all")
        return "\n".join(lines)

    def _model_heading(self, model: _ModelSamples, values: Mapping[str, float]) -> str:
        """Return how many samples of a model are not right, and how many are missing."""
        scored = [value for key, value in values.items() if key in model.samples]
        wrong = sum(self.score.is_wrong(value) for value in scored)
        outcome = "are not right"
        if self.score.is_difference:
            outcome = "are lost"
        elif any(self.score.outcome(value) == "partly" for value in scored):
            outcome = "are not entirely right"
        line = f"{one_line(model.label)}: {wrong:,} of {len(scored):,} samples {outcome}"
        without_score = len(self.keys) - len(scored)
        if without_score > 0:
            line += f"; {without_score:,} have no score here"
        documents, _ = model.run.documents
        missing = documents - len(model.samples)
        if missing > 0:
            line += f"; {missing:,} samples are missing in the file"
        return line

    def show(self, keys: Sequence[str]) -> list[ShownSample]:
        """Return these samples with the answers of all models."""
        reference = self.models[0]
        samples = [reference.samples[key] for key in keys]
        task = reference.run.task
        views, documents = inspect_documents(samples, views_of(reference.run), task)
        document_of = dict(zip(keys, documents, strict=True))
        answers: dict[str, list[ShownAnswer]] = {key: [] for key in keys}
        for model, values in zip(self.models, self.values, strict=True):
            own_keys = [key for key in keys if key in model.samples]
            own_samples = [model.samples[key] for key in own_keys]
            own_documents = [document_of[key] for key in own_keys]
            inspected = inspect_answers(own_samples, own_documents, views)
            for key, answer in zip(own_keys, inspected, strict=True):
                value = values.get(key)
                words = self._score_in_words(value)
                answers[key].append(ShownAnswer(model.label, value, words, answer))
        return [ShownSample(key, document_of[key], answers[key]) for key in keys]

    def _score_in_words(self, value: float | None) -> str:
        outcome = self.score.outcome(value)
        if value is None:
            return outcome
        return f"{self.score.title} {number(value)}: {outcome}"


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
    chosen = _choose_models(models, _choose_task(models, task), query)
    shown_parts = list(_shown_parts(chosen, query))
    if format_ == "jsonl":
        return "".join(_json_lines(chosen[0].run.task, shown_parts))
    if format_ == "markdown":
        return "\n".join(_markdown(shown_parts, query)).rstrip() + "\n"
    width = max(WIDTH, get_terminal_size((WIDTH, 0)).columns)
    report = "\n".join(_text(shown_parts, query, width)).rstrip() + "\n"
    command = _explain_command(chosen[0], shown_parts)
    if command:
        report += f"\nthe smallest rows on which two queries differ: {command}\n"
    return report


def _explain_command(model: _ModelSamples, shown_parts: Sequence[ShownPart]) -> str:
    """Return the command that explains the first shown sample whose SQL was judged; "" if none."""
    results = shlex.quote(str(model.run.file.path.parent))
    for part in shown_parts:
        for sample in part.samples:
            logged = model.samples.get(sample.key)
            if logged is None or not logged.verdict or not sample.document.id:
                continue
            words = ["lm-eval-ext sql explain --results", results]
            words += ["--task", one_line(model.run.task)]
            words += ["--model", shlex.quote(one_line(model.label))]
            words += ["--doc", shlex.quote(one_line(sample.document.id))]
            return " ".join(words)
    return ""


def _choose_task(models: Sequence[Model], task: str) -> str:
    available = choose_tasks(models, [task] if task else [], min_models=1)
    if len(available) > 1:
        raise OptionError(f"name one task with --task: {', '.join(available)}")
    return available[0]


def _choose_models(models: Sequence[Model], task: str, query: SampleQuery) -> list[_ModelSamples]:
    """Return the one model or the two that are shown."""
    runs = runs_by_model(models, task)
    labels = list(runs)
    if query.models:
        labels = [_label(name, list(runs)) for name in query.models]
    if len(labels) > 2:  # noqa: PLR2004
        raise OptionError(
            f"{len(labels)} models have results on {task}; name one or two with --model: "
            + "; ".join(labels)
        )
    if query.is_different and len(labels) != 2:  # noqa: PLR2004
        raise OptionError(f"--differ needs two models; {', '.join(labels)} is one")
    chosen = []
    for label in labels:
        run = runs[label]
        samples = {sample.key: sample for sample in logged_samples(run)}
        chosen.append(_ModelSamples(label, run, samples, rows(run, is_part_allowed=True)))
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


def _shown_parts(models: Sequence[_ModelSamples], query: SampleQuery) -> Iterator[ShownPart]:
    """Yield the parts of the first metric that is asked for, with their samples."""
    has_samples = False
    is_difference = False
    for part in _scored_parts(models, query.query):
        is_difference = part.score.is_difference
        selected = part.select(query)
        has_samples = has_samples or bool(selected)
        limited = selected[: query.limit] if query.limit else selected
        heading = part.heading(selected=len(selected), limited=len(limited))
        yield ShownPart(heading, part.show(limited))
    if not has_samples:
        conditions = []
        if query.is_wrong:
            conditions.append("--wrong")
        if query.is_different:
            conditions.append("--differ")
        conditions += [f"--id {id_}" for id_ in query.ids]
        run = models[0].run
        problem = f"no sample of {run.task} is like this: {', '.join(conditions)}"
        if query.is_wrong and is_difference:
            problem += hint_for_differences(run)
        raise OptionError(problem)


def _scored_parts(models: Sequence[_ModelSamples], query: ScoreQuery) -> Iterator[_ScoredPart]:
    """Yield each part that a question is about, with the values of its samples."""
    import pandas as pd

    reference = models[0]
    card = reference.run.card
    joint_table = pd.concat([model.table for model in models])
    chosen = question_about_samples(reference.run, joint_table, query)
    measure = chosen.question.measure
    title = chosen.title
    if measure.of_sample:
        title = title.replace(measure.title, measure.of_sample)
    score = SampleScore([chosen.metric], title, kind_of(measure))
    for facet_values, part_question in split_question(joint_table, chosen.question):
        values = [dict(values_for(model.table, part_question)) for model in models]
        keys = list(reference.samples)
        if facet_values or query.where:
            keys_with_value = set().union(*values)
            keys = [key for key in keys if key in keys_with_value]
        words = list(facet_values.values())
        if card:
            words = list(map(card.word, words))
        yield _ScoredPart(models, words, score, values, keys, chosen.remark)


def _short(key: str) -> str:
    """Return a key with the start of its hash; most documents occur once, so without a count."""
    document, _, count = key.partition("#")
    short = document[:_SHORT_HASH]
    return short if count == "0" else f"{short}#{count}"


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
    head = f"── {position} · {one_line(document.id or _short(sample.key))} "
    yield head + "─" * max(width - len(head), 0)
    yield from _field("question", document.title, query, width)
    yield from _field("gold", document.gold, query, width)
    if query.is_whole:
        for prompt in document.prompts:
            for turn in prompt:
                yield from _field(turn.role or "prompt", turn.text, query, width)
    for detail in document.details:
        if query.is_whole or detail.beside:
            yield from _detail_text(detail, width)
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
            yield from _detail_text(detail, width)
        else:
            hint = f"{detail.title}: --whole shows them"
            yield from wrap(hint, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _field(label: str, content: str, query: SampleQuery, width: int) -> Iterator[str]:
    """Yield a text behind its label, with each of its lines wrapped; long ones are cut."""
    lines: list[str] = []
    for line in content.splitlines() or [""]:
        lines += _wrapped(line, width - _LABEL_WIDTH)
    if not query.is_whole and len(lines) > _MAX_LINES:
        hidden = len(lines) - _MAX_LINES
        lines = [*lines[:_MAX_LINES], f"… {hidden} more lines; --whole shows them"]
    label = one_line(label)[: _LABEL_WIDTH - 1]
    for line in lines:
        yield f"{label:{_LABEL_WIDTH}}{line}".rstrip()
        label = ""


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line of any text as lines of this width, with the indent that it has."""
    safe = one_line(line.expandtabs(4)) if line.strip() else ""
    indent = " " * min(len(line) - len(line.lstrip(" ")), _MAX_INDENT)
    lines = [indent + text for text in wrap(safe, width - len(indent))]
    return lines or [""]


def _detail_text(detail: Detail, width: int) -> Iterator[str]:
    """Yield a detail's text or table below its title."""
    if not detail.table:
        content = f"{detail.title}: {one_line(detail.text)}"
        yield from wrap(content, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return
    heading, columns, lines = _section(detail)
    yield from wrap(heading, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    for line in _table_text([columns, *lines], width - _LABEL_WIDTH):
        yield f"{_INDENT}{line}".rstrip()


def _table_text(lines: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a table with a head, whose widest columns are wrapped until it fits the width."""
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    gaps = 2 * (len(sizes) - 1)
    while sum(sizes) + gaps > width and max(sizes) > _MIN_COLUMN:
        sizes[sizes.index(max(sizes))] -= 1
    for line_number, row in enumerate(lines):
        cells = [wrap(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for texts in zip_longest(*cells, fillvalue=""):
            padded = [f"{text:{size}}" for text, size in zip(texts, sizes, strict=True)]
            yield "  ".join(padded)
        if line_number == 0:
            yield "─" * (sum(sizes) + gaps)


def _section(detail: Detail) -> tuple[str, list[str], list[list[str]]]:
    """Return a detail's table with a first column that marks the rows that differ."""
    head, *body = detail.table
    columns = _short_cells(head)
    lines = [_short_cells(row) for row in body]
    if detail.marked:
        columns.insert(0, "")
        for row_number, row in enumerate(lines):
            row.insert(0, "≠" if row_number in detail.marked else "")
    return one_line(detail.title), columns, lines


def _short_cells(row: Sequence[str]) -> list[str]:
    return [one_line(cell, limit=_MAX_CELL) for cell in row]


# For a document, and for programs.


def _markdown(shown_parts: Sequence[ShownPart], query: SampleQuery) -> Iterator[str]:
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
    name = one_line(document.id or _short(sample.key))
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
    yield markdown([_section(detail)]).rstrip()


def _json_lines(task: str, shown_parts: Sequence[ShownPart]) -> Iterator[str]:
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
