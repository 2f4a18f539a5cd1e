"""Reads recorded answers, our own rows or lm-eval's ``samples_*.jsonl``, and finds them again.

A row of ours (docs/chat.md#recorded-responses)::

    {"request_type": "loglikelihood", "arguments": [CONTEXT, CONTINUATION],
     "response": [LOGPROB, GREEDY]}
    {"request_type": "generate_until", "arguments": [PROMPT], "response": TEXT}
    {"doc": {"id": 7}, "response": TEXT}

``arguments`` are compared exactly, without generation settings. ``doc`` may be a
part: it fits every document whose fields of those names are equal. ``idx`` (0 if absent)
says which request of the document is meant.
"""

import glob
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import was_missing
from lm_eval_ext.reading import lines_of
from lm_eval_ext.text import one_line

MatchBy = Literal["arguments", "doc"]
Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Recorded:
    """One request's recorded answers.

    Attributes:
        responses: One per repeat of the request, usually one.
        place: ``file:line``, for messages.
        doc: The document that was asked about, if the row has it.
    """

    responses: list[Any]
    place: str
    doc: Any = None


class Answers:
    """All that was recorded.

    Attributes:
        match: What requests are looked up by.
        files: What was read.
    """

    def __init__(self, match: MatchBy, files: Sequence[Path]) -> None:
        self.match = match
        self.files = files
        self._count = 0
        self._by_key: dict[Key, list[Recorded]] = defaultdict(list)
        self._ambiguous: set[Key] = set()
        # By the fields that rows name; each row with its place in the order of all.
        self._by_part: dict[tuple[str, ...], dict[Key, list[tuple[int, Recorded]]]] = defaultdict(
            lambda: defaultdict(list)
        )

    @property
    def summary(self) -> str:
        """How much was read and from where, for messages."""
        more = len(self.files) - 1
        others = f" and {more} more" if more else ""
        return f"{self._count} answers were read from {self.files[0]}{others}"

    def add(
        self, request_type: str, arguments: Sequence[Any], idx: int, recorded: Recorded
    ) -> None:
        """Adds the answers to one request."""
        key = self._key(request_type, arguments, recorded.doc, idx)
        known = self._by_key[key]
        if known and known[0].responses != recorded.responses:
            self._ambiguous.add(key)
        known.append(recorded)
        self._count += 1

    def add_part(
        self, request_type: str, part: Mapping[str, Any], idx: Any, recorded: Recorded
    ) -> None:
        """Adds answers for every document that has these fields."""
        key = (request_type, canonical(part), str(idx))
        self._by_part[tuple(sorted(part))][key].append((self._count, recorded))
        self._count += 1

    def find(self, request: Any) -> list[Recorded]:
        """Returns what is recorded for a request, in the order of files and rows.

        Of different answers to the same request, those to the same document count. Rows that name a
        part of a document are used if no row has the whole request.
        """
        key = self._key(request.request_type, request.args, request.doc, request.idx)
        known = self._by_key.get(key)
        if known is None:
            return self._by_document_part(request)
        if key not in self._ambiguous:
            return known[:1]
        doc = canonical(request.doc)
        return [one for one in known if canonical(one.doc) == doc] or known

    def _key(self, request_type: str, arguments: Sequence[Any], doc: Any, idx: int) -> Key:
        if self.match == "doc":
            return (request_type, canonical(doc), str(idx))
        texts = arguments[:1] if request_type == "generate_until" else arguments
        return (request_type, *(t if isinstance(t, str) else canonical(t) for t in texts))

    def _by_document_part(self, request: Any) -> list[Recorded]:
        doc = request.doc
        found: list[tuple[int, Recorded]] = []
        if isinstance(doc, Mapping):
            for fields, rows in self._by_part.items():
                if all(name in doc for name in fields):
                    part = canonical({name: doc[name] for name in fields})
                    found += rows.get((request.request_type, part, str(request.idx)), [])
        return [recorded for _, recorded in sorted(found, key=lambda numbered: numbered[0])]


