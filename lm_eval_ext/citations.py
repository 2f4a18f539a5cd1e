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
    """Return the entries for tasks, groups or benchmarks, each once, and then the two last ones.

    Raises:
        OptionError: A name is none of ours.
    """
    entries = Path(__file__).with_name("citations.bib").read_text(encoding="utf-8").split("\n\n")
    known: dict[str, tuple[Card, Sequence[str]]] = {}
    for card in cards().values():
        known |= {card.name: (card, list(card.tasks))}
        known |= {group: (card, members) for group, members in card.groups.items()}
        known |= {task: (card, [task]) for task in card.tasks}
    cited: list[str] = []
    for name in names:
        if name not in known:
            hint = nearest(name, known) or "; lm-eval-ext tasks lists all"
            raise OptionError(f"no task, group or benchmark {name!r}{hint}")
        card, tasks = known[name]
        works = [card.paper.url] if card.paper else []
        for task in tasks:
            facts = card.tasks[task]
            works += [sources()[source].cite for source in facts.sources]
            works += facts.cites
        for work in works:
            cited += [entry for entry in entries if work in entry]
    return "\n\n".join(dict.fromkeys([*cited, *entries[-2:]]))
