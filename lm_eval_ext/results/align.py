"""Runs on one task side by side: their documents matched, or why they cannot be compared."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.setup_differences import CHAT, DOCUMENTS, settings_of_models
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
"""Parts that may differ under ``--across-settings``, as may the prompts then."""


ACROSS_SETTINGS = "--across-settings compares models with their settings"
"""What to do about settings that differ."""


@dataclass(frozen=True)
class SetupDifference:
    """What differs between the runs of two models on a task.

    Attributes:
        words: The settings of each model that differ.
        is_about_settings: Whether ``--across-settings`` compares the two all the same.
    """

    words: str
    is_about_settings: bool


OTHER_PROMPTS = "different prompts"
"""What differs where signatures are the same."""


class RefusedError(DataError):
    """Runs that cannot be compared.

    Attributes:
        difference: What differs between two of them; None where the documents cannot be matched.
    """

    def __init__(self, problem: str, difference: SetupDifference | None = None) -> None:
        super().__init__(problem)
        self.difference = difference


def across_settings_command(arguments: str) -> str:
    """Return the command that compares models with their settings, for a user to copy.

    Args:
        arguments: The folders of the results and the options, as words of a command.
    """
    return f"lm-eval-ext compare {arguments} --across-settings"


def align(
    runs: Mapping[str, Run],
    *,
    across_settings: bool = False,
    read: "Callable[[Run], DataFrame]" = rows,
) -> "tuple[dict[str, DataFrame], dict[str, DataError]]":
    """Return the tables of the runs on a task that measured the same, and why others are left out.

    Documents are matched by lm-eval's hashes; those that only some runs have are kept.

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

    def problem_of(reference: str, name: str) -> RefusedError | None:
        pair = _RunPair(
            names=(reference, name),
            runs=(runs[reference], runs[name]),
            tables=(tables[reference], tables[name]),
            across_settings=across_settings,
        )
        return pair.problem()

    for name, run in runs.items():
        try:
            tables[name] = read(run)
        except DataError as error:
            refused[name] = error
            continue
        for group in groups:
            if problem_of(group[0], name) is None:
                group.append(name)
                break
        else:
            groups.append([name])
    largest = max(groups, key=len, default=[])
    for name in tables:
        if name in largest:
            continue
        problem = problem_of(largest[0], name)
        if problem is not None:
            refused[name] = problem
    return {name: tables[name] for name in largest}, refused


@dataclass(frozen=True)
class _RunPair:
    """Two runs on a task, with their models' names and their long tables.

    Attributes:
        names: The models.
        runs: Their runs.
        tables: Their long tables.
        across_settings: Prompts may differ, and the parts of signatures in ``SETTINGS``.
    """

    names: tuple[str, str]
    runs: tuple[Run, Run]
    tables: "tuple[DataFrame, DataFrame]"
    across_settings: bool

    @property
    def _runs_by_model(self) -> dict[str, Run]:
        return dict(zip(self.names, self.runs, strict=True))

    @property
    def _title(self) -> str:
        return f"{self.runs[0].task}: {' and '.join(self.names)}"

    def problem(self) -> RefusedError | None:
        """Return why the two cannot be compared; None if they can."""
        free = FREE | SETTINGS if self.across_settings else FREE
        different = _different_parts(*self.runs, free)
        if different:
            is_about_settings = different.keys() <= SETTINGS
            if is_about_settings:  # then the chat template may matter, too
                free = free - {CHAT}
            words = settings_in_words(self._runs_by_model, free)
            problem = f"{self._title} did not measure the same ({words})"
            if is_about_settings:
                problem += f"; {ACROSS_SETTINGS}"
            return RefusedError(problem, SetupDifference(words, is_about_settings))
        return self._document_problem()

    def _document_problem(self) -> RefusedError | None:
        """Return what differs of the documents that both runs have."""
        keys = [FILTER, DOCUMENT]
        table, other_table = self.tables
        texts = table[[*keys, "target", "prompt"]].drop_duplicates(keys)
        other_texts = other_table[[*keys, "target", "prompt"]].drop_duplicates(keys)
        shared = texts.merge(other_texts, on=keys)
        if shared.empty:
            return RefusedError(f"{self._title} share no document")
        document = _first_different(shared, "target")
        if document:
            return RefusedError(
                f"{self._title} had different right answers for the same document {document}"
            )
        if self.across_settings:
            return None
        document = _first_different(shared, "prompt")
        if not document:
            return None
        problem = f"{self._title} had different prompts for the same document {document}"
        words = settings_in_words(self._runs_by_model, FREE - {CHAT})
        if words:
            problem += f" ({words})"
        difference = SetupDifference(words or OTHER_PROMPTS, is_about_settings=True)
        return RefusedError(f"{problem}; {ACROSS_SETTINGS}", difference)


