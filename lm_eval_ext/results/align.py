"""Runs on one task side by side: their documents matched, or why they cannot be compared."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import Run
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
    """Runs that cannot be compared."""


def align(
    runs: Mapping[str, Run],
    *,
    across_settings: bool = False,
    read: "Callable[[Run], DataFrame]" = rows,
) -> "tuple[dict[str, DataFrame], dict[str, DataError]]":
    """The long tables of the runs on a task that measured the same, and why others are left out.

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
    most = max(groups, key=len, default=[])
    for name in tables:
        if name not in most and (why := differ(most[0], name)):
            refused[name] = why
    return {name: tables[name] for name in most}, refused


def _differ(
    runs: Mapping[str, Run], first: "DataFrame", second: "DataFrame", *, across_settings: bool
) -> RefusedError | None:
    """Why two runs cannot be compared, if they cannot."""
    names = f"{next(iter(runs.values())).task}: {' and '.join(runs)}"
    free = FREE | SETTINGS if across_settings else FREE
    one, two = (parts_of(run.signature, free) for run in runs.values())
    parts = [
        f"{key} ({one.get(key, 'none')} / {two.get(key, 'none')})"
        for key in dict.fromkeys([*one, *two])
        if one.get(key) != two.get(key)
    ]
    if parts:
        what = f"did not measure the same; their signatures differ in {', '.join(parts)}"
        return RefusedError(f"{names} {what}")
    keys = [FILTER, DOCUMENT]
    asked = (own[[*keys, "target", "prompt"]].drop_duplicates(keys) for own in (first, second))
    both = next(asked).merge(next(asked), on=keys)
    if both.empty:
        return RefusedError(f"{names} share no document")
    for what, column in {"right answers": "target", "prompts": "prompt"}.items():
        different = both[both[f"{column}_x"] != both[f"{column}_y"]]
        if len(different) and not (across_settings and column == "prompt"):
            document = f"(doc_hash {different[DOCUMENT].iloc[0][:12]}…)"
            return RefusedError(f"{names} had different {what} for the same document {document}")
    return None


def align_tasks(runs: Mapping[str, Run]) -> "dict[str, DataFrame]":
    """The long tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Args:
        runs: By task.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    first, second = runs
    found = {}
    for task, run in runs.items():
        found[task] = read = rows(run, items=run.card.item if run.card else ())
        counts = read.groupby(DOCUMENT)["doc_hash"].nunique()
        if "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {first} and {second} cannot be matched one to one by "
                "their items",
            )
    if not set(found[first][DOCUMENT]) & set(found[second][DOCUMENT]):
        raise DataError(f"{first} and {second} are not about the same items")
    return found


def parts_of(signature: str, free: frozenset[str] = FREE) -> dict[str, str]:
    """The parts of a signature that may not differ; of the version the number before the dot."""
    parts = {key: value for key, _, value in (one.partition(":") for one in signature.split("|"))}
    parts["version"] = parts["version"].partition(".")[0]
    return {key: value for key, value in parts.items() if key not in free}


def majority_setup(runs: Mapping[str, Run]) -> frozenset[str]:
    """The runs that were asked what most were; of as many, those of the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    measured = {
        name: (
            run.is_whole,
            run.documents[1],
            *parts_of(run.signature).items(),
        )
        for name, run in runs.items()
    }
    counts = Counter(measured.values())
    most = max(
        measured.values(), key=lambda one: (counts[one] > 1, one[0], counts[one]), default=()
    )
    return frozenset(name for name, one in measured.items() if one == most)
