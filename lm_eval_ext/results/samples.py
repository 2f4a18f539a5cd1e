"""The samples that lm-eval logs, and what a benchmark can add to them.

A benchmark adds, if it needs to, a :class:`SampleStatistic` for each metric that isn't an
average of documents' scores, and a module ``view.py`` (:class:`Views`) that shows documents and
answers to people.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOGGED = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash")
)  # fmt: skip
"""Keys of a row that aren't metrics."""

Key = tuple[str, int]
"""A document: lm-eval's hash of it, and how often the same one came before."""


@dataclass(frozen=True)
class Sample:
    """One scored document under one filter.

    Attributes:
        key: Which document.
        doc: The document itself.
        prompt: Digest of all that the model was asked about it, generation settings aside.
        target: lm-eval's hash of the right answer.
        scores: By metric; None where a metric does not apply to the document.
    """

    key: Key
    doc: Mapping[str, Any]
    prompt: str
    target: str
    scores: Mapping[str, float | None]


Totals: TypeAlias = "dict[str, NDArray[np.float64]]"
"""By cluster: sums that a statistic is a function of; arrays of one shape."""


@dataclass(frozen=True)
class SampleStatistic:
    """How to recompute a metric that isn't an average of documents' scores.

    Attributes:
        totals: From samples, the metric's name and each sample's cluster to sums by cluster.
        statistic: From total sums, with an axis of resamples in front, to the metric's values
            (NaN: undefined).
        needs: From the metric's name to the other metrics that samples must have for it.
    """

    totals: Callable[[Sequence[Sample], str, Sequence[str]], Totals]
    statistic: "Callable[[NDArray[np.float64]], NDArray[np.float64]]"
    needs: Callable[[str], tuple[str, ...]] = lambda _: ()


def samples_file(results: ResultsFile, task: str) -> Path:
    """The file beside the results in which lm-eval logs a task's samples."""
    date = results.path.stem.rpartition("_")[2]
    name = f"samples_{task}_{date}.jsonl".replace("/", "_")  # a name from a file leads nowhere else
    return results.path.with_name(name)


def read_samples(results: ResultsFile, task: str) -> dict[str, dict[Key, Sample]]:
    """Reads the scored samples of a task: by filter, then by document.

    Documents without a score (an answer was missing) are left out.

    Raises:
        DataError: If they were not logged, or a row cannot be read; file and line are named.
    """
    found: dict[str, dict[Key, Sample]] = {}

    def take(filter_name: str, key: Key, row: Mapping[str, Any]) -> None:
        if row["metrics"]:
            found.setdefault(filter_name, {})[key] = _sample(row, key)

    read_rows(_logged(results, task), take)
    return found


def logged_rows(results: ResultsFile, task: str) -> list[Mapping[str, Any]]:
    """The samples of a task as lm-eval wrote them.

    Raises:
        DataError: As :func:`read_samples`.
    """
    rows: list[Mapping[str, Any]] = []
    read_rows(_logged(results, task), lambda _filter, _key, row: rows.append(row))
    return rows


def _logged(results: ResultsFile, task: str) -> Path:
    file = samples_file(results, task)
    if not file.is_file():
        raise DataError(
            f"{results.path}: no {file.name} beside it; this needs the samples that lm_eval "
            "writes with --log_samples"
        )
    return file


def read_rows(file: Path, take: Callable[[str, Key, Mapping[str, Any]], None]) -> None:
    """Passes each row of a file of samples to a function, with its filter and document.

    Raises:
        DataError: If a row cannot be read, or the function fails on it; file and line are named.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for place, row in _json_lines(file):
        try:
            filter_name, doc_hash = str(row["filter"]), str(row["doc_hash"])
            key = (doc_hash, seen[filter_name, doc_hash])
            seen[filter_name, doc_hash] += 1
            take(filter_name, key, row)
        except (
            KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
        ) as error:  # fmt: skip
            problem = one_line(f"{type(error).__name__}: {error}", limit=200)
            raise DataError(f"{place}: not a sample that lm_eval logged ({problem})") from None


def _json_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the objects of a file, each with its place (file and line).

    Raises:
        DataError: If the file cannot be read, or a line isn't JSON.
    """
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield f"{file}:{number}", json.loads(line)
                except (ValueError, RecursionError) as error:
                    problem = one_line(str(error), limit=200)
                    raise DataError(f"{file}:{number}: not JSON ({problem})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({one_line(str(error), limit=200)})") from None


def _sample(row: Mapping[str, Any], key: Key) -> Sample:
    names = [name for name in row["metrics"] if name not in _LOGGED]
    return Sample(
        key=key,
        doc=logged_doc(row),
        prompt=_digest_of_prompts(row),
        target=str(row["target_hash"]),
        scores={
            name: finite(row[name])
            for name in names
            if row[name] is None or finite(row[name]) is not None
        },
    )


def logged_doc(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document of a row; {} if the task's documents aren't mappings."""
    return row["doc"] if isinstance(row["doc"], dict) else {}


def finite(value: Any) -> float | None:
    """A logged score as a number; None if it is no number, infinite or NaN."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def _digest_of_prompts(row: Mapping[str, Any]) -> str:
    """lm-eval's ``prompt_hash`` is that of a document's first request; here all of them count."""
    texts = [
        text
        for arguments in row["arguments"].values()
        for text in arguments.values()
        if isinstance(text, str)
    ]
    together = json.dumps([row["prompt_hash"], texts], ensure_ascii=True)
    return hashlib.sha256(together.encode()).hexdigest()


@dataclass(frozen=True)
class Part:
    """A part of a view: a text, or a table with a head, under a title.

    ``marked`` are places of rows, the first below the head being 0; ``beside`` is shown beside it.
    """

    title: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    marked: tuple[int, ...] = ()
    beside: "Part | None" = None


@dataclass(frozen=True)
class DocumentView:
    """What all models were asked: a title of one line, the right answer, and parts to show.

    The page adds the prompts.
    """

    title: str
    gold: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class AnswerView:
    """One model's answer as it was scored, and parts to show, such as an executed query's rows."""

    answer: str
    parts: tuple[Part, ...] = ()


class Views(Protocol):
    """The module ``view.py`` of a benchmark.

    Its functions take many documents at once, so that slow ones (which run queries) can work in
    parallel.
    """

    def documents(self, docs: Sequence[Mapping[str, Any]]) -> Sequence[DocumentView]:
        """Shows documents as lm-eval logged them."""

    def answers(
        self, docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
    ) -> Sequence[AnswerView]:
        """Shows the answers of one model, for each document one per request."""


def log_probability(answer: str) -> float | None:
    """Reads what lm-eval logs: a log-probability, or a pair of it and "is greedy", as text."""
    try:
        value = json.loads(answer.replace("'", '"').replace("True", "1").replace("False", "0"))
        return float(value[0] if isinstance(value, list) else value)
    except (ValueError, TypeError, IndexError):
        return None
