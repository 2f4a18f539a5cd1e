"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.align import across_settings_command, parts_of
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import (
    LOWER_LEGEND,
    Section,
    chance_note,
    interval_text,
    legend,
    matrix,
    metric_heading,
    note_section,
    value,
)
from lm_eval_ext.results.models import Model, choose_tasks, runs_by_model
from lm_eval_ext.results.overview import (
    OverviewRow,
    overview_columns,
    ranked_models,
    table_of,
)
from lm_eval_ext.results.query import (
    QueryRow,
    ScoreQuery,
    chance_level_of,
    chance_of,
    query_rows,
    question_of,
    reason_for,
    reference_run,
)
from lm_eval_ext.stats.measures import Chance, Question
from lm_eval_ext.text import MAX_NAMES, counted, named_briefly, one_line

DRAWS = " †"
"""The sign behind the name of a metric that a paper computed from draws of the documents."""

DRAWS_LEGEND = (
    f"{DRAWS.strip()} as the paper computes it: median and middle 95 % of draws of documents, "
    "which are narrower than an interval, since they take no account of clusters"
)
"""What the sign means."""

DIAGNOSTICS = "counted in these answers, to check the run, so without an interval"
"""Why a diagnostic has no interval."""

TRIALS = "below trials: documents evaluated / of the task"
"""What the second line of a value means."""


