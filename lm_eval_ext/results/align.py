"""Runs on one task side by side: their documents matched, or why they cannot be compared."""

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
) -> "tuple[dict[str, DataFrame], dict[str, DataError]]":
    """The long tables of the runs on a task that measured the same, and why others are left out.

    Documents are matched by lm-eval's hashes; those that only some runs have stay.

    Args:
        task: Its name.
        runs: By model. If they differ, the largest group that measured the same is taken.
        across_settings: Prompts may differ, and the parts of signatures in ``SETTINGS``.
        read: Reads the long table of a run and task.

    Returns:
        The tables; and by model an error, a :class:`RefusedError` where it measured something else.
    """
    tables: dict[str, DataFrame] = {}
    refused: dict[str, DataError] = {}
    groups: list[list[str]] = []

    def differ(first: str, second: str) -> RefusedError | None:
        return _differ(
            task,
            {name: runs[name].signature(task) for name in (first, second)},
            (tables[first], tables[second]),
            across_settings=across_settings,
        )

    for name, run in runs.items():
        try:
            tables[name] = read(run, task)
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
    task: str,
    signatures: Mapping[str, str],
    tables: "tuple[DataFrame, DataFrame]",
    *,
    across_settings: bool,
) -> RefusedError | None:
    """Why two runs cannot be compared, if they cannot."""
    names = " and ".join(signatures)
    free = FREE | SETTINGS if across_settings else FREE
    one, two = (parts_of(signature, free) for signature in signatures.values())
    parts = [
        f"{key} ({one.get(key, 'none')} / {two.get(key, 'none')})"
        for key in dict.fromkeys([*one, *two])
        if one.get(key) != two.get(key)
    ]
    if parts:
        what = f"did not measure the same; their signatures differ in {', '.join(parts)}"
        return RefusedError(f"{task}: {names} {what}", signatures)
    keys = [FILTER, DOCUMENT]
    first, second = (own[[*keys, "target", "prompt"]].drop_duplicates(keys) for own in tables)
    both = first.merge(second, on=keys)
    if both.empty:
        return RefusedError(f"{task}: {names} share no document", signatures)
    for what, column in {"right answers": "target", "prompts": "prompt"}.items():
        different = both[both[f"{column}_x"] != both[f"{column}_y"]]
        if len(different) and not (across_settings and column == "prompt"):
            document = f"(doc_hash {different[DOCUMENT].iloc[0][:12]}…)"
            return RefusedError(
                f"{task}: {names} had different {what} for the same document {document}", signatures
            )
    return None


def align_tasks(runs: Mapping[str, ResultsFile]) -> "dict[str, DataFrame]":
    """The long tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Args:
        runs: By task.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    signatures = {task: run.signature(task) for task, run in runs.items()}
    first, second = runs
    found = {}
    for task, run in runs.items():
        card = run.card(task)
        found[task] = read = rows(run, task, items=card.item if card else ())
        counts = read.groupby(DOCUMENT)["doc_hash"].nunique()
        if "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {first} and {second} cannot be matched one to one by "
                "their items",
                signatures,
            )
    if not set(found[first][DOCUMENT]) & set(found[second][DOCUMENT]):
        raise DataError(f"{first} and {second} are not about the same items")
    return found


def parts_of(signature: str, free: frozenset[str] = FREE) -> dict[str, str]:
    """The parts of a signature that may not differ; of the version the number before the dot."""
    parts = {key: value for key, _, value in (one.partition(":") for one in signature.split("|"))}
    parts["version"] = parts["version"].partition(".")[0]
    return {key: value for key, value in parts.items() if key not in free}


def usual(task: str, runs: Mapping[str, ResultsFile]) -> frozenset[str]:
    """The runs that were asked what most were; of as many, those of the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    measured = {
        name: (
            run.is_whole(task),
            run.documents(task)[1],
            *parts_of(run.signature(task)).items(),
        )
        for name, run in runs.items()
    }
    counts = Counter(measured.values())
    most = max(
        measured.values(), key=lambda one: (counts[one] > 1, one[0], counts[one]), default=()
    )
    return frozenset(name for name, one in measured.items() if one == most)
