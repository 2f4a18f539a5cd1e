"""Reads the samples that lm-eval logged into the long table of scores.

Columns: ``filter``; ``document`` (lm-eval's hash of it, and how often the same one came before),
``id``, ``cluster`` (with ``cluster_1``, ... for finer ones), and ``prompt``, ``target`` and
``doc_hash`` (digests); then facets and values of the rows. Samples of other tasks, and of versions
without rows, have a row for each document, with lm-eval's metrics as values.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.names import ROWS
from lm_eval_ext.harness.signature import digest
from lm_eval_ext.reading import lines_of
from lm_eval_ext.results.files import Run, finite
from lm_eval_ext.stats.table import Scored, frame
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

Sample = Mapping[str, Any]
"""A line of lm-eval's file of samples."""


def rows(run: Run, *, items: tuple[str, ...] = ()) -> "DataFrame":
    """The long table of a run.

    Args:
        run: Its samples are read.
        items: Columns of the documents that name a document instead of lm-eval's hash; "" where
            one is missing.

    Raises:
        DataError: If samples were not logged, or one cannot be read; file and line are named.
    """
    card = run.card
    own = card is not None and card.asks_own(run.task)
    seen: Counter[tuple[str, str]] = Counter()

    def read(sample: Sample) -> Scored:
        which = str(sample["filter"]), str(sample["doc_hash"])
        doc = sample["doc"] if isinstance(sample["doc"], dict) else {}
        document = f"{which[1]}#{seen[which]}"
        seen[which] += 1
        clusters = card.cluster.names(doc, own=own) if card else (document,)
        # lm-eval's prompt_hash is that of a document's first request; here all of them count.
        parts = (part for request in sample["arguments"].values() for part in request.values())
        always = {
            "filter": which[0],
            "prompt": digest([sample["prompt_hash"], *(p for p in parts if isinstance(p, str))]),
            "target": str(sample["target_hash"]),
            "doc_hash": which[1],
        }
        if items:
            document = "\n".join(str(doc.get(name, "")) for name in items)
        metrics = sample["metrics"]
        # Without rows, lm-eval's metrics of a document are its values.
        scored = sample[ROWS] if ROWS in metrics else [{k: finite(sample[k]) for k in metrics}]
        id_ = str(doc.get("id", sample["doc_id"]))
        return document, id_, clusters, [{**always, **row} for row in scored]

    found = []
    for place, sample in samples(run):
        try:
            if sample["metrics"]:  # an answer was missing
                found.append(read(sample))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=200)
            raise DataError(f"{place}: not a sample that lm_eval logged ({problem})") from None
    return frame(found)


def samples_file(run: Run) -> Path:
    """The file beside the results in which lm-eval logs a task's samples."""
    date = run.file.path.stem.rpartition("_")[2]
    name = f"samples_{run.task}_{date}.jsonl".replace(
        "/", "_"
    )  # a name from a file leads nowhere else
    return run.file.path.with_name(name)


def samples(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a task's samples as lm-eval wrote them, each with its place (file and line).

    Raises:
        DataError: If they were not logged, or a line cannot be read.
    """
    file = samples_file(run)
    if not file.is_file():
        raise DataError(
            f"{run.file.path}: no {file.name} beside it; this needs the samples that lm_eval "
            "writes with --log_samples"
        )
    for place, line in lines_of(file):
        try:
            yield place, from_json(line)
        except ValueError as error:
            raise DataError(f"{place}: not JSON ({one_line(str(error), limit=200)})") from None
