"""The long table of scores, from the samples that lm-eval logged.

Columns: ``filter``; ``document`` (lm-eval's hash of it, and how often the same one came before),
``id``, ``cluster`` (with ``cluster_1``, ... for finer ones), and ``prompt``, ``target`` and
``doc_hash`` (digests); then facets and values of the rows. Samples of other tasks, and of versions
without rows, have a row for each document, with lm-eval's metrics as values.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic_core import from_json

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.lm_eval_types import Keys
from lm_eval_ext.harness.names import ROWS
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.reading import lines_of
from lm_eval_ext.results.files import Run, finite
from lm_eval_ext.stats.table import DocumentRows, Row, frame
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame


class NoSamplesError(DataError):
    """A run whose samples were not logged; ``reason`` says so without the file's name."""

    reason = "no samples beside the results; run again with --log_samples"


Sample: TypeAlias = Keys
"""A line of lm-eval's file of samples."""


@dataclass(frozen=True)
class KeyedSample:
    """A logged sample, its location (file and line), and its key."""

    location: str
    key: str
    content: Sample


def keyed_samples(run: Run) -> "Iterator[KeyedSample]":
    """Yield a task's samples, each with the key that all readers match samples by.

    The key is lm-eval's hash of the document, and how many samples of the same document and filter
    came before, scored or not: ``HASH#0``.

    Raises:
        DataError: Samples were not logged, or a line cannot be read.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for location, sample in samples(run):
        try:
            filter_name, doc_hash = str(sample["filter"]), str(sample["doc_hash"])
        except (KeyError, TypeError) as error:
            raise unreadable_sample(location, error) from None
        count = counts[filter_name, doc_hash]
        yield KeyedSample(location, f"{doc_hash}#{count}", sample)
        counts[filter_name, doc_hash] += 1


def rows(run: Run, *, items: tuple[str, ...] = (), is_part_allowed: bool = False) -> "DataFrame":
    """Return the long table of a run.

    Args:
        run: Its samples are read.
        items: Columns of the documents that name a document instead of the sample's key; "" where
            one is missing.
        is_part_allowed: Whether samples may be missing.

    Raises:
        DataError: Samples were not logged, one cannot be read (file and line are named), or the
            file has fewer than the run had documents.
    """
    scored = []
    counts: Counter[str] = Counter()
    for sample in keyed_samples(run):
        counts[str(sample.content["filter"])] += 1
        try:
            if sample.content["metrics"]:  # otherwise an answer was missing
                scored.append(_scored(run, sample, items))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable_sample(sample.location, error) from None
    documents, _ = run.documents
    count = min(counts.values(), default=0)
    if count < documents and not is_part_allowed:
        raise DataError(
            f"{samples_file(run)}: has samples of {count:,} of the {documents:,} documents that "
            "were scored, so that values from it would be others; run again"
        )
    return frame(scored)


def unreadable_sample(location: str, error: Exception) -> DataError:
    """Return the error for a line of the file of samples that lacks what lm-eval writes."""
    problem = one_line(f"{type(error).__name__}: {error}", limit=200)
    return DataError(f"{location}: not a sample that lm_eval logged ({problem})")


def _scored(run: Run, keyed: KeyedSample, items: tuple[str, ...]) -> DocumentRows:
    """Return what was scored of a sample."""
    sample, card = keyed.content, run.card
    doc = sample["doc"] if isinstance(sample["doc"], dict) else {}
    clusters: Sequence[str] = (keyed.key,)
    if card:
        clusters = card.cluster.names(doc, is_user_data=card.is_user_data(run.task))
    document = keyed.key
    if items:
        document = "\n".join(str(doc.get(name, "")) for name in items)
    columns = {
        "filter": str(sample["filter"]),
        "prompt": _prompt_digest(sample),
        "target": str(sample["target_hash"]),
        "doc_hash": str(sample["doc_hash"]),
    }
    id_ = str(doc.get("id", sample["doc_id"]))
    return document, id_, clusters, [{**columns, **row} for row in _score_rows(run, sample)]


def _prompt_digest(sample: Sample) -> str:
    """Return a digest of all requests; lm-eval's ``prompt_hash`` is that of the first one."""
    texts: list[str] = []
    for request in sample["arguments"].values():
        texts += [argument for argument in request.values() if isinstance(argument, str)]
    return digest([sample["prompt_hash"], *texts])


def _score_rows(run: Run, sample: Sample) -> Sequence[Row]:
    """Return the rows of scores; without any, a row with lm-eval's metrics of the document."""
    metrics = sample["metrics"]
    if ROWS in metrics:
        rows: Sequence[Row] = sample[ROWS]
        return rows
    if run.is_current and run.card:
        raise ValueError(f"no {ROWS} of scores, which {run.task} logs; run again")
    return [{name: finite(sample[name]) for name in metrics}]


def samples_file(run: Run) -> Path:
    """Return the file beside the results in which lm-eval logs a task's samples."""
    date = run.file.path.stem.rpartition("_")[2]
    name = f"samples_{run.task}_{date}.jsonl"
    # The name of a task in a results file must not lead to another folder.
    return run.file.path.with_name(name.replace("/", "_"))


def samples(run: Run) -> Iterator[tuple[str, Sample]]:
    """Yield a task's samples as lm-eval wrote them, each after its location (file and line).

    Raises:
        DataError: Samples were not logged, or a line cannot be read.
    """
    file = samples_file(run)
    if not file.is_file():
        raise NoSamplesError(
            f"{run.file.path}: no {file.name} beside it; this needs the samples that lm_eval "
            "writes with --log_samples"
        )
    for location, line in lines_of(file):
        try:
            sample = from_json(line)
        except ValueError as error:
            sample = _with_half_pairs(line)
            if sample is None:
                problem = one_line(str(error), limit=200)
                raise DataError(
                    f"{location}: not JSON ({problem}); if the file is cut off here, run again"
                ) from None
        yield location, sample


def _with_half_pairs(line: str | bytes) -> Sample | None:
    """Return a sample with half a surrogate pair, which pydantic refuses; None if it is no JSON."""
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return sample if isinstance(sample, dict) else None
