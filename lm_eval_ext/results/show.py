"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.ask import asked, figures, question_of
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, choose_tasks
from lm_eval_ext.results.overview import overview
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import NONE, Figure, number
from lm_eval_ext.text import broken, one_line, several

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType
    from rich.table import Table

MARK = "*"
"""In the overview the best, in a task's table its headline."""

MOST_ROWS = 16
"""Metrics of a task that isn't ours, and published values, unless all are asked for."""


@dataclass(frozen=True)
class Asked:
    """What a user asks for: tasks by name or pattern, and a question about each."""

    tasks: Sequence[str] = ()
    metric: str = ""
    value: str = ""
    where: Sequence[str] = ()
    by: str = ""
    everything: bool = False
    signatures: bool = False

    @property
    def is_question(self) -> bool:
        """Whether more is asked than what lm-eval's results hold."""
        return bool(self.metric or self.value or self.where or self.by)


class _Shown(NamedTuple):
    """A figure of one model: of a metric, or of a part."""

    name: str
    model: str
    run: ResultsFile
    question: Question
    figure: Figure


def tables(models: Sequence[Model], question: Asked, width: int) -> "Iterator[RenderableType]":
    """Yields what a terminal shows.

    Raises:
        OptionError: No task or facet has that name.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    from rich.text import Text

    tasks = choose_tasks(models, question.tasks, least=1)
    one_by_one = question.tasks or question.is_question or question.everything
    if len(tasks) > 1 and not one_by_one:
        yield from _overview(models, tasks, width)
    else:
        problems = {}
        for task in tasks:
            runs = {model.label: model.runs[task] for model in models if task in model.runs}
            try:
                yield from _task(task, runs, question, width)
            except (DataError, OptionError) as error:  # the other tasks still show
                problems[task] = error
        if len(problems) == len(tasks):
            raise next(iter(problems.values()))
        if problems:
            yield from _notes(dict.fromkeys(map(str, problems.values())), width)
    if question.signatures:
        for task in tasks:
            for model in models:
                if task in model.runs:
                    yield Text(model.runs[task].signature(task), style="dim", no_wrap=True)


def _overview(
    models: Sequence[Model], tasks: Sequence[str], width: int
) -> "Iterator[RenderableType]":
    found = overview(models)
    yield _matrix(found)
    notes = [
        f"{task}: {title}"
        for task, title in found[["task", "title"]].drop_duplicates().itertuples(index=False)
    ]
    if found["best"].any():
        notes.append(f"{MARK} no other model is significantly better (Holm, 5 %)")
    if len(models) > 1 and not found["tested"].all():
        left = [
            str(name) if not own["tested"].any() else f"{name} ({', '.join(where)})"
            for name, own in found.groupby("model", sort=False)
            if len(where := own["benchmark"][~own["tested"]])
        ]
        notes.append(
            "not tested, with other documents, settings or versions or without samples: "
            + "; ".join(left)
        )
    if len(tasks) > len(set(found["task"])):
        more = f" and {len(tasks) - MOST_ROWS} more" if len(tasks) > MOST_ROWS else ""
        notes.append(f"tasks: {', '.join(tasks[:MOST_ROWS])}{more}")
    notes.append("a task's metrics with --tasks TASK, its parts with --by FACET")
    yield from _notes(notes, width)


def _matrix(found: "DataFrame") -> "Table":
    """Rows are models, or where there are more benchmarks these."""
    from rich.text import Text

    names = ["model", "benchmark"]
    rows, columns = sorted(names, key=lambda name: found[name].nunique(), reverse=True)
    heads = list(dict.fromkeys(found[columns]))
    table = _grid("", *(broken(head, 14) for head in heads))
    for name, own in found.groupby(rows, sort=False):
        cells = {getattr(one, columns): _cell(one) for one in own.itertuples()}
        missing = Text("-", style="dim")
        table.add_row(Text(broken(str(name), 24)), *(cells.get(head, missing) for head in heads))
    return table


def _cell(one: Any) -> "RenderableType":
    from rich.text import Text

    mark = MARK if one.best else " "
    text = Text(_value(one.value, one.unit) + mark, style="bold" if one.best else "")
    if one.scored < one.total:
        text.append(f"\n{one.scored}/{one.total} ", style="dim")
    return text


def _task(
    task: str, runs: Mapping[str, ResultsFile], question: Asked, width: int
) -> "Iterator[RenderableType]":
    """One table: a row for each metric or part, and model; then published values and notes."""
    from rich.text import Text

    found: list[_Shown] = []
    problems: dict[str, DataError] = {}
    for model, run in runs.items():
        try:
            found += _figures(task, model, run, question)
        except DataError as error:  # without samples, say; the other runs still show
            problems[model] = error
    if problems and not found:
        raise next(iter(problems.values()))
    counts = {run.documents(task) for run in runs.values()}
    heading = [one_line(task), *(runs if len(runs) == 1 else ())]
    heading += [f"{one:,} of {of:,} documents" for one, of in counts if len(counts) == 1]
    yield Text(" · ".join(heading), style="bold")
    if not found:
        yield Text(" no document was scored", style="dim")
    first = next(iter(runs.values()))
    card = first.card(task)
    headline = first.headline(task) if card and not question.is_question else ""
    table = _grid(question.by.replace(",", ", ") or "metric", "value", "95 % interval")
    for name in dict.fromkeys(one.name for one in found):
        own = [one for one in found if one.name == name]
        shown = (
            name + " ↓" * own[0].question.measure.lower_is_better + f" {MARK}" * (name == headline)
        )
        style = "bold" if name == headline else ""
        if len(runs) > 1:
            table.add_row(Text(shown), style=style)
        for one in own:
            label = f"  {one.model}" if len(runs) > 1 else shown
            scored, total = one.run.documents(task)
            if len(counts) > 1 and scored < total:
                label += f" ({scored}/{total})"
            cells = [_value(one.figure.value, one.question.measure.unit), _interval(one)]
            table.add_row(*map(Text, [label, *cells]), style=style)
    yield table
    notes = [f"{model}: {error}" for model, error in problems.items()]
    if card:
        notes += _published(task, card, found, question, headline)
    notes += [f"{MARK} the task's headline"] if headline else []
    yield from _notes([*notes, *_about(task, runs, card, found)], width)


def _figures(task: str, model: str, run: ResultsFile, question: Asked) -> Iterator[_Shown]:
    if not question.is_question:
        scores = list(run.scores(task).items())
        for name, found in scores if question.everything else scores[:MOST_ROWS]:
            yield _Shown(name, model, run, question_of(run, task, name), found)
        return
    own = question_of(run, task, question.metric)
    own = asked(own, question.where, question.by, question.value, run.card(task))
    for part, found in figures(run, task, own):
        yield _Shown(", ".join(part.values()) or own.measure.title, model, run, own, found)


def _value(value: float | None, unit: str) -> str:
    text = number(value, unit)
    return f"{text} %" if unit == "percent" and text != NONE else text


def _interval(one: _Shown) -> str:
    low, high = (
        number(end, one.question.measure.unit) for end in (one.figure.low, one.figure.high)
    )
    return "" if NONE in {low, high} else f"[{low}, {high}]"


def _published(
    task: str, card: Card, found: Sequence[_Shown], asked_for: Asked, headline: str
) -> Iterator[str]:
    """Published values of what is shown; without ``everything`` those of the headline."""
    for name, one in {one.name: one.question for one in found}.items():
        values = list(card.published(task, one).items())
        if not values or not (asked_for.everything or asked_for.is_question or name == headline):
            continue
        kept = values if asked_for.everything else values[:MOST_ROWS]
        told = "; ".join(f"{label} {_value(value, one.measure.unit)}" for label, value in kept)
        more = f"; {len(values) - len(kept)} more with --all" if len(kept) < len(values) else ""
        yield f"published{'' if asked_for.is_question else ' ' + name}: {told}{more}"


def _about(
    task: str, runs: Mapping[str, ResultsFile], card: Card | None, found: Sequence[_Shown]
) -> Iterator[str]:
    """What readers must know about the figures: clusters, what is missing and why."""
    if card and any(one.figure.low is not None for one in found):
        level = max(one.figure.level for one in found)
        yield f"intervals are clustered by {card.cluster.unit_at(level)}"
    why: dict[str, list[str]] = {}
    for one in found:
        if reason := reason_for(one.run, task, one.question.measure, one.figure):
            why.setdefault(reason, []).append(one.name)
    for reason, names in why.items():
        about = list(dict.fromkeys(names))
        more = f" and {len(about) - 3} more" if len(about) > 3 else ""  # noqa: PLR2004
        all_ = len(names) == len(found)
        yield reason if all_ else f"{', '.join(about[:3])}{more}: {reason}"
    told: dict[str, list[str]] = {}
    for model, run in runs.items():
        for note in _about_run(run, task, {one.name for one in found if one.run is run}):
            told.setdefault(note, []).append(model)
    for note, models in told.items():
        yield note if len(models) == len(runs) else f"{', '.join(models)}: {note}"


def _about_run(run: ResultsFile, task: str, shown: Set[str]) -> Iterator[str]:
    if run.lacks_intervals(task) or (run.card(task) and not run.is_current(task)):
        yield "this file is of an older version; docs/old_names.csv has its metrics"
    for cause, ids in run.not_scorable(task).items():
        some = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")  # noqa: PLR2004
        yield f"not scored: {len(ids)} examples, {cause} ({some})"
    scores = run.scores(task).keys()
    if shown & scores and scores - shown:
        yield f"{len(scores - shown)} more metrics with --all"


def reason_for(run: ResultsFile, task: str, measure: Measure, found: Figure) -> str:
    """Why a figure has no value or no interval, and which ``--limit`` gives one; "" if it has."""
    card = run.card(task)
    if card is None or not run.is_current(task) or found.low is not None:
        return ""
    trial = run.trial(task)
    scored, total = run.documents(task)
    if found.value is None:
        text = measure.undefined if found.documents else "there are none of its documents"
        more = f" among {scored:,} of {total:,}; a larger --limit may give one" if trial else ""
        return f"{NONE}, since {text}{more}"
    unit = card.cluster.unit_at(found.level)
    if found.clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    some = f"1 {unit}" if found.clusters == 1 else f"{found.clusters} {several(unit)}"
    text = f"no interval from {some}, fewer than {LEAST_CLUSTERS}"
    enough = (trial or {}).get("enough")
    if trial is None or (enough and enough <= scored):
        return text
    return f"{text}; --limit {enough} would do" if enough else f"{text}; no --limit has more"


def _notes(notes: Iterable[str], width: int) -> "Iterator[RenderableType]":
    from rich.text import Text

    for note in notes:
        whole = note.replace(" %", "\N{NO-BREAK SPACE}%")
        lines = fill(whole, width, initial_indent=" ", subsequent_indent="   ")
        yield Text(lines.replace("\N{NO-BREAK SPACE}", " "), style="dim")
    yield Text()


def _grid(first: str, *others: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(Text(first), overflow="fold")
    for head in others:
        table.add_column(Text(head), justify="right", overflow="fold")
    return table
