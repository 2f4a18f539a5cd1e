"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import cards
from lm_eval_ext.compare import reading
from lm_eval_ext.compare.align import clusters_of
from lm_eval_ext.compare.systems import Systems, lacking
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.experiments.table import Table as Experiment
from lm_eval_ext.leaderboard import (
    changes,
    exchange,
    experiments,
    exports,
    pictures,
    samples,
    tables,
)
from lm_eval_ext.leaderboard.board import Board, TaskBoard, collect
from lm_eval_ext.leaderboard.matrix import matrix
from lm_eval_ext.leaderboard.page import Page, Section, render
from lm_eval_ext.leaderboard.pictures import Drawn
from lm_eval_ext.leaderboard.ranks import ranks_by_intervals, ranks_by_tests
from lm_eval_ext.leaderboard.samples import Logged, SampleFiles, read
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.samples import Key, Sample

_log = get_logger(__name__)

_FOLDER = re.compile(r"[0-9]{2,}-[A-Za-z0-9_-]*")
_FILE = re.compile(r"(index|documents-[0-9]+|answers-[0-9]+)\.js")


def remove_samples(site: Path) -> None:
    """Removes the samples of earlier pages, and no file with another kind of name."""
    samples = site / "samples"
    for folder in list(samples.iterdir()) if samples.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir() or not _FOLDER.fullmatch(folder.name):
            continue
        for file in list(folder.iterdir()):
            if _FILE.fullmatch(file.name):
                file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


MOST_METRICS = 12
"""Metrics per task that the browser of samples offers."""

_SAME = 1e-9
"""Values that differ by less are equal but for rounding."""


def build(
    paths: Sequence[Path],
    site: Path,
    *,
    title: str = "Leaderboard",
    merge: Sequence[Path] = (),
    with_samples: bool = True,
    progress: bool | None = None,
) -> Path:
    """Makes the page of results files or folders, and the folder ``site``; returns the page's path.

    An earlier page and its samples are removed first, and the new page is written last, so that
    a folder with a page is complete.

    Args:
        paths: As lm_eval, ``lm-eval-ext run`` or ``lm-eval-ext experiment`` left them.
        site: What the page is written to.
        title: Of the page.
        merge: ``results.json`` of other pages, whose models are added.
        with_samples: Whether to write the samples, too.
        progress: Whether to show a bar; None: if stderr is a terminal.

    Raises:
        OptionError: If there are no results, or ``site`` cannot be written.
        DataError: If a file cannot be read.
    """
    models = reading.read_models(paths)
    board = _merged(models, merge)
    tried = experiments.tables(paths)
    page = site / "index.html"
    before = changes.earlier(site)
    try:
        site.mkdir(parents=True, exist_ok=True)
        page.unlink(missing_ok=True)
        remove_samples(site)
        written = _write_samples(board, site, with_samples=with_samples, progress=progress)
        content = _content(board, models, title, written, tried)
        if before:
            content = replace(content, changes=changes.changes(before, board))
        shown = [content.overview, *(table for one in content.sections for table in one.tables)]
        exports.write(shown, site)
        pictures.write(content.drawn, site)
        exchange.write(board, site)
    except OSError as error:
        raise OptionError(f"cannot write {error.filename or site}: {error.strerror}") from None
    with atomic_text(page) as out:
        out.write(render(content))
    return page


def _merged(models: Sequence[reading.Model], others: Sequence[Path]) -> Board:
    """Says of each run from another page that cannot be compared with most, why."""
    own = collect(models) if models else None
    board = exchange.merged(own, map(exchange.read, others)) if others else collect(models)
    sources = {model.label: model.source for model in board.models if model.source}
    for task in board.tasks:
        for label, run in task.runs.items():
            if label in sources and run.differs:
                what = f"{sources[label]}: {label} on {task.name} has no rank: it measured"
                _log.warning("%s %s", what, ", ".join(run.differs))
    return board


def _content(
    board: Board,
    models: Sequence[reading.Model],
    title: str,
    written: Sequence[tuple[str, SampleFiles]],
    tried: Mapping[str, Experiment],
) -> Page:
    best = matrix(board)
    labels = [row.label for row in best.table.rows]
    drawn = pictures.draw_all(models, board, best, experiments.figures(tried))
    return Page(
        title,
        board,
        best,
        tables.overview("All tasks", board.tasks, labels),
        [*experiments.sections(tried, drawn), *_sections(board, drawn)],
        drawn=drawn,
        samples=written,
    )