def canonical(value: Any) -> str:
    """One text for equal JSON values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


PAIR = 2
ABOVE_ONE = 1e-3
"""How far rounding may lift a log-probability above 0, the logarithm of 1."""

REQUEST_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until")


def read_answers(path: str | Sequence[str], match: MatchBy) -> Answers:
    """Reads every row of every file that ``path`` names.

    Raises:
        OptionError: If ``path`` names no file.
        DataError: If a row cannot be read; file and line are named.
    """
    answers = Answers(match, find_files(path))
    for file in answers.files:
        for place, line in lines_of(file):
            try:
                row = json.loads(line)
                add_sample = isinstance(row, dict) and "resps" in row
                _add_sample(answers, row, place) if add_sample else _add_row(answers, row, place)
            except json.JSONDecodeError as error:
                raise DataError(f"{place}: not JSON ({error.msg}, column {error.colno})") from None
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise DataError(
                    f"{place}: not a recorded answer ({_short(error)}); a row needs response and "
                    "arguments or doc, or to be a row of lm-eval's samples_*.jsonl "
                    "(docs/chat.md#recorded-responses)"
                ) from None
    return answers


def _add_row(answers: Answers, row: Mapping[str, Any], place: str) -> None:
    response = row["response"]
    request_type = row.get("request_type") or _type_of_response(response)
    if request_type not in REQUEST_TYPES:
        raise ValueError(f"unknown request_type {request_type!r}; use {', '.join(REQUEST_TYPES)}")
    recorded = Recorded([parse_response(request_type, response)], place)
    if "arguments" in row and answers.match == "arguments":
        arguments = row["arguments"]
        if not isinstance(arguments, list) or not arguments:
            raise ValueError("arguments must be a list of texts")
        answers.add(request_type, arguments, 0, recorded)
    elif "doc" in row:
        doc = row["doc"]
        if not isinstance(doc, dict) or not doc:
            raise ValueError("doc must hold at least one field")
        idx = row.get("idx", 0)
        if type(idx) is not int or idx < 0:
            raise ValueError(f"idx must be a whole number, 0 or more, not {_short(idx)}")
        answers.add_part(request_type, doc, idx, recorded)
    else:
        raise KeyError("doc" if answers.match == "doc" else "arguments")


def _add_sample(answers: Answers, row: Mapping[str, Any], place: str) -> None:
    """A row of lm-eval's: a document with all its requests, once per filter."""
    doc, arguments = row["doc"], row["arguments"]
    if isinstance(arguments, Mapping):  # as written; a list as lm-eval holds it in memory
        arguments = [
            [arguments[name][f"arg_{i}"] for i in range(len(arguments[name]))]
            for name in sorted(arguments, key=lambda name: int(name.rpartition("_")[2]))
        ]
    unscored = row.get("metrics") == []
    for index, (texts, responses) in enumerate(zip(arguments, row["resps"], strict=True)):
        if unscored and any(was_missing(response) for response in responses):
            continue  # that run had no answer either
        if not responses:
            raise ValueError(f"request {index} has no response")
        request_type = _type_of_arguments(texts)
        parsed = [parse_response(request_type, one) for one in responses]
        answers.add(request_type, texts, index, Recorded(parsed, place, doc))


def _type_of_response(response: Any) -> str:
    if isinstance(response, str):
        return "generate_until"
    number = isinstance(response, (int, float)) and not isinstance(response, bool)
    return "loglikelihood_rolling" if number else "loglikelihood"


def _type_of_arguments(texts: Sequence[Any]) -> str:
    if len(texts) == 1:
        return "loglikelihood_rolling"
    return "loglikelihood" if isinstance(texts[1], str) else "generate_until"


def parse_response(request_type: str, response: Any) -> Any:
    """Turns a logged response into what the request's method returns.

    lm-eval logs log-probabilities as text (``["-12.5", "False"]``). NaN is what the model gave, so
    it is kept.

    Raises:
        ValueError: If it is not a response of this type.
    """
    if request_type == "generate_until":
        if not isinstance(response, str):
            raise ValueError(f"expected a generated text, not {_short(response)}")
        return response
    if request_type == "loglikelihood_rolling":
        return _logprob(response[0] if isinstance(response, list) and response else response)
    if not isinstance(response, (list, tuple)) or len(response) != PAIR:
        raise ValueError(f"expected [log-probability, is greedy], not {_short(response)}")
    logprob, greedy = response
    if str(greedy).lower() not in {"true", "false"}:
        raise ValueError(f"is greedy must be true or false, not {_short(greedy)}")
    return _logprob(logprob), str(greedy).lower() == "true"


def _logprob(value: Any) -> float:
    logprob = float(value)
    if logprob > ABOVE_ONE:
        raise ValueError(f"{logprob} is not a log-probability: the probability would be above 1")
    return logprob


def find_files(path: str | Sequence[str]) -> list[Path]:
    """Resolves a file, a folder, a glob pattern or a list of these, in a fixed order.

    Raises:
        OptionError: If one of them names nothing.
    """
    names = [path] if isinstance(path, str) else path
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(n, str) and n for n in names)
    ):
        raise OptionError(
            f"--model recorded: path={_short(path)} is not a path; write --model_args path=FILE "
            "(or a folder, a pattern, or a list in JSON: '{\"path\": [...]}')"
        )
    files: list[Path] = []
    for name in names:
        place = Path(name).expanduser()
        matches = [str(place)]
        if not place.exists():
            matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        found = [
            file
            for match in map(Path, matches)
            for file in (sorted(match.rglob("*.jsonl")) if match.is_dir() else [match])
            if file.is_file()
        ]
        if not found:
            raise OptionError(f"--model recorded: no recorded answers at {name}")
        files += found
    return list(dict.fromkeys(files))


def _short(value: object) -> str:
    kind = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value)
    return one_line(kind, limit=200)
