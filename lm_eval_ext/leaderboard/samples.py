"""The samples inside the page: per task, documents once, answers and scores per model, compressed.

Content is JSON, compressed by zlib, in base64, which is no code and cannot end its element. An
answer is a text, 0 where it is the right one, and null where there is none; a response is a text,
or 0 where it is the answer.
"""

import base64
import json
import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_ext.results.files import Run
from lm_eval_ext.results.inspection import (
    InspectedDocument,
    LoggedSample,
    Views,
    inspect_answers,
    inspect_documents,
    logged_samples,
    views_of,
)
from lm_eval_ext.results.sample_scores import SampleScore, values_of
from lm_eval_ext.results.samples import Detail
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_MAX_TEXT = 20_000
"""Characters of a text; a longer one is cut and says its length."""

_MAX_TITLE = 120
"""Characters of a title."""

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | None"


@dataclass(frozen=True)
class PageSamples:
    """The samples of one model on one task that the page shows.

    Attributes:
        samples: The samples by key.
        scores: The values of each score by key.
        right_keys: The keys of the samples that are right by the first score, the headline's.
    """

    samples: Mapping[str, LoggedSample]
    scores: Sequence[Mapping[str, float]]
    right_keys: Collection[str]


def select_samples(
    run: Run, table: "DataFrame", scores: Sequence[SampleScore], max_samples: int
) -> PageSamples:
    """Return some samples of a run, evenly spread over all.

    Args:
        run: Its samples are read; of several filters those of the first.
        table: The long table of this run, from :func:`~lm_eval_ext.results.table.rows`.
        scores: The task's scores.
        max_samples: How many samples.

    Raises:
        DataError: A line cannot be read, or lacks what lm-eval logs.
    """
    scored, _ = run.documents
    step = math.ceil(scored / max_samples) or 1
    selected = {}
    for number, sample in enumerate(logged_samples(run)):
        if number % step == 0:
            selected[sample.key] = sample
    values = [values_of(run, table, score.metrics[0]) for score in scores]
    right_keys: set[str] = set()
    if scores:
        right_keys = {key for key, value in values[0].items() if scores[0].is_right(value)}
    return PageSamples(selected, values, right_keys)


def pack(run: Run, samples_of: Mapping[str, PageSamples]) -> str:
    """Return the samples of a task, by model, in base64; the first model's have the documents."""
    reference = next(iter(samples_of.values())).samples
    views, documents = inspect_documents(list(reference.values()), views_of(run), run.task)
    document_of = dict(zip(reference, documents, strict=True))
    models: dict[str, Json] = {}
    for label, samples in samples_of.items():
        models[label] = _model(samples, reference, document_of, views)
    content: Json = {
        "documents": list(map(_document, documents)),
        "models": models,
    }
    encoded = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair, which a model may write, has no bytes of its own.
    safe = encoded.encode("utf-8", "backslashreplace")
    return base64.b64encode(zlib.compress(safe, 6)).decode()


def _document(document: InspectedDocument) -> Json:
    prompts: list[Json] = []
    for prompt in document.prompts:
        prompts.append([[turn.role, _cut(turn.text)] for turn in prompt])
    details: list[Json] = list(map(_detail, document.details))
    title = one_line(document.title, limit=_MAX_TITLE)
    return [title, document.id, _cut(document.gold), details, prompts]


def _model(
    model: PageSamples,
    reference: Mapping[str, LoggedSample],
    document_of: Mapping[str, InspectedDocument],
    views: Views | None,
) -> Json:
    """Return a model's answers and scores, in the order of the reference's samples."""
    keys = [key for key in reference if key in model.samples]
    samples = [model.samples[key] for key in keys]
    documents = [document_of[key] for key in keys]
    inspected_answers = inspect_answers(samples, documents, views, right_keys=model.right_keys)
    inspected = dict(zip(keys, inspected_answers, strict=True))
    answers: list[Json] = []
    responses: list[Json] = []
    reasons: list[Json] = []
    all_details: list[Json] = []
    for key in reference:
        if key not in inspected:
            for column in (answers, responses, reasons, all_details):
                column.append(None)
            continue
        view = inspected[key]
        is_gold = _cut(view.answer) == _cut(document_of[key].gold)
        answers.append(0 if is_gold else _cut(view.answer))
        responses.append(0 if view.response == view.answer else _cut(view.response))
        reasons.append(view.reason)
        details = list(view.details)
        prompts = model.samples[key].prompts
        if prompts != reference[key].prompts:
            for prompt in dict.fromkeys(prompts):
                details.append(Detail("Prompt of this model", prompt))
        all_details.append(list(map(_detail, details)))
    scores: list[Json] = []
    for values in model.scores:
        scores.append([values.get(key) for key in reference])
    return {
        "answers": answers,
        "responses": responses,
        "reasons": reasons,
        "parts": all_details,
        "scores": scores,
    }


def _detail(detail: Detail) -> Json:
    table: list[Json] = []
    for row in detail.table:
        table.append(list(map(_cut, row)))
    fields = {**asdict(detail), "text": _cut(detail.text), "table": table}
    return {name: value for name, value in fields.items() if value}


def _cut(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]} … ({len(text):,} characters)"
