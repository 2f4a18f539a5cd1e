"""The samples beside the page: documents once, answers per model, in files that load alone.

A page opened from a disk may not fetch files, but it may add scripts: each file calls
``board.receive(name, content)``. The content is JSON in ASCII, so nothing in it is code.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.ask import question_of
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part, Views
from lm_eval_ext.results.table import finite, rows, samples
from lm_eval_ext.stats.statistics import select
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
        scores: By document, then by column of values; None where one does not apply to it.
        asked: Only of the first model.
        prompts: By document, where they differ from the first model's.
    """

    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scores: dict[str, dict[str, float | None]] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    prompts: dict[str, tuple[str, ...]] = field(default_factory=dict)


MOST_SCORES = 12
"""Columns of values that the browser of samples offers."""


def read(run: ResultsFile, task: str, *, first: Logged | None = None) -> Logged:
    """Reads a task's samples; where there are several filters, those of the first.

    Scores are means of a document's rows that the headline is about, by column of values; the
    headline's comes first.

    Args:
        run: The results file.
        task: One of its tasks.
        first: The first model's samples, which hold the documents; None to read that model.

    Raises:
        DataError: Samples are missing, or one cannot be read; file and line are named.
    """
    table, columns = rows(run, task), []
    logged = Logged()
    filter_name: str | None = None
    seen: Counter[str] = Counter()
    for place, row in samples(run, task):
        try:
            filter_name = str(row["filter"]) if filter_name is None else filter_name
            if row["filter"] != filter_name:
                continue
            key = f"{row['doc_hash']}#{seen[row['doc_hash']]}"
            seen[row["doc_hash"]] += 1
            logged.answers[key] = tuple(_text(answer) for answer in row["filtered_resps"])
            prompts = tuple(_prompt(one) for one in row["arguments"].values())
            if first is None:
                doc = row["doc"] if isinstance(row["doc"], dict) else {}
                logged.asked[key] = Asked(doc, prompts, _text(row["target"]))
            elif key in first.asked and prompts != first.asked[key].prompts:
                logged.prompts[key] = prompts
        except (KeyError, TypeError, AttributeError) as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=200)
            raise DataError(f"{place}: not a sample that lm_eval logged ({problem})") from None
    table = table[table["filter"] == filter_name]
    if len(table) and run.headline(task):
        question = question_of(run, task)
        own = select(table, question.filter)
        columns = [name for name in question.measure.value if name in own]
        columns += [name for name in own if own[name].dtype == "float64" and name not in columns]
        means = own.groupby("document", sort=False)[columns[:MOST_SCORES]].mean()
        logged.scores = {
            str(document): {name: finite(value) for name, value in scores.items()}
            for document, scores in means.to_dict("index").items()
        }
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


@dataclass(frozen=True)
class SampleFiles:
    """Where the page finds the samples of a task.

    ``kinds`` say of each score whether 1 is right (``more``) or 0 is (``less``); models are in the
    order of their files.
    """

    folder: str
    metrics: tuple[str, ...]
    kinds: tuple[str, ...]
    models: tuple[str, ...]
    count: int


def write(
    task: str, card: Card | None, logged: Mapping[str, Logged], folder: Path, lower: Collection[str]
) -> SampleFiles:
    """Writes the samples of a task into a folder; the first model's hold the documents.

    Of the values whose names are ``lower``, 0 is right.
    """
    name = f"{folder.parent.name}/{folder.name}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    first = next(iter(logged.values()))
    asked = first.asked
    metrics = list(next(iter(first.scores.values()), {}))
    docs = [one.doc for one in asked.values()]
    views = _views(card.name if card else "")
    shown = _documents(views, docs, task)
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
    kinds = tuple("less" if metric in lower else "more" for metric in metrics)
    return SampleFiles(name, tuple(metrics), kinds, tuple(logged), len(asked))


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
    keys: Sequence[str],
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
