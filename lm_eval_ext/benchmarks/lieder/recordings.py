"""What LIEDER's authors recorded of models: the log-probability of each token of each sentence.

In their repository, ``results/EXPERIMENT/EXPERIMENT_MODEL.csv`` has a row for each stimulus, in the
order of the stimuli, with its tokens (``John|Ġowns|...``) and their log-probabilities. The first
token has none. The declared source ``lieder_recorded`` has the sums over the tokens of each
continuation.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.benchmarks.lieder.load import read, split_stimulus, to_documents
from lm_eval_ext.benchmarks.lieder.records import Experiment
from lm_eval_ext.data import find_source, require, require_all
from lm_eval_ext.data.recordings import (
    AuthorsRow,
    RecordedSystem,
    Recordings,
    ResponseRow,
    folder_in,
    read_table,
)
from lm_eval_ext.errors import DataError
from lm_eval_ext.reading import lines_of
from lm_eval_ext.text import one_line

SOURCE = "lieder_recorded"
EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")
COLUMNS = ("id", "sent", "tokens", "logprobs")
COMPUTED = ("_summed", "_accuracy_ref", "_accuracy_nonref")
"""The ends of the names of files that the authors computed from those that are read here."""


@dataclass(frozen=True)
class RecordedSentence:
    """A continuation's log-probability after its context.

    Attributes:
        location: The file and the line, for errors.
        context: The first sentence.
        continuation: The second one, with the space before it.
        logprob: The sum over the tokens of the continuation.
    """

    location: str
    context: str
    continuation: str
    logprob: float


RecordedRuns: TypeAlias = Mapping[tuple[Experiment, str], Sequence[RecordedSentence]]
"""Recorded sentences in the order of the stimuli, by experiment and model."""


def convert(clone: Path | None) -> Recordings:
    """Convert all runs of a clone of the authors' repository, or those of the declared source.

    A run that is not of the declared stimuli is left out, with a remark.

    Raises:
        DataError: A file is missing, or no run of an experiment is as expected.
    """
    rows: dict[str, list[ResponseRow]] = defaultdict(list)
    converted: dict[tuple[Experiment, str], Sequence[RecordedSentence]] = {}
    remarks: list[str] = []
    for experiment in EXPERIMENTS:
        stimuli = require("lieder", experiment).path
        documents = to_documents(read(stimuli, experiment), experiment)
        problems: list[DataError] = []
        files = _declared_files(experiment) if clone is None else _files_of(clone, experiment)
        for model, file in files.items():
            try:
                sentences = _read(file)
                model_rows = list(_response_rows(documents, sentences, file))
            except DataError as error:
                problems.append(error)
                continue
            converted[experiment, model] = sentences
            rows[model] += model_rows
        if len(problems) == len(files):
            raise problems[0]
        remarks += [f"left out: {problem}" for problem in problems]
    systems = [RecordedSystem(model, responses) for model, responses in sorted(rows.items())]
    tasks = [f"lieder_{experiment}" for experiment in EXPERIMENTS]
    return Recordings(systems, tasks, remarks=[*_comparison(converted), *remarks])


def _declared_files(experiment: Experiment) -> dict[str, Path]:
    """Return the files of the declared source by model."""
    files: dict[str, Path] = {}
    for file in require_all(SOURCE).files:
        if file.name.startswith(f"{experiment}_"):
            files[file.name.removeprefix(f"{experiment}_")] = file.path
    return files


def _files_of(clone: Path, experiment: Experiment) -> dict[str, Path]:
    """Return the files of a clone by model.

    Raises:
        DataError: There are none.
    """
    folder = folder_in(clone, f"results/{experiment}", find_source(SOURCE).homepage)
    files: dict[str, Path] = {}
    for file in sorted(folder.glob(f"{experiment}_*.csv")):
        if not file.stem.endswith(COMPUTED):
            files[file.stem.removeprefix(f"{experiment}_")] = file
    if not files:
        raise DataError(f"{folder}: no {experiment}_MODEL.csv")
    return files


def _read(path: Path) -> list[RecordedSentence]:
    """Read a run: a table of the authors', or the sums of the declared source.

    Raises:
        DataError: It is not as expected.
    """
    if path.suffix == ".csv":
        return [_summed(row) for row in read_table(path, COLUMNS)]
    return list(_summed_sentences(path))


def _summed_sentences(path: Path) -> Iterator[RecordedSentence]:
    for location, line in lines_of(path):
        row = json.loads(line)
        context, continuation = row["arguments"]
        logprob, _ = row["response"]
        yield RecordedSentence(location, context, continuation, logprob)


def _summed(row: AuthorsRow) -> RecordedSentence:
    """Sum the log-probabilities of the tokens after the first sentence's period.

    Raises:
        DataError: The row is not two sentences with a number for each token but the first.
    """
    tokens = row.cells["tokens"].split("|")
    try:
        context, continuation = split_stimulus(row.cells["sent"])
        logprobs = [float(number) for number in json.loads(row.cells["logprobs"])]
        period = [token.endswith(".") for token in tokens].index(True)
    except (ValueError, TypeError) as error:
        raise DataError(one_line(f"{row.position}: not a recorded sentence ({error})")) from None
    if len(logprobs) != len(tokens) - 1:
        raise DataError(
            f"{row.position}: {len(logprobs)} log-probabilities of {len(tokens)} tokens; expected "
            f"{len(tokens) - 1}, as the first token has none"
        )
    # The list lacks the first token, so the period's place is that of the token after it.
    return RecordedSentence(row.position, context, continuation, sum(logprobs[period:]))


def _response_rows(
    documents: Sequence[Mapping[str, object]], sentences: Sequence[RecordedSentence], path: Path
) -> Iterator[ResponseRow]:
    """Yield a row for each request of the documents.

    Raises:
        DataError: The sentences are not those of the stimuli, in their order.
    """
    remaining = iter(sentences)
    for document in documents:
        fields = {name: document[name] for name in ("experiment", "item", "family")}
        contexts, continuations = document["context"], document["continuation"]
        assert isinstance(contexts, list)
        assert isinstance(continuations, list)
        for index, request in enumerate(zip(contexts, continuations, strict=True)):
            sentence = next(remaining, None)
            if sentence is None:
                raise DataError(f"{path}: {len(sentences)} sentences are too few")
            if (sentence.context, sentence.continuation) != request:
                raise DataError(
                    f"{sentence.location}: {sentence.context}{sentence.continuation} is not the "
                    f"stimulus {''.join(request)}"
                )
            response = (sentence.logprob, False)
            yield {"doc": fields, "idx": index, "arguments": list(request), "response": response}


def _comparison(runs: RecordedRuns) -> list[str]:
    """Return remarks on which runs are as in the declared source, which has the sums of some."""
    declared = find_source(SOURCE).files
    matching: list[str] = []
    deviating: list[str] = []
    for (experiment, model), sentences in runs.items():
        name = f"{experiment}_{model}"
        if name in declared:
            if sha256_of_text(_summed_text(sentences)) == declared[name].sha256:
                matching.append(name)
            else:
                deviating.append(name)
    remarks = [f"{len(matching)} of {len(runs)} runs have a known checksum, and match it"]
    if deviating:
        remarks.append(f"not as declared in {SOURCE}: {', '.join(deviating)}")
    return remarks


def _summed_text(sentences: Sequence[RecordedSentence]) -> str:
    """Return a run as its file of the declared source has it."""
    lines = []
    for sentence in sentences:
        row = {
            "request_type": "loglikelihood",
            "arguments": [sentence.context, sentence.continuation],
            "response": [sentence.logprob, False],
        }
        lines.append(json.dumps(row) + "\n")
    return "".join(lines)
