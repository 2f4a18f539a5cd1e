"""Shows a results file as tables in a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from textwrap import fill
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, card_of, headline_of
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.results import why
from lm_eval_ext.results.files import ResultsFile, Score, label
from lm_eval_ext.text import broken, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

HEADLINE = "*"
"""Marks the one metric that stands for a task."""

MOST_ROWS = 16
"""Metrics that are shown unless all are asked for."""

WIDTH = 80
_METRIC, _LABEL, _GAP = 42, 40, 3
"""Characters of names of metrics, of published results, and between columns."""


def tables(
    results: ResultsFile,
    *,
    every_metric: bool = False,
    only: Sequence[str] = (),
    width: int = WIDTH,
) -> "Iterable[RenderableType]":
    """Yields the tables of each task: own figures, then published ones, notes and the signature.

    Without ``every_metric`` these are the headline and the metrics of the card's summary. Shares
    and percentages have tables of their own. ``only`` are names of tasks, or patterns with ``*``;
    all if empty.
    """
    from rich.text import Text

    for task in results.tasks:
        if only and not any(fnmatchcase(task, one) for one in only):
            continue
        card = card_of(task)
        scores = results.scores(task)
        scored, total = results.documents(task)
        heading = f"{one_line(task)} · {label(results)} · {scored:,} of {total:,} documents"
        yield Text(heading, style="bold")
        if not scores:
            yield Text(" no document was scored", style="dim")
        headline = headline_of(task, scores)
        shown = sorted(scores, key=lambda name: name != headline)
        if not every_metric:
            shown = first_of(card, scores)
        for percent in (True, False):
            rows = [one for one in shown if results.is_percent(task, one) is percent]
            if rows:
                if percent is False and len(rows) < len(shown):
                    yield Text()
                yield _table(results, task, rows, percent=percent)
        published = card.published(task, scores) if card else {}
        drawn = list(_published(published, shown, every_metric=every_metric, width=width))
        if drawn:
            yield Text(" for comparison", style="italic")
            yield from (table for table, _ in drawn)
        hidden = len(scores) - len(shown)
        figures = sum(map(len, published.values())) - sum(count for _, count in drawn)
        notes = list(_notes(results, task, shown, card, (hidden, figures)))
        for cause, ids in results.not_scorable(task).items():
            notes.append(f"not scored: {len(ids)} examples, {cause} ({_some(ids)})")
        for note in notes:
            yield Text(fill(note, width, initial_indent=" ", subsequent_indent="   "), style="dim")
        # It stays on one line, to be copied.
        yield Text(f" {results.signature(task)}", style="dim", no_wrap=True)
        yield Text()


def first_of(card: Card | None, metrics: Iterable[str]) -> list[str]:
    """The metrics to look at first; of a task that isn't ours, the first ones."""
    return (card.first_of(metrics) if card else list(metrics))[:MOST_ROWS]


def _notes(
    results: ResultsFile,
    task: str,
    shown: Sequence[str],
    card: Card | None,
    hidden: tuple[int, int],
) -> Iterator[str]:
    scores = results.scores(task)
    told = [scores[metric] for metric in shown]
    notes = []
    if card and shown:
        notes.append(f"{HEADLINE} the task's headline")
    if card and card.chance is not None:
        notes.append(f"chance {card.chance:g}")
    if any(score.interval for score in told):
        level = max((score.level for score in told), default=0)
        notes.append(f"clustered by {card.cluster.unit_at(level)}" if card else "")
    named = zip(hidden, ("more metrics", "more published values"), strict=True)
    if more := " and ".join(f"{count} {what}" for count, what in named if count):
        notes.append(f"{more} with --all")
    if notes := [note for note in notes if note]:
        yield "; ".join(notes)
    if results.lacks_intervals(task):
        yield "no intervals: this file is of a version that noted no clusters"
    yield from why.reasons(results, task, shown)


def _table(results: ResultsFile, task: str, metrics: Iterable[str], *, percent: bool) -> "Table":
    from rich.text import Text

    scores = results.scores(task)
    headline = headline_of(task, scores)
    table = _grid()
    table.add_column(Text("metric"), overflow="fold")
    for heading in ("percent" if percent else "value", "95 % interval"):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    for metric in metrics:
        mark = HEADLINE if metric == headline else " "
        lower = " ↓" if results.lower_is_better(task, metric) else ""
        name = broken(metric, _METRIC).replace("\n", "\n  ") + lower
        cells = value_and_interval(scores[metric], percent=percent)
        table.add_row(Text(f"{mark} {name}"), *cells, style="bold" if mark == HEADLINE else "")
    return table


def value_and_interval(score: Score, *, percent: bool) -> tuple[str, str]:
    """Both as text; "" for an interval that there is none of."""
    if score.value is None:
        return NONE, ""
    if score.interval is None:
        return number(score.value, percent=percent), ""
    low, high = (number(bound, percent=percent) for bound in score.interval)
    return number(score.value, percent=percent), f"[{low}, {high}]"


def number(value: float, *, percent: bool = False) -> str:
    """Percentages with one decimal, other values with three."""
    return f"{value:.1f}" if percent else f"{value:.3f}"


def _published(
    figures: Mapping[str, Mapping[str, float]],
    shown: Sequence[str],
    *,
    every_metric: bool,
    width: int,
) -> "Iterator[tuple[Table, int]]":
    """Tables with a row for each published result, and how many values each table has.

    Results with values of the same metrics are in one table; without ``every_metric`` it has the
    columns that fit, the headline's first. Many metrics of few results have a row each.
    """
    from rich.text import Text

    alike: dict[tuple[str, ...], list[str]] = {}
    for name, own in figures.items():
        if there := tuple(metric for metric in shown if metric in own):
            alike.setdefault(there, []).append(name)
    for metrics, names in alike.items():
        if every_metric and len(metrics) > len(names):
            table = _grid()
            table.add_column("", overflow="fold")
            for name in names:
                table.add_column(Text(name), justify="right", overflow="fold")
            for metric in metrics:
                table.add_row(
                    Text(f"  {metric}"), *(_reference(figures[name][metric]) for name in names)
                )
            yield table, len(names) * len(metrics)
            continue
        left = [(metric, _narrow(metric)) for metric in metrics]
        while left:
            room = width - min(max(map(len, names)), _LABEL) - _GAP
            now = [left.pop(0)]
            while left and sum(_width(head) + _GAP for _, head in [*now, left[0]]) <= room:
                now.append(left.pop(0))
            table = _grid()
            table.add_column("", overflow="fold")
            for _, head in now:
                table.add_column(Text(head), justify="right", overflow="fold")
            for name in names:
                cells = [_reference(figures[name][metric]) for metric, _ in now]
                table.add_row(Text(f"  {name}"), *cells)
            yield table, len(names) * len(now)
            if not every_metric:
                break


def _reference(value: float) -> str:
    return number(value, percent=value > _MOST_SHARE)


def _narrow(metric: str) -> str:
    """A metric's name in as few columns as its longest piece needs."""
    return broken(metric, _width(broken(metric, 1)))


def _width(text: str) -> int:
    """Of its longest line."""
    return max(map(len, text.split("\n")))


_MOST_SHARE = 1.5
"""Published values above it are percentages."""


def _grid() -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)


def _some(ids: list[str], most: int = 3) -> str:
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")
