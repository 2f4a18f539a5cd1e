"""Shows a results file as tables in a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lm_eval_ext.cards import Card, card_of
from lm_eval_ext.harness.names import NONE
from lm_eval_ext.results.files import VARIANT, ResultsFile, Score, variant_and_name
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def tables(
    results: ResultsFile, *, every_metric: bool = False, only: Sequence[str] = ()
) -> "Iterable[RenderableType]":
    """Yields one table per task, with the signature below it.

    Without ``every_metric`` it has the benchmark's headline metrics. ``only`` are names of tasks,
    or patterns with ``*``; all if empty.
    """
    from rich.text import Text

    for task in results.tasks:
        if only and not any(fnmatchcase(task, one) for one in only):
            continue
        card = card_of(task)
        scores = results.scores(task)
        scored, total = results.documents(task)
        heading = f"{one_line(task)} · {results.model} · {scored} of {total} documents"
        yield Text(heading, style="bold")
        if scores:
            shown = [
                metric
                for metric in scores
                if card is None
                or every_metric
                or card.whole_and_part(variant_and_name(metric)[1])[0] in card.headline
            ]
            yield _table(task, scores, shown, card)
            told = {metric: scores[metric] for metric in shown}
            notes = _notes(told, len(scores) - len(shown), card)
            if results.lacks_intervals(task):
                notes += "; no intervals: this file is of a version that noted no clusters"
            yield Text(f" {notes}", style="dim")
        else:
            yield Text(" no document was scored", style="dim")
        for cause, ids in results.not_scorable(task).items():
            yield Text(f" not scored: {len(ids)} examples, {cause} ({_some(ids)})", style="dim")
        yield Text(f" {results.signature(task)}", style="dim")
        yield Text()


def _notes(scores: Mapping[str, Score], hidden: int, card: Card | None) -> str:
    notes = []
    if card and card.chance is not None:
        notes.append(f"chance {card.chance:g}")
    by = f", clustered by {card.cluster.unit}" if card else ""
    if any(score.interval for score in scores.values()):
        notes.append(f"in brackets the 95 % interval{by}")
    if any(score.interval is None and score.stderr is not None for score in scores.values()):
        notes.append(f"± one standard error{by}")
        if any((score.clusters or LEAST_CLUSTERS) < LEAST_CLUSTERS for score in scores.values()):
            notes.append(f"no interval from fewer than {LEAST_CLUSTERS} clusters")
    if hidden:
        notes.append(f"{hidden} more with --all")
    return "; ".join(notes)


def _table(
    task: str, scores: Mapping[str, Score], shown: Iterable[str], card: Card | None
) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    parts = [variant_and_name(metric) for metric in shown]
    columns = list(dict.fromkeys(variant for variant, _ in parts if variant)) or [""]
    rows = list(dict.fromkeys(name for _, name in parts))
    headline = list(card.headline) if card else []
    all_parts = ["", *card.parts] if card else []
    split = {row: card.whole_and_part(row) if card else (row, "") for row in rows}

    def order(row: str) -> tuple[int, int]:
        whole, part = split[row]
        place = headline.index(whole) if whole in headline else len(headline)
        return (all_parts.index(part) if card else 0, place)

    rows.sort(key=order)
    references = {
        reference.label: reference.figures
        for reference in (card.references if card else ())
        if task in reference.tasks
    }
    table = Table()
    table.add_column("metric")
    for column in [*columns, *references]:
        table.add_column(escape(column or "value"), justify="right")
    before = ""
    for row in rows:
        whole, part = split[row]
        if part != before:
            before = part
            table.add_section()
            table.add_row(escape(f"{part} alone"), style="italic")
        cells = [_cell(scores.get(f"{column}{VARIANT}{row}")) for column in columns]
        if row in scores:  # it has no variants: it goes into the first column
            cells[0] = _cell(scores[row])
        published = [_published(figures, row, columns) for figures in references.values()]
        table.add_row(escape(whole), *cells, *published)
    return table


def _published(figures: Mapping[str, float], row: str, columns: Iterable[str]) -> str:
    """A published value; where there is one for each variant, all of them."""
    if row in figures:
        return f"{figures[row]:.3f}"
    names = [(column, f"{column}{VARIANT}{row}") for column in columns]
    return ", ".join(f"{column} {figures[name]:.3f}" for column, name in names if name in figures)


def _some(ids: list[str], most: int = 3) -> str:
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")


def _cell(score: Score | None) -> str:
    if score is None:
        return ""
    if score.value is None:
        return NONE
    if score.interval is not None:
        low, high = score.interval
        return f"{score.value:.3f} [{low:.3f}, {high:.3f}]"
    if score.stderr is None:
        return f"{score.value:.3f}"
    return f"{score.value:.3f} ± {score.stderr:.3f}"