def settings_remark(runs: Mapping[str, Run], tables: "Mapping[str, DataFrame]") -> str:
    """Return how the settings of runs differ that were compared all the same; "" if they do not.

    Args:
        runs: By model.
        tables: The long tables of those that were compared, by model.
    """
    compared = {name: runs[name] for name in tables}
    words = settings_in_words(compared, FREE - {CHAT})
    if not words and _has_different_prompts(compared, tables):
        words = OTHER_PROMPTS
    if not words:
        return ""
    task = next(iter(compared.values())).task
    return f"{task}: models are compared with their settings ({words})"


def _has_different_prompts(runs: Mapping[str, Run], tables: "Mapping[str, DataFrame]") -> bool:
    """Return whether the prompts of a document differ between runs of the same settings."""
    reference, *other_models = tables
    for name in other_models:
        pair = _RunPair(
            names=(reference, name),
            runs=(runs[reference], runs[name]),
            tables=(tables[reference], tables[name]),
            across_settings=False,
        )
        if pair.problem() is not None:
            return True
    return False


def settings_in_words(
    runs: Mapping[str, Run],
    free: frozenset[str] = FREE - {CHAT},
    *,
    with_documents: bool = False,
) -> str:
    """Return which settings of the models differ on a task, behind the models that have them.

    Args:
        runs: By model.
        free: The parts of signatures that do not count. Without other parts, a chat template
            counts, because it shows in the prompts.
        with_documents: Whether the number of documents that the task has counts.

    Returns:
        "" if nothing differs.
    """
    parts = {}
    for model, run in runs.items():
        parts[model] = parts_of(run.signature, free)
        if with_documents:
            parts[model][DOCUMENTS] = f"{run.documents[1]:,}"
    return settings_of_models(runs, parts)


def is_only_about_settings(run: Run, other_run: Run) -> bool:
    """Return whether the setups of two models differ in what ``--across-settings`` lets differ."""
    different = _different_parts(run, other_run, FREE - {CHAT})
    return bool(different) and different.keys() <= SETTINGS | {CHAT}


def _different_parts(run: Run, other_run: Run, free: frozenset[str]) -> dict[str, tuple[str, str]]:
    """Return the parts of the signatures that differ, each with both values."""
    values = parts_of(run.signature, free)
    other_values = parts_of(other_run.signature, free)
    different = {}
    for name in dict.fromkeys([*values, *other_values]):
        value, other_value = values.get(name, "none"), other_values.get(name, "none")
        if value != other_value:
            different[name] = (value, other_value)
    return different


def _first_different(shared: "DataFrame", column: str) -> str:
    """Return the first document whose text differs between two runs; "" if there is none."""
    different = shared[shared[f"{column}_x"] != shared[f"{column}_y"]]
    if different.empty:
        return ""
    return f"(doc_hash {different[DOCUMENT].iloc[0][:12]}…)"


def align_tasks(runs: Mapping[str, Run]) -> "dict[str, DataFrame]":
    """Return the tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Args:
        runs: By task.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    tasks = " and ".join(runs)
    tables = {}
    for task, run in runs.items():
        items = run.card.item if run.card else ()
        table = rows(run, items=items)
        tables[task] = table
        counts = table.groupby(DOCUMENT)["doc_hash"].nunique()
        if "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {tasks} cannot be matched one to one by their items"
            )
    documents, other_documents = [set(table[DOCUMENT]) for table in tables.values()]
    if not documents & other_documents:
        raise DataError(f"{tasks} are not about the same items")
    return tables


def parts_of(signature: str, free: frozenset[str] = FREE) -> dict[str, str]:
    """Return the parts of a signature that may not differ, with the version's first number."""
    values = {}
    for key_and_value in signature.split("|"):
        key, _, value = key_and_value.partition(":")
        if key not in free:
            values[key] = value
    if "version" in values:
        values["version"] = values["version"].partition(".")[0]
    return values


def majority_setup(runs: Mapping[str, Run]) -> frozenset[str]:
    """Return the runs that share the most common setup; ties go to the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    setups: dict[str, _Setup] = {}
    for name, run in runs.items():
        _, total = run.documents
        signature = tuple(parts_of(run.signature).items())
        setups[name] = _Setup(run.is_whole, total, signature)
    counts = Counter(setups.values())

    def rank(setup: _Setup) -> tuple[bool, bool, int]:
        return counts[setup] > 1, setup.is_whole, counts[setup]

    majority = max(counts, key=rank)
    return frozenset(name for name, setup in setups.items() if setup == majority)


@dataclass(frozen=True)
class _Setup:
    """What runs must share to be compared: how many documents were asked, and how."""

    is_whole: bool
    documents: int
    signature: tuple[tuple[str, str], ...]
