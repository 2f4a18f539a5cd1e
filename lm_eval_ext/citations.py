"""BibTeX of what a result rests on: the benchmark's paper, its data, lm-eval and this project.

The entries are in ``citations.bib``, the last two of lm-eval and this project. Cards name papers by
their URL, and declared data sources and cards name other works by key.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.data import sources
from lm_eval_ext.errors import OptionError, nearest


def bibtex(names: Iterable[str]) -> str:
    """The entries for tasks, groups or benchmarks, each once; lm-eval's and the project's last.

    Raises:
        OptionError: A name is none of ours.
    """
    entries = Path(__file__).with_name("citations.bib").read_text(encoding="utf-8").split("\n\n")
    found: list[str] = []
    for name in names:
        card, tasks = _find(name)
        cited = [card.paper.url] if card.paper else []
        for facts in map(card.tasks.__getitem__, tasks):
            cited += [*(sources()[source].cite for source in facts.sources), *facts.cites]
        found += [entry for one in cited for entry in entries if one in entry]
    return "\n\n".join(dict.fromkeys([*found, *entries[-2:]]))


def _find(name: str) -> tuple[Card, Sequence[str]]:
    """The card, and the tasks that a name stands for."""
    for card in cards().values():
        if name in card.tasks:
            return card, [name]
        if name in card.groups:
            return card, card.groups[name]
        if name == card.name:
            return card, list(card.tasks)
    names = [one for card in cards().values() for one in (card.name, *card.tasks, *card.groups)]
    hint = nearest(name, names) or "; lm-eval-ext tasks lists all"
    raise OptionError(f"no task, group or benchmark {name!r}{hint}")
