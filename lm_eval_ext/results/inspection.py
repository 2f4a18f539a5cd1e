"""Logged samples as people read them: question, right answer, response, answer, score, reason.

The command ``samples`` and the page show the same, from :func:`inspect_document` and
:func:`inspect_answer`.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.names import READING, VERDICT
from lm_eval_ext.log import get_logger
from lm_eval_ext.registry import BENCHMARKS
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.samples import AnswerView, Detail, DocumentView
from lm_eval_ext.results.table import keyed_samples, unreadable_sample
from lm_eval_ext.results.turns import Turn, turns_of
from lm_eval_ext.stats.measures import Filter
from lm_eval_ext.text import one_line

GAP = "⟨…⟩"
"""What stands between a context and the continuation whose log-probability is computed."""

_log = get_logger(__name__)

_TITLE_LENGTH = 120
"""Characters of the end of a prompt that names a document without a view."""

STATUS_WORDS: Mapping[str, str] = {
    "correct": "the result is right",
    "wrong": "the result is wrong",
    "prediction_error": "the query fails",
    "prediction_timeout": "the query takes too long",
    "prediction_too_large": "the result is too large",
    "gold_error": "the right query fails",
    "no_query": "no query in the answer",
}


class Views(Protocol):
    """The module ``view`` of a benchmark."""

    def documents(
        self, docs: Sequence[Keys], prompts: Sequence[Sequence[str]]
    ) -> Sequence[DocumentView]:
        """Return how documents look."""
        ...

    def answers(
        self, docs: Sequence[Keys], answers: Sequence[Sequence[str]]
    ) -> Sequence[AnswerView]:
        """Return how the answers of one model look."""
        ...


@runtime_checkable
class ViewsOfRows(Protocol):
    """The view of a benchmark whose documents have several scores; a question takes some."""

    def answers_about(
        self, docs: Sequence[Keys], answers: Sequence[Sequence[str]], where: Filter
    ) -> Sequence[AnswerView]:
        """Return how the answers of one model look where only these rows of scores count."""
        ...


@dataclass(frozen=True)
class LoggedSample:
    """A sample as lm-eval logged it.

    Attributes:
        key: What matches it with the samples of other models.
        filter: The filter that read its answers.
        doc: The document.
        prompts: What the model got, one per request.
        target: The right answer as lm-eval logged it.
        responses: What the model wrote, or log-probabilities, one per request.
        answers: What was read from the responses.
        readings: The steps by which each answer was read; () where they were not logged.
        verdict: The judge's verdict of an executed answer; {} where there is none.
        is_generated: Whether the model wrote the responses; otherwise they are log-probabilities.
        continuations: The texts whose log-probabilities they are, one per request.
    """

    key: str
    filter: str
    doc: Keys
    prompts: tuple[str, ...]
    target: str
    responses: tuple[str, ...]
    answers: tuple[str, ...]
    readings: tuple[str, ...]
    verdict: Keys
    is_generated: bool
    continuations: tuple[str, ...]


@dataclass(frozen=True)
class InspectedDocument:
    """A document that all models were asked: a title, the right answer, details, prompts."""

    title: str
    id: str
    gold: str
    details: tuple[Detail, ...]
    prompts: tuple[tuple[Turn, ...], ...]


@dataclass(frozen=True)
class InspectedAnswer:
    """An answer of a model.

    Attributes:
        response: The whole response, as the model wrote it.
        answer: What was read from it.
        rule: By which rule it was read.
        reason: Why it is right or wrong, in one line; "" where only the details say it, or nothing
            does.
        details: What explains the score.
    """

    response: str
    answer: str
    rule: str
    reason: str
    details: tuple[Detail, ...]


def logged_samples(run: Run) -> Iterator[LoggedSample]:
    """Yield a task's samples of its first filter.

    Raises:
        DataError: Samples were not logged, or one cannot be read; file and line are named.
    """
    first_filter = None
    for sample in keyed_samples(run):
        content = sample.content
        if first_filter is None:
            first_filter = content["filter"]
        if content["filter"] != first_filter:
            continue
        try:
            yield _logged(sample.key, content)
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable_sample(sample.location, error) from None


def _logged(key: str, content: Keys) -> LoggedSample:
    verdict = content.get(VERDICT)
    requests = list(content["arguments"].values())
    continuations = []
    for request in requests:
        if isinstance(request.get("arg_1"), str):
            continuations.append(request["arg_1"])
    return LoggedSample(
        key=key,
        filter=str(content["filter"]),
        doc=content["doc"] if isinstance(content["doc"], dict) else {},
        prompts=tuple(map(_prompt, requests)),
        target=response_text(content["target"]),
        responses=tuple(map(response_text, content.get("resps") or ())),
        answers=tuple(map(response_text, content["filtered_resps"])),
        readings=tuple(map(str, content.get(READING) or ())),
        verdict=verdict if isinstance(verdict, dict) else {},
        is_generated=not continuations,
        continuations=tuple(continuations),
    )


def response_text(value: object) -> str:
    """Return a response as text; a pair of log-probability and "is greedy" becomes JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return response_text(value[0])
    return json.dumps(value, ensure_ascii=False)


