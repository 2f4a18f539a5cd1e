"""Matches the documents of several runs, or says why they cannot be compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.cards import card_of
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.samples import Sample, read_samples

FREE = frozenset({"docs", "samples", "lm-eval-ext", "lm-eval", "chat", "answers"})
"""Parts of a signature that may differ: the number of documents (those that all runs have are
compared), the programs' versions (docs/signatures.md), and a chat template (with how answers are
read after it), which shows in the prompts."""

SETTINGS = frozenset({"config", "system", "multiturn", "instruction", "stops"})
"""Parts that may differ, and with them the prompts, under ``--across-settings``."""

DOCUMENT = "document"
"""The cluster unit of a task that isn't ours: each document by itself."""


class RefusedError(DataError):
    """Runs that cannot be compared, with their signatures by the run's name."""

    def __init__(self, message: str, signatures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.signatures = dict(signatures)


@dataclass(frozen=True)
class Aligned:
    """The documents that all runs have.

    Attributes:
        samples: By run, then by filter; the same documents in the same order everywhere.
        everything: All samples of each run, whether others have them or not.
    """

    samples: Mapping[str, Mapping[str, Sequence[Sample]]]
    everything: Mapping[str, Mapping[str, Sequence[Sample]]]


def align(task: str, runs: Mapping[str, ResultsFile], *, across_settings: bool = False) -> Aligned:
    """Aligns the runs of several models on one task by lm-eval's hashes of documents.

    With ``across_settings`` prompts may differ, and the parts of signatures in ``SETTINGS``.

    Raises:
        RefusedError: If the runs did not measure the same thing, or share no document.
        DataError: If samples are missing or cannot be read.
    """
    signatures = {name: results.signature(task) for name, results in runs.items()}
    _check_signatures(signatures, FREE | SETTINGS if across_settings else FREE)
    read = {name: read_samples(results, task) for name, results in runs.items()}
    first = next(iter(read))
    filters = [name for name in read[first] if all(name in other for other in read.values())]
    keys = {
        name: [key for key in read[first][name] if all(key in one[name] for one in read.values())]
        for name in filters
    }
    if not any(keys.values()):
        raise RefusedError(f"{task}: {' and '.join(runs)} share no document", signatures)
    for name, other in read.items():
        for filter_name in filters:
            for key in keys[filter_name]:
                one, two = read[first][filter_name][key], other[filter_name][key]
                if one.target != two.target:
                    what = "right answers"
                elif one.prompt != two.prompt and not across_settings:
                    what = "prompts"
                else:
                    continue
                raise RefusedError(
                    f"{task}: {first} and {name} had different {what} for the same document "
                    f"(doc_hash {key[0][:12]}…)",
                    {first: signatures[first], name: signatures[name]},
                )
    samples = {
        name: {one: [run[one][key] for key in keys[one]] for one in filters}
        for name, run in read.items()
    }
    everything = {name: _lists(run) for name, run in read.items()}
    return Aligned(samples, everything)


def align_tasks(first: tuple[str, ResultsFile], second: tuple[str, ResultsFile]) -> Aligned:
    """Aligns two tasks of one benchmark by the items that their documents ask about.

    Prompts may differ: such a comparison is about that.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    signatures = {task: run.signature(task) for task, run in (first, second)}
    by_item: dict[str, dict[str, dict[tuple[str, ...], Sample]]] = {}
    for task, run in (first, second):
        by_item[task] = {}
        for name, logged in read_samples(run, task).items():
            items = {_item(task, sample.doc): sample for sample in logged.values()}
            if () in items or len(items) != len(logged):
                raise RefusedError(
                    f"{task}: the documents of {first[0]} and {second[0]} cannot be matched one to "
                    "one by their items",
                    signatures,
                )
            by_item[task][name] = items
    one, two = by_item[first[0]], by_item[second[0]]
    filters = [name for name in one if name in two]
    keys = {name: [item for item in one[name] if item in two[name]] for name in filters}
    if not any(keys.values()):
        raise RefusedError(f"{first[0]} and {second[0]} are not about the same items", signatures)
    samples = {
        task: {name: [found[name][item] for item in keys[name]] for name in filters}
        for task, found in by_item.items()
    }
    return Aligned(samples, {task: _lists(found) for task, found in by_item.items()})


def _lists(read: Mapping[str, Mapping[Any, Sample]]) -> dict[str, list[Sample]]:
    return {name: list(samples.values()) for name, samples in read.items()}


def _item(task: str, doc: Mapping[str, Any]) -> tuple[str, ...]:
    """A document's item, identified as in the other tasks of its benchmark; () if unknown."""
    card = card_of(task)
    columns = card.item if card else ()
    return tuple(str(doc[one]) for one in columns) if all(one in doc for one in columns) else ()


def clusters_of(task: str, samples: Sequence[Sample]) -> tuple[str, list[str]]:
    """What the documents are clustered by, and the cluster of each.

    Raises:
        DataError: If a logged document does not have the column that the card names.
    """
    documents = [f"{digest} {place}" for digest, place in (sample.key for sample in samples)]
    card = card_of(task)
    if card is None:
        return DOCUMENT, documents
    cluster = card.cluster
    if any(cluster.column not in sample.doc for sample in samples):
        raise DataError(
            f"{task}: a logged document has no {cluster.column!r}, which names its "
            f"{cluster.unit}; were the samples made by another version of the task?"
        )
    own = card.asks_own(task)
    names = [cluster.column, *(one.column for one in cluster.own_within if own)]
    columns = {name: [sample.doc[name] for sample in samples] for name in names}
    level, found = cluster.of(columns, own=own)
    if cluster.documents_within and len(set(found)) == 1:
        return DOCUMENT, documents
    return cluster.unit_at(level), found


def parts_of(signature: str) -> dict[str, str]:
    """The parts of a signature; of the version only the number before the dot."""
    parts = {key: value for key, _, value in (one.partition(":") for one in signature.split("|"))}
    if "version" in parts:
        parts["version"] = parts["version"].partition(".")[0]
    return parts


def usual(task: str, runs: Mapping[str, ResultsFile]) -> frozenset[str]:
    """The runs whose signature and documents are those of most; of as many, those of the first."""
    measured = {}
    for name, run in runs.items():
        parts = parts_of(run.signature(task))
        kept = (f"{key}:{value}" for key, value in parts.items() if key not in FREE)
        measured[name] = (*kept, str(run.documents(task)))
    counts = Counter(measured.values())
    most = max(measured.values(), key=lambda one: counts[one], default=())
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
