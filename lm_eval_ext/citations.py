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
    """Return the entries for tasks, groups or benchmarks, each once, then lm-eval's and ours.

    Raises:
        OptionError: A name is none of ours.
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
        if name not in tasks_by_name:
            hint = nearest(name, tasks_by_name) or "; lm-eval-ext tasks lists all"
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
