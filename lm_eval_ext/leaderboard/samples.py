"""The samples beside the page: documents once, answers per model, in files that load alone.

A page opened from a disk may not fetch files, but it may add scripts: each file calls
``board.receive(name, content)``. The content is JSON in ASCII, so nothing in it is code.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.leaderboard.board import TaskBoard
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.samples import (
    AnswerView,
    DocumentView,
    Key,
    Part,
    Views,
    finite,
    logged_doc,
    read_rows,
)
from lm_eval_ext.text import one_line

_log = get_logger(__name__)


@dataclass(frozen=True)
class Asked:
    """A document as lm-eval logged it, its right answer, and a prompt per request.

    A prompt for a log-probability has context and continuation.
    """

    doc: Mapping[str, Any]
    prompts: tuple[str, ...]
    target: str


@dataclass
class Logged:
    """The samples of one model on one task, small enough that many models fit into memory.

    Attributes:
        answers: By document, one per request.
        scores: By document, then by metric; None where a metric does not apply to it.
        asked: Only of the first model.
        prompts: By document, where they differ from the first model's.
    """

    answers: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    scores: dict[Key, dict[str, float | None]] = field(default_factory=dict)
    asked: dict[Key, Asked] = field(default_factory=dict)
    prompts: dict[Key, tuple[str, ...]] = field(default_factory=dict)


def read(file: Path, metrics: tuple[str, ...], *, first: "Logged | None" = None) -> Logged:
    """Reads a file of samples; where there are several filters, the answers of the first.

    Args:
        file: As lm-eval wrote it.
        metrics: The scores to keep; where there are several filters, each metric names its own.
        first: The first model's samples, which hold the documents; None to read that model.

    Raises:
        DataError: If a row cannot be read; file and line are named.
    """
    logged = Logged()
    of_filter = {name: name.partition(",")[::2] for name in metrics}
    first_filter: str | None = None

    def take(filter_name: str, key: Key, row: Mapping[str, Any]) -> None:
        nonlocal first_filter
        scores = logged.scores.setdefault(key, dict.fromkeys(metrics))
        for name, (metric, of) in of_filter.items():
            if of in ("", filter_name):
                scores[name] = finite(row.get(metric))
        first_filter = filter_name if first_filter is None else first_filter
        if filter_name != first_filter:
            return
        logged.answers[key] = tuple(_text(answer) for answer in row["filtered_resps"])
        prompts = tuple(_prompt(one) for one in row["arguments"].values())
        if first is None:
            logged.asked[key] = Asked(logged_doc(row), prompts, _text(row["target"]))
        elif key in first.asked and prompts != first.asked[key].prompts:
            logged.prompts[key] = prompts

    read_rows(file, take)
    return logged


def _text(value: Any) -> str:
    """A response as text: generated, or a logged pair of log-probability and "is greedy"."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    return json.dumps(value, ensure_ascii=False)


def _prompt(arguments: Mapping[str, Any]) -> str:
    context = arguments.get("arg_0", "")
    text = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False)
    continuation = arguments.get("arg_1")
    return f"{text}⟨…⟩{continuation}" if isinstance(continuation, str) else text


CHUNK = 100
"""Documents per file."""

_LONGEST = 20_000
"""Characters of a text that are shown; a longer text is cut and says its length."""

_TITLE = 120

_DIFFERENCES = ("gain/", "difference/", "error_change/")
"""Variants of metrics that compare two answers: 0 means that both are alike, right or wrong."""


@dataclass(frozen=True)
class SampleFiles:
    """Where the page finds the samples of a task.

    ``kinds`` give the meaning of each metric's scores (:func:`kind_of`); models are in the order of
    their files.
    """

    folder: str
    metrics: tuple[str, ...]
    kinds: tuple[str, ...]
    models: tuple[str, ...]
    count: int


