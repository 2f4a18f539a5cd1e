"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.ask import asked, figures, question_of
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, choose_tasks
from lm_eval_ext.results.overview import overview
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Measure
from lm_eval_ext.stats.statistics import NONE, Figure, number
from lm_eval_ext.text import broken, one_line, several

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType
    from rich.table import Table

BEST, HEADLINE = "*", "*"
MOST_ROWS = 16
"""Metrics of a task that isn't ours, and published values, unless all are asked for."""
_NAME = 34
"""Characters of a name, before it is broken."""


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


def tables(models: Sequence[Model], question: Asked, width: int) -> "Iterator[RenderableType]":
    """Yields what a terminal shows.

    Raises:
        OptionError: No task or facet has that name.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    from rich.text import Text

    tasks = choose_tasks(models, question.tasks, least=1)
    several_tasks = len(tasks) > 1 and not question.tasks and not question.is_question
    if several_tasks and not question.everything:
        yield from _overview(models, tasks, width)
    else:
        for task in tasks:
            runs = {model.label: model.runs[task] for model in models if task in model.runs}
            yield from _task(task, runs, question, width)
    if question.signatures:
        for task in tasks:
            for model in models:
                if task in model.runs:
                    yield Text(model.runs[task].signature(task), style="dim", no_wrap=True)


def _overview(
    models: Sequence[Model], tasks: Sequence[str], width: int
) -> "Iterator[RenderableType]":

    found = overview(models)
    wide = len(set(found["benchmark"])) > len(models)
    yield _matrix(found, transposed=wide)
    notes = [
        f"{task}: {title}"
        for task, title in found[["task", "title"]].drop_duplicates().itertuples(index=False)
    ]
    if found["best"].any():
        notes.append(f"{BEST} no other model is significantly better (Holm, 5 %)")
    if len(tasks) > len(notes):
        more = f" and {len(tasks) - MOST_ROWS} more" if len(tasks) > MOST_ROWS else ""
        notes.append(f"tasks: {', '.join(tasks[:MOST_ROWS])}{more}")
    notes.append("a task's metrics with --tasks TASK, its parts with --by FACET")
    yield from _notes(notes, width)


def _matrix(found: "DataFrame", *, transposed: bool) -> "Table":
    """Rows are models, or with many benchmarks these."""
    from rich.text import Text

    rows, columns = ("benchmark", "model") if transposed else ("model", "benchmark")
    table = _grid()
    table.add_column("", overflow="fold")
    heads = list(dict.fromkeys(found[columns]))
    for head in heads:
        table.add_column(Text(broken(head, 14)), justify="right", overflow="fold")
    for name, own in found.groupby(rows, sort=False):
        cells = {getattr(one, columns): one for one in own.itertuples()}
        table.add_row(Text(broken(str(name), 24)), *(_cell(cells.get(head)) for head in heads))
    return table


def _cell(one: "object") -> "RenderableType":
    from rich.text import Text

    if one is None:
        return Text("-", style="dim")
    mark = BEST if one.best else " "  # type: ignore[attr-defined]
    text = Text(_value(one.value, one.unit) + mark, style="bold" if one.best else "")  # type: ignore[attr-defined]
    if one.scored < one.total:  # type: ignore[attr-defined]
        text.append(f"\n{one.scored}/{one.total} ", style="dim")  # type: ignore[attr-defined]
    return text


def _task(
    task: str, runs: Mapping[str, ResultsFile], question: Asked, width: int
) -> "Iterator[RenderableType]":
    """One table: a row for each metric or part, and model; then published values and notes."""
    from rich.text import Text

    first = next(iter(runs.values()))
    card = first.card(task)
    found: list[tuple[str, str, Measure, Figure, ResultsFile]] = []
    names: list[str] = []
    problems: dict[str, DataError] = {}
    for model, run in runs.items():
        try:
            of_run = list(_figures(task, run, question))
        except DataError as error:  # without samples, say; the other runs still show
            problems[model] = error
            continue
        for name, measure, one in of_run:
            found.append((name, model, measure, one, run))
            names.append(name)
    if problems and not found:
        raise next(iter(problems.values()))
    heading = f"{one_line(task)} · {', '.join(runs)}" if len(runs) == 1 else one_line(task)
    counts = {run.documents(task) for run in runs.values()}
    if len(counts) == 1:
        ((scored, total),) = counts
        heading += f" · {scored:,} of {total:,} documents"
    yield Text(heading, style="bold")
    if not found:
        yield Text(" no document was scored", style="dim")
    table = _grid()
    table.add_column(question.by or "metric", overflow="fold")
    if len(runs) > 1:
        table.add_column("model", overflow="fold")
    for head in ("value", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    headline = "" if question.is_question else first.headline(task)
    last = ""
    for name in dict.fromkeys(names):
        for other, model, measure, one, run in found:
            if other != name:
                continue
            shown = "" if name == last else broken(_marked(name, headline, run, task), _NAME)
            row = [shown, broken(model, _NAME)] if len(runs) > 1 else [shown]
            cells = [*row, _value(one.value, measure.unit), _interval(one, measure.unit)]
            table.add_row(*map(Text, cells), style="bold" if name == headline else "")
            last = name
    yield table
    yield from _notes(
        [
            *(f"{model}: {error}" for model, error in problems.items()),
            *_published(task, card, question, dict.fromkeys(names)),
            *([f"{HEADLINE} the task's headline"] if headline and card else []),
            *_about(task, runs, card, [(*one[:1], *one[2:]) for one in found]),
        ],
        width,
    )


def _figures(task: str, run: ResultsFile, question: Asked) -> Iterable[tuple[str, Measure, Figure]]:
    """Name, measure and figure of each row."""
    if not question.is_question:
        scores = list(run.scores(task).items())
        for name, found in scores if question.everything else scores[:MOST_ROWS]:
            yield name, question_of(run, task, name).measure, found
        return
    own = question_of(run, task, question.metric)
    own = asked(own, question.where, question.by, question.value, run.card(task))
    for part, found in figures(run, task, own):
        yield ", ".join(part.values()) or own.measure.title, own.measure, found


def _marked(name: str, headline: str, run: ResultsFile, task: str) -> str:
    lower = " ↓" if run.lower_is_better(task, name) else ""
    return f"{name}{lower}{' ' + HEADLINE if name == headline and run.card(task) else ''}"


def _value(value: float | None, unit: str) -> str:
    text = number(value, unit)
    return f"{text} %" if unit == "percent" and text != NONE else text


def _interval(found: Figure, unit: str) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"[{number(found.low, unit)}, {number(found.high, unit)}]"


def _published(
    task: str, card: Card | None, question: Asked, shown_names: Iterable[str]
) -> Iterator[str]:
    """Published values of what is shown; without ``everything`` those of the headline."""
    if card is None or question.by:
        return
    if question.is_question:
        if question.metric and question.metric not in card.metrics | card.measures:
            return
        own = card.question_of(question.metric or card.headline_of(card.metrics))
        wanted = {"": asked(own, question.where, "", question.value, card)}
    else:
        names = [name for name in shown_names if name in card.metrics]
        shown = names if question.everything else [card.headline_of(names)] if names else []
        wanted = {name: card.question_of(name) for name in shown}
    for name, one in wanted.items():
        unit = one.measure.unit
        values = list(card.published(task, one).items())
        kept = values if question.everything else values[:MOST_ROWS]
        if values:
            told = "; ".join(f"{label} {_value(value, unit)}" for label, value in kept)
            more = f"; {len(values) - len(kept)} more with --all" if len(kept) < len(values) else ""
            yield f"published{' ' + name if name else ''}: {told}{more}"


def _about(
    task: str,
    runs: Mapping[str, ResultsFile],
    card: Card | None,
    found: Sequence[tuple[str, Measure, Figure, ResultsFile]],
) -> Iterator[str]:
    """What readers must know about the figures: chance, clusters, what is missing and why."""
    if card and any(one.low is not None for _, _, one, _ in found):
        level = max(one.level for _, _, one, _ in found)
        yield f"intervals are clustered by {card.cluster.unit_at(level)}"
    why: dict[str, list[str]] = {}
    for name, measure, one, run in found:
        if reason := reason_for(run, task, measure, one):
            why.setdefault(reason, []).append(name)
    for reason, names in why.items():
        about = list(dict.fromkeys(names))
        more = f" and {len(about) - 3} more" if len(about) > 3 else ""  # noqa: PLR2004
        all_ = len(names) == len(found)
        yield reason if all_ else f"{', '.join(about[:3])}{more}: {reason}"
    for model, run in runs.items():
        who = f"{model}: " if len(runs) > 1 else ""
        if run.lacks_intervals(task) or (card and not run.is_current(task)):
            yield f"{who}this file is of an older version; docs/old_names.csv has its metrics"
        for cause, ids in run.not_scorable(task).items():
            some = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")  # noqa: PLR2004
            yield f"{who}not scored: {len(ids)} examples, {cause} ({some})"
        every = run.scores(task)
        if len(every) > MOST_ROWS and not any(name in every for name, *_ in found[MOST_ROWS:]):
            yield f"{who}{len(every) - MOST_ROWS} more metrics with --all"


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
    if trial is None:
        return text
    enough = trial.get("enough")
    if not enough:
        return f"{text}; no --limit has more"
    return f"{text}; --limit {enough} would do" if enough > scored else text


def _notes(notes: Iterable[str], width: int) -> "Iterator[RenderableType]":
    from rich.text import Text

    for note in notes:
        yield Text(fill(note, width, initial_indent=" ", subsequent_indent="   "), style="dim")
    yield Text()


def _grid() -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
