"""What the authors recorded of models: the log-probability of each continuation.

A row of their files has a context's id, and the pronoun or the order of nouns that tell its
continuations apart. With two nouns, the labels of item 15 were exchanged in the stimuli after most
models had been recorded (docs/fidelity.md); both readings are converted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from lm_eval_ext.benchmarks.discourse_entities.load import PAIRS, SINGLE, Document, dataset
from lm_eval_ext.data import find_source, require_all
from lm_eval_ext.data.recordings import (
    RecordedSystem,
    Recordings,
    ResponseRow,
    folder_in,
    read_table,
)
from lm_eval_ext.errors import DataError

SOURCE = "discourse_entities_recorded"

Experiment: TypeAlias = Literal["single", "pairs"]

EXPERIMENTS: tuple[Experiment, ...] = ("single", "pairs")

AUTHORS_NAMES: Mapping[Experiment, str] = {
    "single": "full_sentence_hand_written_stimuli",
    "pairs": "2nouns_full_sentence_hand_written_stimuli",
}
"""The beginning of the authors' names of files."""

PROCESSED = ".processed.csv"
EXCHANGED_ITEM = "15"
RECORDED_AFTER_THE_EXCHANGE = ("gpt2",)
"""The models whose recordings have the labels of today's stimuli."""


@dataclass(frozen=True)
class ContinuationKey:
    """What identifies a recorded continuation.

    Attributes:
        context: The id of the context.
        kind: The pronoun of the continuation, or the order of nouns.
        is_expected: Whether it is labelled as expected; False with one noun.
    """

    context: str
    kind: str
    is_expected: bool = False


Logprobs: TypeAlias = Mapping[ContinuationKey, float]


def convert(clone: Path | None) -> Recordings:
    """Convert the runs of a clone of the authors' repository, or those of the declared source.

    Raises:
        DataError: A file is missing or not as expected.
    """
    files = _declared_files() if clone is None else _files_of_clone(clone)
    documents: dict[Experiment, Sequence[Document]] = {}
    for experiment in EXPERIMENTS:
        documents[experiment] = list(dataset(discourse_entities_set=experiment)["test"])
    systems: list[RecordedSystem] = []
    for model in sorted({model for _, model in files}):
        logprobs: dict[Experiment, Logprobs] = {}
        for experiment in EXPERIMENTS:
            if (experiment, model) not in files:
                raise DataError(f"{model}: only one of {' and '.join(EXPERIMENTS)} was recorded")
            logprobs[experiment] = _read(files[experiment, model], experiment)
        systems.append(_system(model, documents, logprobs))
        if model not in RECORDED_AFTER_THE_EXCHANGE:
            logprobs["pairs"] = _with_exchanged_labels(logprobs["pairs"])
            systems.append(_system(f"{model}-item15-exchanged", documents, logprobs))
    tasks = [f"discourse_entities_{experiment}" for experiment in EXPERIMENTS]
    return Recordings(systems, tasks)


def _system(
    name: str,
    documents: Mapping[Experiment, Sequence[Document]],
    logprobs: Mapping[Experiment, Logprobs],
) -> RecordedSystem:
    """Return a system with its responses in both experiments."""
    rows: list[ResponseRow] = []
    for experiment in EXPERIMENTS:
        rows += _response_rows(experiment, documents[experiment], logprobs[experiment], name)
    return RecordedSystem(name, rows)


def _declared_files() -> dict[tuple[Experiment, str], Path]:
    files: dict[tuple[Experiment, str], Path] = {}
    for file in require_all(SOURCE).files:
        for experiment in EXPERIMENTS:
            if file.name.startswith(f"{experiment}_"):
                files[experiment, file.name.removeprefix(f"{experiment}_")] = file.path
    return files


def _files_of_clone(clone: Path) -> dict[tuple[Experiment, str], Path]:
    folder = folder_in(clone, "results", find_source(SOURCE).homepage)
    files: dict[tuple[Experiment, str], Path] = {}
    for experiment, name in AUTHORS_NAMES.items():
        for file in sorted(folder.glob(f"{name}.*{PROCESSED}")):
            model = file.name.removeprefix(f"{name}.").removesuffix(PROCESSED)
            files[experiment, model] = file
    if not files:
        raise DataError(f"{folder}: no {AUTHORS_NAMES['single']}.MODEL{PROCESSED}")
    return files


def _read(path: Path, experiment: Experiment) -> Logprobs:
    """Read a file of the authors'.

    Raises:
        DataError: The file is not as expected.
    """
    kind = "pronoun" if experiment == "single" else "order"
    columns = ["id", kind, "continuation_log_prob"]
    if experiment == "pairs":
        columns.append("expected")
    logprobs: dict[ContinuationKey, float] = {}
    for row in read_table(path, columns):
        is_expected = experiment == "pairs" and row.cells["expected"] == "1"
        key = ContinuationKey(row.cells["id"], row.cells[kind], is_expected)
        if key in logprobs:
            raise DataError(f"{row.position}: {key.context} has this continuation already")
        logprobs[key] = row.number("continuation_log_prob")
    return logprobs


def _with_exchanged_labels(logprobs: Logprobs) -> Logprobs:
    """Exchange expected and unexpected continuations of item 15."""
    exchanged: dict[ContinuationKey, float] = {}
    for key, logprob in logprobs.items():
        is_expected = key.is_expected
        if key.context.startswith(f"{EXCHANGED_ITEM}_"):
            is_expected = not is_expected
        exchanged[ContinuationKey(key.context, key.kind, is_expected)] = logprob
    return exchanged


def _response_rows(
    experiment: Experiment, documents: Sequence[Document], logprobs: Logprobs, model: str
) -> Iterator[ResponseRow]:
    """Yield a row for each request of the documents.

    Raises:
        DataError: A continuation was not recorded.
    """
    keys_of: Callable[[Document], list[ContinuationKey]] = _keys_of_pairs
    if experiment == "single":
        keys_of = _keys_of_single
    for document in documents:
        for index, key in enumerate(keys_of(document)):
            if key not in logprobs:
                raise DataError(
                    f"{model}: no continuation {key.kind} of {key.context} was recorded"
                )
            response = (logprobs[key], False)
            yield {"doc": {"id": document["id"]}, "idx": index, "response": response}


def _keys_of_single(document: Document) -> list[ContinuationKey]:
    """Return the keys of a document with one noun, in the order of its requests."""
    keys: list[ContinuationKey] = []
    for context_type in SINGLE[str(document["pair"])]:
        for pronoun in ("it", "subj"):
            keys.append(ContinuationKey(f"{document['item']}_{context_type}", pronoun))
    return keys


def _keys_of_pairs(document: Document) -> list[ContinuationKey]:
    """Return the keys of a document with two nouns, in the order of its requests."""
    ending = "ref" if document["kind"] == "coref" else "nonref"
    first, second = PAIRS[str(document["pair"])]
    context_types = {"first": first, "second": second}
    keys: list[ContinuationKey] = []
    for clauses, nouns in zip(document["clauses"], document["nouns"], strict=True):
        context = f"{document['item']}_{context_types[clauses]}_{ending}"
        for is_expected in (True, False):
            keys.append(ContinuationKey(context, nouns, is_expected))
    return keys