def write(
    task: TaskBoard,
    number: int,
    metrics: Sequence[str],
    logged: Mapping[str, Logged],
    site: Path,
) -> SampleFiles:
    """Writes the samples of a task; the first model's hold the documents.

    ``number`` is the task's place on the page, and a part of the folder's name.
    """
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", task.name)[:60]
    name = f"samples/{number:02d}-{slug}"
    folder = site / name
    folder.mkdir(parents=True, exist_ok=True)
    asked = next(iter(logged.values())).asked
    docs = [one.doc for one in asked.values()]
    views = _views(task.benchmark)
    shown = _documents(views, docs, task.name)
    if shown is None:
        shown, views = _plain(list(asked.values())), None
    index = [[one_line(one.title, limit=_TITLE), one_line(one.gold, limit=_TITLE)] for one in shown]
    _write(folder / "index.js", f"{name}/index", index)
    documents = list(map(_document, shown, asked.values()))
    for start in range(0, len(documents), CHUNK):
        file = f"documents-{start // CHUNK}"
        _write(folder / f"{file}.js", f"{name}/{file}", documents[start : start + CHUNK])
    for place, of_model in enumerate(logged.values()):
        content = _answers(of_model, list(asked), docs, metrics, views)
        _write(folder / f"answers-{place}.js", f"{name}/answers-{place}", content)
    kinds = tuple(kind_of(task, metric) for metric in metrics)
    return SampleFiles(name, tuple(metrics), kinds, tuple(logged), len(asked))


def kind_of(task: TaskBoard, metric: str) -> str:
    """Whether 1 is right ("more"), 0 is ("less"), or neither ("difference")."""
    if metric.startswith(_DIFFERENCES):
        return "difference"
    return "less" if metric in task.lower else "more"


def _documents(
    views: Views | None, docs: Sequence[Mapping[str, Any]], task: str
) -> Sequence[DocumentView] | None:
    """The benchmark's own view; None if it has none, or cannot read these samples."""
    if views is None:
        return None
    try:
        return views.documents(docs)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        problem = one_line(f"{type(error).__name__}: {error}", limit=100)
        _log.warning("%s: documents of another version? Shown as plain text (%s)", task, problem)
        return None


def _document(view: DocumentView, asked: Asked) -> dict[str, Any]:
    return {
        "id": str(asked.doc.get("id", "")),
        "gold": _cut(view.gold),
        "parts": [_part(part) for part in view.parts],
        "prompts": [_cut(prompt) for prompt in dict.fromkeys(asked.prompts)],
    }


def _answers(
    logged: Logged,
    keys: Sequence[Key],
    docs: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    views: Views | None,
) -> dict[str, Any]:
    there = [place for place, key in enumerate(keys) if key in logged.answers]
    answers = [logged.answers[keys[place]] for place in there]
    shown = (
        views.answers([docs[place] for place in there], answers)
        if views
        else [AnswerView("\n".join(one)) for one in answers]
    )
    by_place = dict(zip(there, shown, strict=True))
    return {
        "answers": [
            _answer(by_place.get(place), logged.prompts.get(key, ()))
            for place, key in enumerate(keys)
        ],
        "scores": [[logged.scores.get(key, {}).get(metric) for metric in metrics] for key in keys],
    }


def _answer(view: AnswerView | None, own_prompts: Sequence[str]) -> Any:
    if view is None:
        return None
    parts = [_part(part) for part in view.parts]
    parts += [_part(Part("Prompt of this model", text)) for text in dict.fromkeys(own_prompts)]
    return [_cut(view.answer), parts] if parts else [_cut(view.answer)]


def _views(benchmark: str) -> Views | None:
    name = f"lm_eval_ext.benchmarks.{benchmark}.view"
    if not benchmark or find_spec(name) is None:
        return None
    return cast("Views", import_module(name))


def _plain(asked: Sequence[Asked]) -> list[DocumentView]:
    return [
        DocumentView(title=one.prompts[0][-_TITLE:] if one.prompts else "", gold=one.target)
        for one in asked
    ]


def _part(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"title": part.title}
    if part.table:
        found["table"] = [[_cut(cell) for cell in row] for row in part.table]
    else:
        found["text"] = _cut(part.text)
    if part.marked:
        found["marked"] = part.marked
    if part.beside:
        found["beside"] = _part(part.beside)
    return found


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text):,} characters)"


def _write(file: Path, name: str, content: Any) -> None:
    with atomic_text(file) as out:
        encoded = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        out.write(f"board.receive({json.dumps(name)}, {encoded});\n")