def _prompt(request: Keys) -> str:
    context = response_text(request.get("arg_0", ""))
    continuation = request.get("arg_1")
    return f"{context}{GAP}{continuation}" if isinstance(continuation, str) else context


def views_of(run: Run) -> Views | None:
    """Return the view of a run's benchmark; None if it has none."""
    if run.card is None or run.card.name not in BENCHMARKS:
        return None
    return cast("Views | None", BENCHMARKS[run.card.name].view())


def inspect_documents(
    samples: Sequence[LoggedSample], views: Views | None, task: str
) -> tuple[Views | None, list[InspectedDocument]]:
    """Return the documents as people read them, and the view if it can read these samples.

    Documents of another version that the view cannot read are shown as plain text.
    """
    document_views: Sequence[DocumentView] = [_plain_view(sample) for sample in samples]
    if views is not None:
        docs = [sample.doc for sample in samples]
        try:
            document_views = views.documents(docs, [sample.prompts for sample in samples])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=100)
            _log.warning(
                "%s: documents of another version? Shown as plain text (%s)", task, problem
            )
            views = None
    documents = []
    for sample, view in zip(samples, document_views, strict=True):
        different_prompts = dict.fromkeys(sample.prompts)
        prompts = tuple(tuple(turns_of(prompt)) for prompt in different_prompts)
        id_ = str(sample.doc.get("id", ""))
        documents.append(InspectedDocument(view.title, id_, view.gold, view.details, prompts))
    return views, documents


def _plain_view(sample: LoggedSample) -> DocumentView:
    """Return a document as the end of its first prompt, and the right answer as it was logged.

    A task that compares log-probabilities has no target; its document may have an ``answer``.
    """
    prompt = "".join(sample.prompts[:1])
    if sample.continuations:
        prompt = prompt.removesuffix(GAP + sample.continuations[0])
    gold = sample.target or str(sample.doc.get("answer", ""))
    return DocumentView(prompt[-_TITLE_LENGTH:], gold)


def inspect_answers(
    samples: Sequence[LoggedSample],
    documents: Sequence[InspectedDocument],
    views: Views | None,
    where: Filter | None = None,
    right_keys: Collection[str] = (),
) -> list[InspectedAnswer]:
    """Return the answers of one model to these documents as people read them.

    Args:
        samples: The samples.
        documents: Their documents.
        views: The view of the benchmark.
        where: The rows of scores that count; None for those of the headline.
        right_keys: The keys of the samples whose scores say that they are right.
    """
    if views is None:
        answer_views = [AnswerView(_answer_without_view(sample)) for sample in samples]
    else:
        docs = [sample.doc for sample in samples]
        texts = [sample.answers for sample in samples]
        if isinstance(views, ViewsOfRows) and where:
            answer_views = list(views.answers_about(docs, texts, where))
        else:
            answer_views = list(views.answers(docs, texts))
    answers = []
    for sample, document, view in zip(samples, documents, answer_views, strict=True):
        answers.append(
            InspectedAnswer(
                response=_response(sample),
                answer=view.answer,
                rule=_rule(sample),
                reason=_reason(sample, document, view, is_right=sample.key in right_keys),
                details=_details(sample, view),
            )
        )
    return answers


