"""Which samples of a task ``lm-eval-ext samples`` shows, with the answers of one model or two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import Run
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
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import Filter
from lm_eval_ext.stats.statistics import number, split_question
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

DEFAULT_LIMIT = 10
"""Samples that are shown of each part, unless more are asked for."""

_SHORT_HASH = 12
"""Characters of a document's hash that are shown."""


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
class ModelSamples:
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
        where: The rows of scores that count.
        remark: Which score was chosen instead of the headline; "" if it is that.
    """

    models: Sequence[ModelSamples]
    words: Sequence[str]
    score: SampleScore
    values: Sequence[Mapping[str, float]]
    keys: Sequence[str]
    where: Filter
    remark: str = ""

    def select(self, query: SampleQuery) -> list[str]:
        """Return the keys of the samples that are asked for."""
        return [key for key in self.keys if self._is_selected(key, query)]

    def _is_selected(self, key: str, query: SampleQuery) -> bool:
        if query.ids:
            document_id = str(self.models[0].samples[key].doc.get("id", ""))
            if not {key, short_key(key), document_id} & set(query.ids):
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

    def _model_heading(self, model: ModelSamples, values: Mapping[str, float]) -> str:
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
            right_keys = {key for key, value in values.items() if self.score.is_right(value)}
            inspected = inspect_answers(own_samples, own_documents, views, self.where, right_keys)
            for key, answer in zip(own_keys, inspected, strict=True):
                value = values.get(key)
                words = self._score_in_words(value, model.samples[key].answers)
                answers[key].append(ShownAnswer(model.label, value, words, answer))
        return [ShownSample(key, document_of[key], answers[key]) for key in keys]

    def _score_in_words(self, value: float | None, answers: Sequence[str]) -> str:
        """Return the score of a sample, whether it is right, and why a difference is none."""
        outcome = self.score.outcome(value)
        if value is None:
            return outcome
        words = f"{self.score.title} {number(value)}: {outcome}"
        if outcome in ("no gain", "no difference"):
            words += _why_no_difference(answers)
        return words


def _why_no_difference(answers: Sequence[str]) -> str:
    """Return what answers have in common that make no difference; "" if that is nothing."""
    different = {answer.strip() for answer in answers}
    if len(answers) < 2 or len(different) > 1:  # noqa: PLR2004
        return ""
    if different == {""}:
        return ", both answers are empty" if len(answers) == 2 else ", all answers are empty"  # noqa: PLR2004
    return ", the answers are the same"


def choose_task(models: Sequence[Model], task: str) -> str:
    """Return the task that is asked for, or the only one that the results have.

    Raises:
        OptionError: No task has that name, or the results have several.
    """
    available = choose_tasks(models, [task] if task else [], min_models=1)
    if len(available) > 1:
        raise OptionError(f"name one task with --task: {', '.join(available)}")
    return available[0]


def choose_models(models: Sequence[Model], task: str, query: SampleQuery) -> list[ModelSamples]:
    """Return the one model or the two that are shown.

    Raises:
        OptionError: No model has that name, or there are more than two.
        DataError: Samples were not logged or cannot be read.
    """
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
        chosen.append(ModelSamples(label, run, samples, rows(run, is_part_allowed=True)))
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


def shown_parts(models: Sequence[ModelSamples], query: SampleQuery) -> Iterator[ShownPart]:
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


def _scored_parts(models: Sequence[ModelSamples], query: ScoreQuery) -> Iterator[_ScoredPart]:
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
        where = part_question.filter
        yield _ScoredPart(models, words, score, values, keys, where, chosen.remark)


def short_key(key: str) -> str:
    """Return a key with the start of its hash; most documents occur once, so without a count."""
    document, _, count = key.partition("#")
    short = document[:_SHORT_HASH]
    return short if count == "0" else f"{short}#{count}"
