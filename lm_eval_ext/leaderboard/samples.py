"""The samples inside the page: per task, documents once, answers and scores per model, compressed.

Content is JSON, compressed by zlib, in base64, which is no code and cannot end its element. An
answer is a text, 0 where it is the right one, and null where there is none.
"""

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.registry import BENCHMARKS
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.query import question_of
from lm_eval_ext.results.samples import AnswerView, DocumentView, Part
from lm_eval_ext.results.table import samples
from lm_eval_ext.stats.statistics import of_documents
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

_LONGEST, _TITLE = 20_000, 120
"""Characters of a text; a longer one is cut and says its length."""


class Sample(NamedTuple):
    """A document as lm-eval logged it, its prompts (one per request), and the responses."""

    doc: Mapping[str, Any]
    prompts: tuple[str, ...]
    target: str
    answers: tuple[str, ...]


class Logged(NamedTuple):
    """The samples of one model on one task that the page shows, and all scores, by document."""

    samples: Mapping[str, Sample]
    scores: Sequence[Mapping[str, float]]


def logged(run: Run, table: "DataFrame", own: Sequence["Score"], most: int) -> Logged:
    """Some samples of a run, evenly spread over all.

    Args:
        run: Its samples are read.
        table: Of this run, from :func:`~lm_eval_ext.results.table.rows`.
        own: The task's scores.
        most: Samples; of several filters' those of the first.

    Raises:
        DataError: A line cannot be read.
        KeyError: A sample lacks what lm-eval logs.
        TypeError: It has something else there.
    """
    step = math.ceil(run.documents[0] / most) or 1
    first = {*table["filter"][:1]}
    of_first = (row for _, row in samples(run) if row["filter"] in first)
    kept = {}
    seen: Counter[str] = Counter()
    for place, row in enumerate(of_first):
        key = f"{row['doc_hash']}#{seen[row['doc_hash']]}"
        seen[row["doc_hash"]] += 1
        if place % step == 0:
            kept[key] = Sample(
                row["doc"] if isinstance(row["doc"], dict) else {},
                tuple(_prompt(one) for one in row["arguments"].values()),
                _text(row["target"]),
                tuple(_text(answer) for answer in row["filtered_resps"]),
            )
    return Logged(kept, [_scores(run, table, one.metrics[0]) for one in own])


def _scores(run: Run, table: "DataFrame", metric: str) -> Mapping[str, float]:
    """By document; none where a run has no such metric, or its samples no such values."""
    try:
        return dict(of_documents(table, question_of(run, metric)).dropna().round(3))
    except (OptionError, KeyError):
        return {}


def _text(value: Any) -> str:
    """A response as text: generated, or a logged pair of log-probability and "is greedy"."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    return json.dumps(value, ensure_ascii=False)


def _prompt(arguments: Mapping[str, Any]) -> str:
    context, continuation = _text(arguments.get("arg_0", "")), arguments.get("arg_1")
    return f"{context}⟨…⟩{continuation}" if isinstance(continuation, str) else context


@dataclass(frozen=True)
class Score:
    """What samples are judged by.

    Attributes:
        metrics: Of the task, that it is behind.
        title: In words: of relative performance, the execution accuracy.
        kind: ``more`` where 1 is right, ``less`` where 0 is, ``gain`` and ``loss`` for differences
            where less or more than 0 is wrong.
    """

    metrics: list[str]
    title: str
    kind: str


def scores_of(run: Run) -> list[Score]:
    """A task's scores; metrics that say the same of a sample share one."""
    found: dict[Any, Score] = {}
    for metric in run.scores:
        own = question_of(run, metric)
        measure = own.measure
        key = (measure.value, str(own.filter), str(measure.weights))
        differs = any(weight < 0 for weight in measure.weights.values())
        kind = (("more", "less"), ("gain", "loss"))[differs][measure.lower_is_better]
        title = run.title(metric).replace(measure.title, measure.of_sample or measure.title)
        score = found.setdefault(key, Score([], title, kind))
        score.metrics.append(metric)
    return list(found.values())


def pack(card: Card | None, task: str, kept: Mapping[str, Logged]) -> str:
    """The samples of a task, by model, in base64; the first model's have the documents."""
    first = next(iter(kept.values())).samples
    views, documents = _documents(_views(card.name if card else ""), [*first.values()], task)
    golds = dict(zip(first, (_cut(one.gold) for one in documents), strict=True))
    content = {
        "documents": [
            [
                one_line(one.title, limit=_TITLE), str(sample.doc.get("id", "")), _cut(one.gold),
                list(map(_part, one.parts)),
                [_cut(prompt) for prompt in dict.fromkeys(sample.prompts)],
            ]
            for one, sample in zip(documents, first.values(), strict=True)
        ],
        "models": {label: _model(one, first, golds, views) for label, one in kept.items()},
    }  # fmt: skip
    encoded = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(encoded, 6)).decode()


def _documents(
    views: Any, first: Sequence[Sample], task: str
) -> tuple[Any, Sequence[DocumentView]]:
    """By the benchmark's own view; as plain text if it has none, or cannot read these samples."""
    if views is not None:
        try:
            return views, views.documents(
                [one.doc for one in first], [one.prompts for one in first]
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=100)
            _log.warning(
                "%s: documents of another version? Shown as plain text (%s)", task, problem
            )
    return None, [DocumentView("".join(one.prompts[:1])[-_TITLE:], one.target) for one in first]


def _model(
    one: Logged,
    first: Mapping[str, Sample],
    golds: Mapping[str, str],
    views: Any,
) -> dict[str, Any]:
    there = {key: one.samples[key] for key in first if key in one.samples}
    given = [sample.answers for sample in there.values()]
    answered = (
        views.answers([first[key].doc for key in there], given)
        if views
        else [AnswerView("\n".join(answers)) for answers in given]
    )
    answers: dict[str, Any] = {}
    parts = {}
    for (key, sample), view in zip(there.items(), answered, strict=True):
        text = _cut(view.answer)
        answers[key] = 0 if text == golds[key] else text
        found = list(view.parts)
        if sample.prompts != first[key].prompts:
            found += [Part("Prompt of this model", one) for one in dict.fromkeys(sample.prompts)]
        parts[key] = list(map(_part, found))
    return {
        "answers": list(map(answers.get, first)),
        "parts": list(map(parts.get, first)),
        "scores": [list(map(found.get, first)) for found in one.scores],
    }


def _views(benchmark: str) -> Any:
    return BENCHMARKS[benchmark].view() if benchmark in BENCHMARKS else None


def _part(part: Part) -> dict[str, Any]:
    table = [[_cut(cell) for cell in row] for row in part.table]
    found = {**vars(part), "text": _cut(part.text), "table": table}
    return {name: value for name, value in found.items() if value}


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text):,} characters)"