def tables(
    models: Sequence[Model],
    query: ScoreQuery,
    tasks: Sequence[str] = (),
    *,
    results: str = "RESULTS",
) -> Iterator[Section]:
    """Yield what a terminal shows.

    Args:
        models: The models of any results.
        query: A question about each task; without one its metrics are shown.
        tasks: Tasks by name or pattern. Without any, and without a question, the overview of
            several is shown.
        results: The folders of the results, as a command takes them.

    Raises:
        OptionError: No task or facet has that name.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    chosen = choose_tasks(models, tasks, min_models=1)
    if len(chosen) > 1 and not tasks and not query.is_question:
        yield from _overview(models, chosen, results)
        return
    problems = []
    for task in chosen:
        try:
            table = _read_task(runs_by_model(models, task), query, results)
            sections = table.section(), note_section(table.notes())
        except (DataError, OptionError) as error:  # the other tasks still show
            problems.append(error)
        else:
            yield from sections
    if len(problems) == len(chosen):
        raise problems[0]
    yield note_section(map(str, problems))


# Models by benchmarks.


def overview_table(
    rows: Sequence[OverviewRow], order: Sequence[str], *, has_intervals: bool = False
) -> tuple[list[str], list[str], list[list[str]]]:
    """Return what the tasks measure, and the columns and rows of models by benchmarks.

    Below a trial's value is the number of documents, if need be below the interval.

    Args:
        rows: The values.
        order: The models, in the order in which they are to stand.
        has_intervals: Whether intervals stand below the values.
    """
    titles = {row.task: row.title for row in rows}
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        shown_value = value(row.value, row.unit, row.standing)
        ends = interval_text(row.low, row.high, row.unit)
        if has_intervals and ends:
            shown_value += f"\n{ends}"
        if row.scored < row.total:
            # The space is below the mark, so that the digits are below those of the value.
            shown_value += f"\n{row.scored:,}/{row.total:,} "
        cells.setdefault(row.benchmark, dict.fromkeys(order, "-"))[row.model] = shown_value
    # A table is long rather than wide: benchmarks are its rows only if they outnumber the models.
    columns, lines = matrix(cells, turned=len(cells) <= len(order))
    return [f"{task}: {title}" for task, title in titles.items()], columns, lines


def _overview(models: Sequence[Model], tasks: Sequence[str], results: str) -> Iterator[Section]:
    benchmark_columns = overview_columns(models)
    rows = table_of(benchmark_columns)
    order = ranked_models(benchmark_columns)
    titles, columns, lines = overview_table(rows, order)
    yield "", columns, lines
    titles = list(_titles_with_chance(models, rows))
    if any(row.scored < row.total for row in rows):
        titles.append(TRIALS)
    advice = (
        f"{len(tasks)} tasks: a task's metrics with --tasks TASK, its parts with --by FACET, its "
        f"samples with lm-eval-ext samples {results} --task TASK"
    )
    notes = [*titles, *overview_notes(models, rows)]
    notes += unlisted_note(models, order)
    yield note_section([*notes, advice, *_settings_advice(rows, results)])


def _titles_with_chance(models: Sequence[Model], rows: Sequence[OverviewRow]) -> Iterator[str]:
    """Yield what each task measures, with what guessing scores where that is known."""
    for row in rows:
        run = reference_run(runs_by_model(models, row.task))
        chance = chance_of(run, question_of(run, row.metric))
        title = f"{row.task}: {row.title}"
        if chance is not None:
            title += f" (chance {value(chance, row.unit).strip()})"
        yield title


def overview_chances(
    models: Sequence[Model], rows: Sequence[OverviewRow]
) -> Iterator[Chance | None]:
    """Yield the level of chance of each task of an overview."""
    for task, metric in dict.fromkeys((row.task, row.metric) for row in rows):
        run = reference_run(runs_by_model(models, task))
        yield chance_level_of(run, question_of(run, metric))


def unlisted_note(models: Sequence[Model], listed: Sequence[str]) -> list[str]:
    """Return the line that names the models without a row in an overview; [] if there are none.

    They have results, but none on the tasks that stand for the benchmarks.
    """
    missing = [model.label for model in models if model.label not in listed]
    return [f"without results of these: {', '.join(sorted(missing))}"] if missing else []


def _settings_advice(rows: Sequence[OverviewRow], results: str) -> Iterator[str]:
    """Yield the command that tests what only different settings keep from a test."""
    tasks = dict.fromkeys(row.task for row in rows if row.is_testable_across_settings)
    if tasks:
        yield "to test models with their settings:"
        names = shlex.quote(",".join(map(one_line, tasks)))
        yield across_settings_command(f"{results} --tasks {names}")


def overview_notes(models: Sequence[Model], rows: Sequence[OverviewRow]) -> Iterator[str]:
    """Yield what the marks mean, what was not tested, is missing or not comparable."""
    yield from legend((row.standing for row in rows), overview_chances(models, rows))
    yield from untested_notes(rows)
    for task in dict.fromkeys(row.task for row in rows):
        runs = runs_by_model(models, task)
        yield from version_notes(runs)
        yield from library_notes(runs)
    yield from published_notes(models, rows)
    yield from missing_value_notes(rows)


def missing_value_notes(rows: Sequence[OverviewRow]) -> Iterator[str]:
    """Yield, reason by reason, which models have no value on which benchmarks."""
    reasons = []
    for row in rows:
        if row.value is None:
            reasons.append((row.why, row.model, row.benchmark))
    yield from grouped_by_model(reasons)


def untested_notes(rows: Sequence[OverviewRow]) -> Iterator[str]:
    """Yield, reason by reason, which models could not be tested on which tasks."""
    reasons = []
    for row in rows:
        if row.untested:
            reasons.append((f"not tested: {row.untested}", row.model, row.task))
    if len({reason for reason, _, _ in reasons}) == 1:
        yield reasons[0][0]  # the marks say which
        return
    yield from grouped_by_model(reasons)


def grouped_by_model(reasons: Sequence[tuple[str, str, str]], total: int = 0) -> Iterator[str]:
    """Yield each reason once, after the models and columns that it is about, if not all are.

    Models with the reason in the same columns stand together, before these columns.

    Args:
        reasons: Each with a model and a column.
        total: The number of values that there are; 0 if the models are always to be named.
    """
    counts = Counter(reason for reason, _, _ in reasons)
    columns_of: dict[str, dict[str, list[str]]] = {}
    for reason, model, column in reasons:
        columns_of.setdefault(reason, {}).setdefault(model, []).append(column)
    for reason, columns_of_model in columns_of.items():
        if counts[reason] == total:
            yield reason
            continue
        models_of: dict[tuple[str, ...], list[str]] = {}
        for model, columns in columns_of_model.items():
            models_of.setdefault(tuple(columns), []).append(model)
        concerned = []
        for shared_columns, models in models_of.items():
            concerned.append(f"{named_briefly(models)} ({named_briefly(shared_columns)})")
        yield f"{'; '.join(concerned)}: {reason}"


# One task.


@dataclass(frozen=True)
class _NamedEstimate:
    """An estimate of a model, under the name that its row has."""

    model: str
    name: str
    row: QueryRow

    @property
    def reason(self) -> str:
        """Why there is no value or no interval; "" if there is one."""
        return reason_for(self.row.run, self.row.question.measure, self.row.estimate)


@dataclass(frozen=True)
class _TaskTable:
    """A row for each metric or part, and model.

    Attributes:
        runs: The runs on the task, by model.
        query: What is asked of them.
        estimates: The estimates, model by model.
        problems: By model, why it has none.
        results: The folders of the results, as a command takes them.
    """

    runs: Mapping[str, Run]
    query: ScoreQuery
    estimates: Sequence[_NamedEstimate]
    problems: Mapping[str, Exception]
    results: str

    @cached_property
    def reference(self) -> Run:
        """The run whose metrics come first."""
        return reference_run(self.runs)

    @property
    def has_several(self) -> bool:
        """Whether the table is about several models."""
        return len(self.runs) > 1

    @cached_property
    def by_name(self) -> dict[str, dict[str, _NamedEstimate]]:
        """The estimates by metric or part, those of the reference first, and by model."""
        by_name: dict[str, dict[str, _NamedEstimate]] = {}
        for named_estimate in self.estimates:
            if named_estimate.row.run is self.reference:
                by_name[named_estimate.name] = {}
        for named_estimate in self.estimates:
            by_name.setdefault(named_estimate.name, {})[named_estimate.model] = named_estimate
        return by_name

    def section(self) -> Section:
        """Return the table below its heading."""
        lines = list(self._lines())
        columns: tuple[str, ...] = ()
        if lines:
            first_column = self.query.by.replace(",", ", ") or "metric"
            columns = (first_column, "value", "95 % interval")
            if self._has_chance:
                columns = (*columns, "chance")
        return self._heading(), columns, lines

    def _heading(self) -> str:
        """Return the task, its only model, the number of documents, and the only question."""
        words = [one_line(self.reference.task)]
        if not self.has_several:
            words.extend(self.runs.keys())
        counts = []
        for model, run in self.runs.items():
            counts.append((model, _documents_in_words(run)))
        words.append("; ".join(grouped(counts, len(self.runs))))
        if self.query.by:
            titles = list(dict.fromkeys(title for title, _ in self.query.questions(self.reference)))
            if len(titles) == 1:
                words += titles
        return " · ".join(words)

    def _lines(self) -> Iterator[list[str]]:
        for name, by_model in self.by_name.items():
            question = next(iter(by_model.values())).row.question
            heading = self._name_heading(name, question)
            if question.measure.statistic == "bootstrap":
                heading += DRAWS
            chance_cells = self._chance_cells(question)
            if self.has_several:
                yield [heading, "", "", *chance_cells]
                chance_cells = [""] * len(chance_cells)
            for model, named_estimate in by_model.items():
                estimate = named_estimate.row.estimate
                unit = question.measure.unit
                label = f"  {model}" if self.has_several else heading
                ends = interval_text(estimate.low, estimate.high, unit)
                yield [label, value(estimate.value, unit), ends, *chance_cells]

    def _name_heading(self, name: str, question: Question) -> str:
        """Return the name of a row, with a mark where it is that of the headline."""
        is_one_of_several = not self.query.is_question and len(self.by_name) > 1
        if is_one_of_several and name == self.reference.headline:
            name += " (headline)"
        return metric_heading(name, lower_is_better=question.measure.lower_is_better)

    @cached_property
    def _has_chance(self) -> bool:
        """Whether the card says of any row what guessing scores."""
        questions = [named_estimate.row.question for named_estimate in self.estimates]
        return any(chance_of(self.reference, question) is not None for question in questions)

    def _chance_levels(self) -> Iterator[Chance | None]:
        """Yield the level of chance of each row that has one in its column."""
        for by_model in self.by_name.values():
            question = next(iter(by_model.values())).row.question
            if chance_of(self.reference, question) is not None:
                yield chance_level_of(self.reference, question)

    def _chance_cells(self, question: Question) -> list[str]:
        """Return the cell that says what guessing scores; [] if the table has none."""
        if not self._has_chance:
            return []
        chance = chance_of(self.reference, question)
        return ["" if chance is None else value(chance, question.measure.unit)]

    def notes(self) -> Iterator[str]:
        """Yield published values, and what must be known of the runs and their values."""
        if self.estimates:
            yield from self._published_notes()
        else:
            yield "no document was scored"
        yield from version_notes(self.runs)
        yield from library_notes(self.runs)
        card = self.reference.card
        levels = []
        for named_estimate in self.estimates:
            if named_estimate.row.estimate.low is not None:
                levels.append(named_estimate.row.estimate.level)
        if card and levels:
            yield f"intervals are clustered by {card.cluster.unit_at(max(levels))}"
        if any(estimate.row.question.measure.lower_is_better for estimate in self.estimates):
            yield LOWER_LEGEND
        yield from self._notes_on_measures()
        if self._has_chance:
            yield from chance_note(self._chance_levels())
        yield from self._reasons()
        about_runs = []
        for model, run in self.runs.items():
            for note in _excluded(run):
                about_runs.append((model, note))
        for model, problem in self.problems.items():
            about_runs.append((model, str(problem)))
        yield from grouped(about_runs, len(self.runs))
        if self.estimates:
            yield f"samples: {_samples_command(self.reference, self.query, self.results)}"

    def _notes_on_measures(self) -> Iterator[str]:
        """Yield what is special about bootstraps of papers, and about diagnostics."""
        diagnostics = []
        has_draws = False
        for name, by_model in self.by_name.items():
            measure = next(iter(by_model.values())).row.question.measure
            has_draws = has_draws or measure.statistic == "bootstrap"
            if measure.diagnostic:
                diagnostics.append(name)
        if has_draws:
            yield DRAWS_LEGEND
        if diagnostics:
            yield f"{named_briefly(diagnostics)}: {DIAGNOSTICS}"

    def _reasons(self) -> Iterator[str]:
        """Yield why values or intervals are missing, reason by reason."""
        if not self.has_several:
            reasons = [(estimate.name, estimate.reason) for estimate in self.estimates]
            yield from grouped(reasons, len(self.estimates))
            return
        reasons_of_models = []
        for estimate in self.estimates:
            if estimate.reason:
                reasons_of_models.append((estimate.reason, estimate.model, estimate.name))
        yield from grouped_by_model(reasons_of_models, len(self.estimates))

    def _published_notes(self) -> Iterator[str]:
        """Yield what others published on what is asked, or on the headline."""
        card = self.reference.card
        if card is None:
            return
        for name, by_model in self.by_name.items():
            if not self.query.is_question and name != self.reference.headline:
                continue
            question = next(iter(by_model.values())).row.question
            published = _published_values(card, self.reference.task, question)
            if published:
                yield f"published {name}: {published}"


def _documents_in_words(run: Run) -> str:
    """Return how many documents were evaluated; and of a part, how many the task has."""
    scored, total = run.documents
    if scored == total:
        return counted(total, "document")
    return f"{counted(scored, 'document')} evaluated / {total:,} of the task"


def _read_task(runs: Mapping[str, Run], query: ScoreQuery, results: str) -> _TaskTable:
    """Return the table of a task; raises the first problem if no model has an estimate."""
    estimates: list[_NamedEstimate] = []
    problems: dict[str, Exception] = {}
    for model, run in runs.items():
        try:
            estimates += _estimates_of(model, run, query)
        except (DataError, OptionError) as error:  # a model without samples; the others still show
            problems[model] = error
    if problems and not estimates:
        raise next(iter(problems.values()))
    return _TaskTable(runs, query, estimates, problems, results)


def _estimates_of(model: str, run: Run, query: ScoreQuery) -> list[_NamedEstimate]:
    """Return a model's estimates, each named by its metric, or by its question and part."""
    rows = list(query_rows(run, query))
    has_several_titles = len({row.title for row in rows}) > 1
    estimates = []
    for row in rows:
        name = row.metric
        if query.is_question:
            words = list(row.part.values())
            if has_several_titles or not words:
                words.insert(0, row.title)
            name = ", ".join(words)
        estimates.append(_NamedEstimate(model, name, row))
    return estimates


