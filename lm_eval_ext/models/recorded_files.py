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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.missing import was_missing
from lm_eval_ext.reading import lines_of
from lm_eval_ext.text import counted, named_briefly, one_line

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

MatchBy = Literal["arguments", "doc"]

RequestKey: TypeAlias = tuple[str, ...]
"""Identifies a request among those that were recorded."""

Response: TypeAlias = str | float | tuple[float, bool]
"""A generated text, the log-probability of a text, or ``(log-probability, is greedy)``."""

Row: TypeAlias = Mapping[str, Any]
"""A line of a file, as JSON has it."""


@dataclass(frozen=True)
class Recorded:
    """One request's recorded answers.

    Attributes:
        responses: One per repeat of the request, usually one.
        position: ``file:line``, for messages.
        doc: The document that was asked about, if the row has it.
    """

    responses: list[Response]
    position: str
    doc: object = None


class Answers:
    """All that was recorded.

    Attributes:
        match: Whether requests are looked up by their arguments or by their document.
        files: The files that were read.
    """

    def __init__(self, match: MatchBy, files: Sequence[Path]) -> None:
        self.match = match
        self.files = files
        self._count = 0
        self._by_key: dict[RequestKey, list[Recorded]] = defaultdict(list)
        self._conflicting_keys: set[RequestKey] = set()
        # For each choice of fields that rows name, the rows by the values of these fields; each
        # row with its number among all.
        self._by_fields: dict[tuple[str, ...], dict[RequestKey, list[tuple[int, Recorded]]]] = (
            defaultdict(lambda: defaultdict(list))
        )

    @property
    def summary(self) -> str:
        """How much was read and from where, for messages."""
        verb = "was" if self._count == 1 else "were"
        files = named_briefly(map(str, self.files))
        return f"{counted(self._count, 'answer')} {verb} read from {files}"

    def add(
        self, request_type: str, arguments: Sequence[object], idx: int, recorded: Recorded
    ) -> None:
        """Add the answers to one request."""
        key = self._request_key(request_type, arguments, recorded.doc, idx)
        same_request = self._by_key[key]
        if same_request and same_request[0].responses != recorded.responses:
            self._conflicting_keys.add(key)
        same_request.append(recorded)
        self._count += 1

    def add_for_fields(
        self, request_type: str, fields: Mapping[str, object], idx: int, recorded: Recorded
    ) -> None:
        """Add answers for every document that has these fields."""
        key = (request_type, canonical(fields), str(idx))
        names = tuple(sorted(fields))
        self._by_fields[names][key].append((self._count, recorded))
        self._count += 1

    def find(self, request: "Instance") -> list[Recorded]:
        """Return the rows for a request, in the order of files and rows.

        If there are different answers to the same request, those to the same document count. Rows
        that name some fields of a document are used if no row has the whole request.
        """
        key = self._request_key(request.request_type, request.args, request.doc, request.idx)
        same_request = self._by_key.get(key)
        if same_request is None:
            return self._find_by_fields(request)
        if key not in self._conflicting_keys:
            return same_request[:1]
        doc = canonical(request.doc)
        same_document = [recorded for recorded in same_request if canonical(recorded.doc) == doc]
        return same_document or same_request

    def _request_key(
        self, request_type: str, arguments: Sequence[object], doc: object, idx: int
    ) -> RequestKey:
        if self.match == "doc":
            return (request_type, canonical(doc), str(idx))
        if request_type == "generate_until":
            arguments = arguments[:1]  # without the generation settings
        texts = []
        for argument in arguments:
            texts.append(argument if isinstance(argument, str) else canonical(argument))
        return (request_type, *texts)

    def _find_by_fields(self, request: "Instance") -> list[Recorded]:
        """Return the rows whose fields the request's document has."""
        doc = request.doc
        if not isinstance(doc, Mapping):
            return []
        numbered: list[tuple[int, Recorded]] = []
        for names, rows in self._by_fields.items():
            if all(name in doc for name in names):
                fields = canonical({name: doc[name] for name in names})
                numbered += rows.get((request.request_type, fields, str(request.idx)), [])
        numbered.sort(key=lambda entry: entry[0])
        return [recorded for _, recorded in numbered]


