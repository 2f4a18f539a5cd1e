"""The samples that lm-eval logs: what a model scored on each document.

What a person is shown of a sample: the question, the right answer, a model's answer.

A benchmark that has more to show than texts has a room ``view.py`` with two functions,
``documents`` and ``answers``, which return these. They take many at once, so that what is slow
(queries to be run) can be done side by side.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.text import one_line

_LOGGED = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash")
)  # fmt: skip
"""Keys of a row that are no metrics."""

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
        scores: Numbers by metric; None where a metric does not concern the document.
    """

    key: Key
    doc: Mapping[str, Any]
    prompt: str
    target: str
    scores: Mapping[str, float | None]


def samples_file(results: ResultsFile, task: str) -> Path:
    """Where lm-eval logged the samples of a task, beside its results file."""
    date = results.path.stem.rpartition("_")[2]
    name = f"samples_{task}_{date}.jsonl".replace("/", "_")  # a name from a file leads nowhere else
    return results.path.with_name(name)


def read_samples(results: ResultsFile, task: str) -> dict[str, dict[Key, Sample]]:
    """Reads the scored samples of a task: by filter, then by document.

    Documents without a score (an answer was missing) are left out.

    Raises:
        DataError: If they were not logged, or a row cannot be read; file and line are named.
    """
    file = samples_file(results, task)
    if not file.is_file():
        raise DataError(
            f"{results.path}: no {file.name} beside it; comparing needs the samples that lm_eval "
            "writes with --log_samples"
        )
    found: dict[str, dict[Key, Sample]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for place, row in logged_rows(file):
        try:
            name, doc_hash = str(row["filter"]), str(row["doc_hash"])
            key = (doc_hash, seen[name, doc_hash])
            seen[name, doc_hash] += 1
            if row["metrics"]:
                found.setdefault(name, {})[key] = _sample(row, key)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=200)
            raise DataError(f"{place}: not a sample that lm_eval logged ({problem})") from None
    return found


def logged_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the rows of a file of samples, each with its place (file and line).

    Raises:
        DataError: If the file cannot be read, or a line is no JSON.
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
        doc=row["doc"] if isinstance(row["doc"], dict) else {},
        prompt=_asked(row),
        target=str(row["target_hash"]),
        scores={
            name: None if row[name] is None else float(row[name])
            for name in names
            if row[name] is None or _is_number(row[name])
        },
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _asked(row: Mapping[str, Any]) -> str:
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
    """A part of a view: a text, or a table with a head, under a title."""

    title: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class DocumentView:
    """What all models were asked.

    Attributes:
        title: One line, for lists.
        gold: The right answer.
        parts: What else there is to see; prompts come by themselves.
    """

    title: str
    gold: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class AnswerView:
    """What one model answered, as it was scored, and what came of it."""

    answer: str
    parts: tuple[Part, ...] = ()


class Views(Protocol):
    """The room ``view.py`` of a benchmark."""

    def documents(self, docs: Sequence[Mapping[str, Any]]) -> Sequence[DocumentView]:
        """Shows documents as lm-eval logged them."""

    def answers(
        self, docs: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]]
    ) -> Sequence[AnswerView]:
        """Shows the answers of one model, for each document one per request."""