def _excluded(run: Run) -> Iterator[str]:
    """Yield why some documents of a run were not scored."""
    for cause, ids in run.excluded.items():
        shown_ids = ", ".join(ids[:MAX_NAMES])
        if len(ids) > MAX_NAMES:
            shown_ids += ", ..."
        note = f"not scored: {counted(len(ids), 'example')}, {cause} ({shown_ids})"
        if cause == "database_missing":
            note += "; name a folder that has all databases: --metadata magnifico_databases=FOLDER"
        yield note


def _samples_command(run: Run, query: ScoreQuery, results: str) -> str:
    """Return the command that shows the samples behind the numbers of a task."""
    words = ["lm-eval-ext samples", results, "--task", one_line(run.task)]
    words += [f"--metric {metric}" for metric in query.metrics[:1]]  # samples takes one
    if query.value:
        words.append(f"--value {query.value}")
    words += [f"--where {condition}" for condition in query.where]
    if query.by:
        words.append(f"--by {query.by}")
    return " ".join([*words, "--wrong"])


# Notes.


def published_notes(models: Sequence[Model], rows: Sequence[OverviewRow]) -> Iterator[str]:
    """Yield what others published on the tasks of an overview."""
    for task, metric in dict.fromkeys((row.task, row.metric) for row in rows):
        published = published_note(reference_run(runs_by_model(models, task)), metric)
        if published:
            yield published