def _write_samples(
    board: Board, site: Path, *, with_samples: bool, progress: bool | None
) -> list[tuple[str, samples.SampleFiles]]:
    """Ranks the models of every task and writes its samples, a task at a time."""
    written = []
    for place, task in enumerate(_with_bar(board.tasks, progress)):
        logged = _logged(task)
        _rank(task, logged)
        if with_samples and logged:
            files = samples.write(task, place, _metrics(task), logged, site)
            written.append((task.name, files))
    return written


def _sections(board: Board, drawn: Drawn) -> Iterator[Section]:
    for name, card in cards().items():
        tasks = [task for task in board.tasks if task.benchmark == name]
        if tasks:
            found = tuple(tables.of_benchmark(card, tasks))
            paper = f"{card.paper.authors}, {card.paper.venue}"
            yield Section(
                name, card.title, paper, card.paper.url, found, drawn.benchmarks.get(name, ())
            )
    others = [task for task in board.tasks if not task.benchmark]
    if others:
        shown = tuple(tables.other(task) for task in others)
        yield Section("others", tables.OTHERS, tables=shown)


def _metrics(task: TaskBoard) -> list[str]:
    """The metrics that the browser of samples offers: the headline, then the summary."""
    card = cards().get(task.benchmark)
    names = tables.all_metrics(task)
    return list(dict.fromkeys([task.leading, *(card.first_of(names) if card else names)]))[
        :MOST_METRICS
    ]


def _logged(task: TaskBoard) -> dict[str, Logged]:
    """The samples of comparable runs; documents only from the first."""
    found: dict[str, Logged] = {}
    needed = task.statistic.needs(task.leading) if task.statistic else ()
    for label, run in task.runs.items():
        if run.samples is not None and run.comparable:
            first = next(iter(found.values()), None)
            found[label] = read(run.samples, (*_metrics(task), *needed), first=first)
    return found


def _rank(task: TaskBoard, logged: dict[str, Logged]) -> None:
    """Ranks the models of a task.

    By tests where all runs have samples that give the metric; else by intervals.
    """
    scores = {
        label: run.scores[task.leading]
        for label, run in task.runs.items()
        if run.comparable and task.leading in run.scores
    }
    higher = task.leading not in task.lower
    systems = _systems(task, logged) if scores.keys() == logged.keys() else None
    if systems is not None and all(
        task.statistic or _is_mean(systems, label, score.value) for label, score in scores.items()
    ):
        task.tested = True
        task.ranks = ranks_by_tests(systems, higher=higher)
    else:
        task.ranks = ranks_by_intervals(scores, higher=higher)


def _systems(task: TaskBoard, logged: Mapping[str, Logged]) -> Systems | None:
    """All models on the documents that all of them have; None if these cannot be tested."""
    first = next(iter(logged.values()), Logged())
    keys: list[Key] = [
        key
        for key in first.asked
        if all(one.scores.get(key, {}).get(task.leading) is not None for one in logged.values())
    ]
    samples = {
        label: [Sample(key, first.asked[key].doc, "", "", _known(one.scores[key])) for key in keys]
        for label, one in logged.items()
    }
    if not keys or lacking(task.statistic, task.leading, [*chain(*samples.values())]):
        return None
    try:
        _, clusters = clusters_of(task.name, next(iter(samples.values())))
    except DataError as error:  # samples of an earlier version of the task
        _log.warning("%s; ranked by intervals", error)
        return None
    return Systems(task.leading, samples, clusters, task.statistic)


def _known(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: score for name, score in scores.items() if score is not None}


def _is_mean(systems: Systems, label: str, value: float | None) -> bool:
    mean = systems.value(label)
    return value is not None and mean is not None and abs(mean - value) < _SAME


def _with_bar(tasks: Sequence[TaskBoard], progress: bool | None) -> Iterator[TaskBoard]:  # noqa: FBT001
    from tqdm import tqdm

    disable = None if progress is None else not progress
    yield from tqdm(tasks, desc="leaderboard", unit="task", disable=disable)