def _details(sample: LoggedSample, view: AnswerView) -> tuple[Detail, ...]:
    """Return what explains a score, without an error that the verdict's line says already."""
    reason = one_line(str(sample.verdict.get("reason") or ""))
    if not reason:
        return view.details
    return tuple(detail for detail in view.details if not one_line(detail.text).startswith(reason))


def _response(sample: LoggedSample) -> str:
    """Return all that a model wrote; "" for log-probabilities, which the answer explains."""
    if not sample.is_generated:
        return ""
    return _numbered(sample.responses)


def _answer_without_view(sample: LoggedSample) -> str:
    """Return a sample's answers, or each continuation with its log-probability."""
    if len(sample.continuations) != len(sample.answers):
        return _numbered(sample.answers)
    lines = []
    for continuation, answer in zip(sample.continuations, sample.answers, strict=True):
        logprob, _is_greedy = json.loads(answer)
        lines.append(f"{float(logprob):.3f} {one_line(continuation)}")
    return "\n".join(lines)


def _numbered(texts: Sequence[str]) -> str:
    """Return the texts of a document's requests, with their numbers if there are several.

    Without numbers, an empty text would not be seen among the others.
    """
    if len(texts) < 2:  # noqa: PLR2004
        return "".join(texts)
    return "\n".join(f"({number}) {text}" for number, text in enumerate(texts, start=1))


def _rule(sample: LoggedSample) -> str:
    """Return by which rules the answer was read, or what can be seen of them."""
    if sample.readings:
        return "; ".join(dict.fromkeys(sample.readings))
    if not _response(sample) or len(sample.responses) != 1 or len(sample.answers) != 1:
        return ""
    (response,), (answer,) = sample.responses, sample.answers
    if answer == response:
        return "the whole response"
    if not answer.strip():
        return "no answer was found"
    start = response.find(answer)
    if start < 0:
        return "a part of the response, cleaned"
    return f"characters {start + 1:,} to {start + len(answer):,} of {len(response):,}"


def _reason(
    sample: LoggedSample, document: InspectedDocument, view: AnswerView, *, is_right: bool
) -> str:
    """Return why an answer is right or wrong, if something says it."""
    if not any(answer.strip() for answer in sample.answers):
        return "no answer was found in the response"
    if sample.verdict:
        return verdict_text(sample.verdict)
    if view.details or len(sample.answers) > 1:
        return ""  # the details say it
    if "db_id" in sample.doc:
        return (
            "not known: these samples have no verdict, and the database is not available here; "
            "lm-eval-ext data fetch spider_databases gets nearly all of the paper's"
        )
    # A scorer may accept more than the gold, such as a sentence that begins with it.
    if is_right or view.answer.strip() == document.gold.strip():
        return ""
    return first_difference(document.gold, view.answer)


def verdict_text(verdict: Keys) -> str:
    """Return a judge's verdict as one line: the status, the reason, the database and the rule."""
    status = str(verdict.get("status", ""))
    text = STATUS_WORDS.get(status, status.replace("_", " "))
    reason = one_line(str(verdict.get("reason") or ""), limit=400)
    if reason:
        text += f": {reason}"
    circumstances = []
    database = str(verdict.get("database") or "")
    if database:
        circumstances.append(f"on the {database} database")
    rule = str(verdict.get("rule") or "")
    if rule:
        circumstances.append(f"by {rule}")
    if circumstances:
        text += f" (decided {' '.join(circumstances)})"
    original = verdict.get("original_status")
    if original and original != status:
        words = STATUS_WORDS.get(str(original), str(original))
        text += f"; on the original database {words}"
    return text


def first_difference(gold: str, answer: str) -> str:
    """Return where two texts of words first differ; "" if one of them has no words."""
    right, written = gold.split(), answer.split()
    if not right or not written:
        return ""
    for position, (expected, word) in enumerate(zip(right, written, strict=False), start=1):
        if expected != word:
            return f"word {position} is {_quoted(word)}, not {_quoted(expected)}"
    if len(written) > len(right):
        return f"{len(written) - len(right)} words too many, from {_quoted(written[len(right)])}"
    if len(written) < len(right):
        return f"{len(right) - len(written)} words are missing, from {_quoted(right[len(written)])}"
    return ""


def _quoted(word: str) -> str:
    return f"“{one_line(word, limit=40)}”"
