"""Runs on one task side by side: their documents matched, or why they cannot be compared."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.setup_differences import CHAT, differences_in_words
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


ACROSS_SETTINGS = "--across-settings compares models with their settings"
"""What to do about settings that differ."""


class RefusedError(DataError):
    """Runs that cannot be compared."""


def align(
    runs: Mapping[str, Run],
    *,
    across_settings: bool = False,
    read: "Callable[[Run], DataFrame]" = rows,
) -> "tuple[dict[str, DataFrame], dict[str, DataError]]":
    """Return the tables of the runs on a task that measured the same, and why others are left out.

    Documents are matched by lm-eval's hashes; those that only some runs have stay.

    Args:
        runs: By model. If they differ, the largest group that measured the same is taken.
        across_settings: Prompts may differ, and the parts of signatures in ``SETTINGS``.
        read: Reads the long table of a run.

    Returns:
        The tables; and by model an error, a :class:`RefusedError` where it measured something else.
    """
    tables: dict[str, DataFrame] = {}
    refused: dict[str, DataError] = {}
    groups: list[list[str]] = []

    def differ(first: str, second: str) -> RefusedError | None:
        both = {name: runs[name] for name in (first, second)}
        return _differ(both, tables[first], tables[second], across_settings=across_settings)

    for name, run in runs.items():
        try:
            tables[name] = read(run)
        except DataError as error:
            refused[name] = error
            continue
        for group in groups:
            if differ(group[0], name) is None:
                group.append(name)
                break
        else:
            groups.append([name])
    largest = max(groups, key=len, default=[])
    for name in tables:
        if name in largest:
            continue
        problem = differ(largest[0], name)
        if problem is not None:
            refused[name] = problem
    return {name: tables[name] for name in largest}, refused


def _differ(
    runs: Mapping[str, Run], first: "DataFrame", second: "DataFrame", *, across_settings: bool
) -> RefusedError | None:
    """Return why two runs cannot be compared; None if they can."""
    run, other_run = runs.values()
    names = f"{run.task}: {' and '.join(runs)}"
    parts = _different_parts(run, other_run, FREE | SETTINGS if across_settings else FREE)
    if parts:
        words = differences_in_words(run, other_run, parts)
        problem = f"{names} did not measure the same: {words}"
        if parts.keys() <= SETTINGS:
            problem += f"; {ACROSS_SETTINGS}"
        return RefusedError(problem)
    keys = [FILTER, DOCUMENT]
    texts = [table[[*keys, "target", "prompt"]].drop_duplicates(keys) for table in (first, second)]
    both = texts[0].merge(texts[1], on=keys)
    if both.empty:
        return RefusedError(f"{names} share no document")
    columns = {"right answers": "target"}
    if not across_settings:
        columns["prompts"] = "prompt"
    for what, column in columns.items():
        different = both[both[f"{column}_x"] != both[f"{column}_y"]]
        if different.empty:
            continue
        document = f"(doc_hash {different[DOCUMENT].iloc[0][:12]}…)"
        problem = f"{names} had different {what} for the same document {document}"
        if column == "prompt":
            chat = _different_parts(run, other_run, frozenset())
            chat = {name: values for name, values in chat.items() if name == CHAT}
            if chat:
                problem += f": {differences_in_words(run, other_run, chat)}"
            problem += f"; {ACROSS_SETTINGS}"
        return RefusedError(problem)
    return None


def _different_parts(first: Run, second: Run, free: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Return the parts of two signatures that differ, each with both values."""
    one, other = parts_of(first.signature, free), parts_of(second.signature, free)
    different = {}
    for name in dict.fromkeys([*one, *other]):
        values = one.get(name, "none"), other.get(name, "none")
        if values[0] != values[1]:
            different[name] = values
    return different


def align_tasks(runs: Mapping[str, Run]) -> "dict[str, DataFrame]":
    """Return the tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Args:
        runs: By task.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    first, second = runs
    tables = {}
    for task, run in runs.items():
        table = rows(run, items=run.card.item if run.card else ())
        tables[task] = table
        counts = table.groupby(DOCUMENT)["doc_hash"].nunique()
        if "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {first} and {second} cannot be matched one to one by "
                "their items",
            )
    if not set(tables[first][DOCUMENT]) & set(tables[second][DOCUMENT]):
        raise DataError(f"{first} and {second} are not about the same items")
    return tables


def parts_of(signature: str, free: frozenset[str] = FREE) -> dict[str, str]:
    """Return the parts of a signature that may not differ, with the version's first number."""
    parts = {}
    for part in signature.split("|"):
        key, _, value = part.partition(":")
        parts[key] = value
    parts["version"] = parts["version"].partition(".")[0]
    return {key: value for key, value in parts.items() if key not in free}


def majority_setup(runs: Mapping[str, Run]) -> frozenset[str]:
    """Return the runs that share the most common setup; ties go to the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    setups = {}
    for name, run in runs.items():
        setups[name] = run.is_whole, run.documents[1], *parts_of(run.signature).items()
    counts = Counter(setups.values())
    ranked = sorted(
        counts, key=lambda setup: (counts[setup] > 1, setup[0], counts[setup]), reverse=True
    )
    return frozenset(name for name, setup in setups.items() if setup == ranked[0])