def published_note(run: Run, metric: str) -> str:
    """Return what others published on a metric of a run's task; "" if nothing is known."""
    if run.card is None:
        return ""
    published = _published_values(run.card, run.task, question_of(run, metric))
    return f"published {run.task}: {published}" if published else ""


def _published_values(card: Card, task: str, question: Question) -> str:
    """Return published values of a question, each after who has it."""
    shown = []
    for label, amount in card.published(task, question).items():
        shown.append(f"{label} {value(amount, question.measure.unit).strip()}")
    return "; ".join(shown)


def grouped(notes: Iterable[tuple[str, str]], total: int) -> Iterator[str]:
    """Yield each note once, after the names that it is about, unless it is about all of them.

    Args:
        notes: Names with their notes; "" is none.
        total: How many names there are.
    """
    names_of: dict[str, list[str]] = {}
    for name, note in notes:
        names_of.setdefault(note, []).append(name)
    for note, names in names_of.items():
        if not note:
            continue
        yield f"{named_briefly(names)}: {note}" if len(names) < total else note


def version_notes(runs: Mapping[str, Run]) -> list[str]:
    """Say that a table has results of several versions of a task, whose scores differ."""
    models_of: dict[str, list[str]] = {}
    for model, run in runs.items():
        models_of.setdefault(parts_of(run.signature).get("version", "?"), []).append(model)
    if len(models_of) < 2:  # noqa: PLR2004
        return []
    task = one_line(next(iter(runs.values())).task)
    versions = [f"{version}.x of {named_briefly(models)}" for version, models in models_of.items()]
    note = f"{task}: versions {' and '.join(versions)} are not comparable; run the older again"
    return [note]


def library_notes(runs: Mapping[str, Run]) -> list[str]:
    """Say that results are of several major versions of transformers.

    One folder of weights may give other log-probabilities in another major version.
    """
    models_of: dict[str, list[str]] = {}
    for model, run in runs.items():
        library = str(run.file.content.get("transformers_version") or "N/A")
        major = library.partition(".")[0]
        if major.isdigit():
            models_of.setdefault(major, []).append(model)
    if len(models_of) < 2:  # noqa: PLR2004
        return []
    majors = [f"{major} ({named_briefly(models)})" for major, models in sorted(models_of.items())]
    words = f"results of transformers {' and '.join(majors)}"
    return [f"{words}: the same weights may score differently; run with one version"]
