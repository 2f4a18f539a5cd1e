"""BibTeX of what a result rests on: the benchmark's paper, its data, lm-eval and this project.

The entries are in ``citations.bib``, the last two of lm-eval and this project. Cards name papers by
their URL, and declared data sources and cards name other works by key.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lm_eval_ext.cards import Card, Paper, cards
from lm_eval_ext.data import sources
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.harness.user_files import is_path, read_user_files
from lm_eval_ext.log import get_logger

_log = get_logger(__name__)


def bibtex(names: Iterable[str]) -> str:
    """Return the entries for tasks, groups or benchmarks, each once, then lm-eval's and ours.

    Args:
        names: Names of ours, and paths of users' task files or folders of them. The entry of a
            user's benchmark is made from the paper that its card names.

    Raises:
        OptionError: A name is none of ours, or no path of a task.
        DataError: A file cannot be read, or its card is malformed.
    """
    entries = Path(__file__).with_name("citations.bib").read_text(encoding="utf-8").split("\n\n")
    tasks_by_name: dict[str, tuple[Card, Sequence[str]]] = {}
    for card in cards().values():
        tasks_by_name[card.name] = (card, list(card.tasks))
        for group, members in card.groups.items():
            tasks_by_name[group] = (card, members)
        for task in card.tasks:
            tasks_by_name[task] = (card, [task])
    cited: list[str] = []
    for name in names:
        if name not in tasks_by_name and is_path(name):
            cited += _entries_of_user_files(Path(name), entries)
            continue
        if name not in tasks_by_name:
            hint = nearest(name, tasks_by_name)
            if not hint:
                hint = (
                    "; lm-eval-ext tasks lists all of ours, and for a benchmark of your own give "
                    "its task file"
                )
            raise OptionError(f"no task, group or benchmark {name!r}{hint}")
        card, tasks = tasks_by_name[name]
        works = [card.paper.url] if card.paper else []
        for task in tasks:
            facts = card.tasks[task]
            works += [sources()[source].cite for source in facts.sources]
            works += facts.cites
        for work in works:
            cited += [entry for entry in entries if work in entry]
    return "\n\n".join(dict.fromkeys([*cited, *entries[-2:]]))


def _entries_of_user_files(path: Path, entries: Sequence[str]) -> list[str]:
    """Return the entries of the benchmarks that a user's task files are of."""
    benchmarks: dict[str, Card] = {}
    for task in read_user_files(path).tasks:
        if task.card is not None:
            benchmarks[task.card.name] = task.card
        elif not task.members:
            _log.warning("%s: %s has no card, so nothing of it is cited", task.file, task.name)
    cited = []
    for name, card in benchmarks.items():
        if card.paper is None:
            _log.warning(
                "%s: the card of %s names no paper, so nothing of it is cited; add paper: "
                "{title: ..., authors: ..., venue: ..., url: ...}",
                path,
                name,
            )
        elif name in cards():
            cited += [entry for entry in entries if card.paper.url in entry]
        else:
            cited.append(_entry(name, card.paper))
    return cited


def _entry(key: str, paper: Paper) -> str:
    """Return the entry of a paper by what a card says about it."""
    authors = re.sub(r",\s*(?:and\s+)?|\s+and\s+", " and ", paper.authors)
    lines = [
        f"@misc{{{key},",
        f"  author = {{{authors}}},",
        f"  title = {{{{{paper.title}}}}},",
        f"  howpublished = {{{paper.venue}}},",
    ]
    year = re.search(r"\b(?:19|20)\d\d\b", paper.venue)
    if year:
        lines.append(f"  year = {{{year[0]}}},")
    lines += [f"  url = {{{paper.url}}},", "}"]
    return "\n".join(lines)
