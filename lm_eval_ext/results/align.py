"""Matches the documents of several runs, or says why they cannot be compared."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import DOCUMENT

if TYPE_CHECKING:
    from pandas import DataFrame

FILTER = "filter"

FREE = frozenset({"docs", "samples", "lm-eval-ext", "lm-eval", "chat", "answers"})
"""Parts of a signature that may differ: the number of documents (those that all runs have are
compared), the programs' versions (docs/discovery.md), and a chat template (with how answers are
read after it), which shows in the prompts."""

SETTINGS = frozenset({"config", "system", "multiturn", "instruction", "stops"})
"""Parts that may differ, and with them the prompts, under ``--across-settings``."""


class RefusedError(DataError):
    """Runs that cannot be compared, with their signatures by the run's name."""

    def __init__(self, message: str, signatures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.signatures = dict(signatures)


def align(
    task: str,
    runs: Mapping[str, ResultsFile],
    *,
    across_settings: bool = False,
    read: "Callable[[ResultsFile, str], DataFrame]" = rows,
) -> "dict[str, DataFrame]":
    """The long table of each run on a task, once they are known to have measured the same.

    Documents are matched by lm-eval's hashes; those that only some runs have stay. With
    ``across_settings`` prompts may differ, and the parts of signatures in ``SETTINGS``. ``read``
    reads the long table of a run and task.

    Raises:
        RefusedError: If the runs did not measure the same thing, or share no document.
        DataError: If samples are missing or cannot be read.
    """
    signatures = {name: results.signature(task) for name, results in runs.items()}
    _check_signatures(signatures, FREE | SETTINGS if across_settings else FREE)
    found = {name: read(results, task) for name, results in runs.items()}
    asked = {name: _asked(table) for name, table in found.items()}
    (first, one), *others = asked.items()
    for name, two in others:
        both = [key for key in one if key in two]
        if not both:
            raise RefusedError(f"{task}: {first} and {name} share no document", signatures)
        for place, what in enumerate(("right answers", "prompts")):
            differ = [key[1] for key in both if one[key][place] != two[key][place]]
            if differ and not (across_settings and what == "prompts"):
                raise RefusedError(
                    f"{task}: {first} and {name} had different {what} for the same document "
                    f"(doc_hash {differ[0][:12]}…)",
                    {first: signatures[first], name: signatures[name]},
                )
    return found


def _asked(table: "DataFrame") -> dict[tuple[str, str], tuple[str, str]]:
    """By filter and document, the right answer and the prompt."""
    keys, values = (
        zip(*(table[name].tolist() for name in names), strict=True)
        for names in ((FILTER, DOCUMENT), ("target", "prompt"))
    )
    return dict(zip(keys, values, strict=True))


def align_tasks(
    first: tuple[str, ResultsFile], second: tuple[str, ResultsFile]
) -> "dict[str, DataFrame]":
    """The long tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    signatures = {task: run.signature(task) for task, run in (first, second)}
    found = {}
    for task, run in (first, second):
        card = run.card(task)
        read = rows(run, task, items=card.item if card else ())
        counts = read.groupby(DOCUMENT)["doc_hash"].nunique() if len(read) else None
        if counts is None or "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {first[0]} and {second[0]} cannot be matched one to one "
                "by their items",
                signatures,
            )
        found[task] = read
    one, two = found.values()
    if not set(one[DOCUMENT]) & set(two[DOCUMENT]):
        raise RefusedError(f"{first[0]} and {second[0]} are not about the same items", signatures)
    return found


def parts_of(signature: str) -> dict[str, str]:
    """The parts of a signature; of the version only the number before the dot."""
    parts = {key: value for key, _, value in (one.partition(":") for one in signature.split("|"))}
    if "version" in parts:
        parts["version"] = parts["version"].partition(".")[0]
    return parts


def usual(task: str, runs: Mapping[str, ResultsFile]) -> frozenset[str]:
    """The runs that were asked what most were; of as many, those of the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    measured = {}
    for name, run in runs.items():
        parts = parts_of(run.signature(task))
        kept = (f"{key}:{value}" for key, value in parts.items() if key not in FREE)
        measured[name] = (*kept, str(run.documents(task)[1]), str(run.is_whole(task)))
    counts = Counter(measured.values())
    most = max(
        measured.values(), key=lambda one: (counts[one] > 1, one[-1], counts[one]), default=()
    )
    return frozenset(name for name, one in measured.items() if one == most)


def _check_signatures(signatures: Mapping[str, str], free: frozenset[str]) -> None:
    (first, signature), *others = signatures.items()
    one = parts_of(signature)
    for name, other in others:
        two = parts_of(other)
        differ = [
            f"{key} ({one.get(key, 'none')} / {two.get(key, 'none')})"
            for key in dict.fromkeys([*one, *two])
            if key not in free and one.get(key) != two.get(key)
        ]
        if differ:
            raise RefusedError(
                f"{one.get('task', '?')}: {first} and {name} did not measure the same; "
                f"their signatures differ in {', '.join(differ)}",
                {first: signature, name: other},
            )