def canonical(value: object) -> str:
    """Return one text for equal JSON values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


PAIR = 2
ABOVE_ONE = 1e-3
"""How far rounding may lift a log-probability above 0, the logarithm of 1."""

REQUEST_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until")


def read_answers(path: object, match: MatchBy) -> Answers:
    """Read every row of every file that ``path`` names.

    Raises:
        OptionError: ``path`` names no file.
        DataError: A row cannot be read; the line has the file and the row.
    """
    answers = Answers(match, find_files(path))
    for file in answers.files:
        for position, line in lines_of(file):
            try:
                row = json.loads(line)
                if isinstance(row, dict) and "resps" in row:
                    _add_sample(answers, row, position)
                else:
                    _add_row(answers, row, position)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{position}: not JSON ({error.msg}, column {error.colno})"
                ) from None
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise DataError(
                    f"{position}: not a recorded answer ({_short(error)}); a row needs response "
                    "and arguments or doc, or to be a row of lm-eval's samples_*.jsonl "
                    "(docs/chat.md#recorded-responses)"
                ) from None
    return answers


def _add_row(answers: Answers, row: Row, position: str) -> None:
    """Add a row of ours: one request."""
    response = row["response"]
    request_type = row.get("request_type") or _type_of_response(response)
    if request_type not in REQUEST_TYPES:
        raise ValueError(f"unknown request_type {request_type!r}; use {', '.join(REQUEST_TYPES)}")
    recorded = Recorded([parse_response(request_type, response)], position)
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
        answers.add_for_fields(request_type, doc, idx, recorded)
    else:
        raise KeyError("doc" if answers.match == "doc" else "arguments")


def _add_sample(answers: Answers, row: Row, position: str) -> None:
    """Add a row of lm-eval's: a document with all its requests, once per filter."""
    is_unscored = row.get("metrics") == []
    requests = zip(_sample_arguments(row), row["resps"], strict=True)
    for index, (arguments, responses) in enumerate(requests):
        if is_unscored and any(was_missing(response) for response in responses):
            continue  # that run had no answer either
        if not responses:
            raise ValueError(f"request {index} has no response")
        request_type = _type_of_arguments(arguments)
        parsed = [parse_response(request_type, response) for response in responses]
        answers.add(request_type, arguments, index, Recorded(parsed, position, row["doc"]))


def _sample_arguments(row: Row) -> list[list[object]]:
    """Return the arguments of each request of a row of lm-eval's."""
    arguments = row["arguments"]
    if not isinstance(arguments, Mapping):  # as lm-eval holds them in memory
        in_memory: list[list[object]] = arguments
        return in_memory
    requests = []
    for name in sorted(arguments, key=lambda name: int(name.rpartition("_")[2])):
        by_name = arguments[name]
        requests.append([by_name[f"arg_{number}"] for number in range(len(by_name))])
    return requests


def _type_of_response(response: object) -> str:
    if isinstance(response, str):
        return "generate_until"
    if isinstance(response, (int, float)) and not isinstance(response, bool):
        return "loglikelihood_rolling"
    return "loglikelihood"


def _type_of_arguments(arguments: Sequence[object]) -> str:
    if len(arguments) == 1:
        return "loglikelihood_rolling"
    if isinstance(arguments[1], str):
        return "loglikelihood"
    return "generate_until"


def parse_response(request_type: str, response: object) -> Response:
    """Turn a logged response into what the request's method returns.

    lm-eval logs log-probabilities as text (``["-12.5", "False"]``). NaN is what the model gave, so
    it is kept.

    Raises:
        ValueError: It is not a response of this type.
    """
    if request_type == "generate_until":
        if not isinstance(response, str):
            raise ValueError(f"expected a generated text, not {_short(response)}")
        return response
    if request_type == "loglikelihood_rolling":
        if isinstance(response, list) and response:
            response = response[0]
        return _log_probability(response)
    if not isinstance(response, (list, tuple)) or len(response) != PAIR:
        raise ValueError(f"expected [log-probability, is greedy], not {_short(response)}")
    value, greedy = response
    is_greedy = str(greedy).lower()
    if is_greedy not in {"true", "false"}:
        raise ValueError(f"is greedy must be true or false, not {_short(greedy)}")
    return _log_probability(value), is_greedy == "true"


def _log_probability(value: Any) -> float:
    """Convert a logged log-probability, a number or a text."""
    number = float(value)
    if number > ABOVE_ONE:
        raise ValueError(f"{number} is not a log-probability: the probability would be above 1")
    return number


def find_files(path: object) -> list[Path]:
    """Return the files of a path, in a fixed order.

    Args:
        path: A file, a folder, a glob pattern, or a list of these.

    Raises:
        OptionError: It is none of these, or one names nothing.
    """
    entries = list(path) if isinstance(path, (list, tuple)) else [path]
    names = [entry for entry in entries if isinstance(entry, str) and entry]
    if not names or len(names) < len(entries):
        raise OptionError(
            f"--model recorded: path={_short(path)} is not a path; write --model_args path=FILE "
            "(or a folder, a pattern, or a list in JSON: '{\"path\": [...]}')"
        )
    files: dict[Path, None] = {}
    for name in names:
        named_files = _files_of_name(name)
        if not named_files:
            raise OptionError(f"--model recorded: no recorded answers at {name}")
        files.update(dict.fromkeys(named_files))
    return list(files)


def _files_of_name(name: str) -> list[Path]:
    """Return the files of one name: a file, a folder or a pattern."""
    path = Path(name).expanduser()
    paths = [path]
    if not path.exists():
        paths = [Path(match) for match in sorted(glob.glob(name, recursive=True))]  # noqa: PTH207
    files: list[Path] = []
    for path in paths:
        files += sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    return [file for file in files if file.is_file()]


def _short(value: object) -> str:
    """Return a value, or an error with its type, on one short line."""
    text = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value)
    return one_line(text, limit=200)
