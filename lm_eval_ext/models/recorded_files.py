"""Reading recorded answers: our own rows, and the ``samples_*.jsonl`` that lm-eval logs.

A row of ours (docs/recorded.md)::

    {"request_type": "loglikelihood", "arguments": [CONTEXT, CONTINUATION],
     "response": [LOGPROB, GREEDY]}
    {"request_type": "generate_until", "arguments": [PROMPT], "response": TEXT}
    {"doc": {"id": 7}, "response": TEXT}

``arguments`` are compared to the letter, generation settings left aside. ``doc`` may be a
part: it fits every document whose fields of those names are equal. ``idx`` (0 if absent)
says which request of the document is meant.
"""

import glob
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lm_eval_ext.errors import DataError, OptionError

MatchBy = Literal["arguments", "doc"]
Key: TypeAlias = tuple[str, ...]

REQUEST_TYPES = ("loglikelihood", "loglikelihood_rolling", "generate_until")
PAIR = 2


@dataclass(frozen=True)
class Recorded:
    """One request's recorded answers.

    Attributes:
        responses: One per repeat of the request, usually one.
        place: ``file:line``, for messages.
        doc: The whole document as canonical JSON, where the row has it.
    """

    responses: list[Any]
    place: str
    doc: str | None = None


@dataclass
class Answers:
    """All recorded answers, indexed by how requests will ask for them.

    Attributes:
        match: What keys are made of.
        by_key: The answers by :meth:`key`, in the order of files and rows.
        partial: Rows that name a part of a document, by the fields they name.
    """

    match: MatchBy
    files: list[Path]
    by_key: dict[Key, list[Recorded]] = field(default_factory=lambda: defaultdict(list))
    partial: dict[tuple[str, ...], dict[Key, list[Recorded]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    @classmethod
    def read(cls, path: str | Sequence[str], match: MatchBy) -> "Answers":
        """Reads every row of every file that ``path`` names.

        Raises:
            OptionError: If ``path`` names no file.
            DataError: If a row cannot be read.
        """
        answers = cls(match=match, files=find_files(path))
        for file in answers.files:
            for number, row in _rows(file):
                try:
                    answers._add(row, f"{file}:{number}")
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise DataError(
                        f"{file}:{number}: not a recorded answer ({type(error).__name__}: {error})"
                        "; a row needs response and arguments or doc, or to be a row of lm-eval's "
                        "samples_*.jsonl (docs/recorded.md)"
                    ) from None
        return answers

    @property
    def summary(self) -> str:
        """How much was read, for messages."""
        rows = sum(map(len, self.by_key.values())) + sum(
            len(rows) for parts in self.partial.values() for rows in parts.values()
        )
        return (
            f"{rows} answers were read from {', '.join(str(file) for file in self.files[:3])}"
            + (
                f" and {len(self.files) - 3} more files" if len(self.files) > 3 else ""  # noqa: PLR2004
            )
        )

    def key(self, request_type: str, arguments: Sequence[Any], doc: Any, idx: int) -> Key:
        """What a request is looked up by."""
        if self.match == "doc":
            return (request_type, canonical(doc), str(idx))
        texts = arguments[:1] if request_type == "generate_until" else arguments
        return (
            request_type,
            *(text if isinstance(text, str) else canonical(text) for text in texts),
        )

    def by_doc_part(self, request: Any) -> list[Recorded]:
        """The answers of rows that name a part of this request's document."""
        doc = request.doc
        if not isinstance(doc, Mapping):
            return []
        found: list[Recorded] = []
        for fields, rows in self.partial.items():
            if all(name in doc for name in fields):
                part = canonical({name: doc[name] for name in fields})
                found += rows.get((request.request_type, part, str(request.idx)), [])
        return found

    def _add(self, row: Mapping[str, Any], place: str) -> None:
        if "resps" in row:
            self._add_sample(row, place)
            return
        response = row["response"]
        request_type = row.get("request_type") or (
            "generate_until" if isinstance(response, str) else "loglikelihood"
        )
        if request_type not in REQUEST_TYPES:
            raise ValueError(f"request_type {request_type!r} is none of {', '.join(REQUEST_TYPES)}")
        recorded = Recorded([parse_response(request_type, response)], place)
        if "arguments" in row and self.match == "arguments":
            arguments = row["arguments"]
            if not isinstance(arguments, list) or not arguments:
                raise ValueError("arguments must be a list of texts")
            self.by_key[self.key(request_type, arguments, None, 0)].append(recorded)
        elif "doc" in row:
            doc = row["doc"]
            if not isinstance(doc, dict) or not doc:
                raise ValueError("doc must hold at least one field")
            fields = tuple(sorted(doc))
            key = (request_type, canonical(doc), str(row.get("idx", 0)))
            self.partial[fields][key].append(recorded)
        elif self.match == "doc":
            raise ValueError("match=doc, but the row has no doc")
        else:
            raise KeyError("arguments")

    def _add_sample(self, row: Mapping[str, Any], place: str) -> None:
        """A row of lm-eval's: a document with all its requests, once per filter."""
        doc = canonical(row["doc"])
        arguments = row["arguments"]
        if isinstance(arguments, Mapping):  # as written; a list as lm-eval holds it in memory
            arguments = [
                [arguments[name][f"arg_{i}"] for i in range(len(arguments[name]))]
                for name in sorted(arguments, key=lambda name: int(name.rpartition("_")[2]))
            ]
        for index, (texts, responses) in enumerate(zip(arguments, row["resps"], strict=True)):
            request_type = _type_of(texts)
            recorded = Recorded(
                [parse_response(request_type, response) for response in responses], place, doc
            )
            key = self.key(request_type, texts, row["doc"], index)
            already = self.by_key[key]
            if not any(
                other.doc == doc and other.responses == recorded.responses for other in already
            ):
                already.append(recorded)


def parse_response(request_type: str, response: Any) -> Any:
    """Turns a logged response into what the request's method returns.

    lm-eval logs log-probabilities as text (``["-12.5", "False"]``).

    Raises:
        ValueError: If it is none.
    """
    if request_type == "generate_until":
        if not isinstance(response, str):
            raise ValueError(f"a generated text is wanted, not {response!r}")
        return response
    if request_type == "loglikelihood_rolling":
        value = response[0] if isinstance(response, list) else response
        return float(value)
    if not isinstance(response, (list, tuple)) or len(response) != PAIR:
        raise ValueError(f"[log-probability, is greedy] is wanted, not {response!r}")
    logprob, greedy = response
    if str(greedy) not in {"True", "False"}:
        raise ValueError(f"is greedy must be true or false, not {greedy!r}")
    return float(logprob), str(greedy) == "True"


def canonical(value: Any) -> str:
    """One text for equal JSON values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def find_files(path: str | Sequence[str]) -> list[Path]:
    """Resolves a file, a folder, a glob pattern or a list of these, in a fixed order.

    Raises:
        OptionError: If one of them names nothing.
    """
    files: list[Path] = []
    for name in [path] if isinstance(path, str) else path:
        if not name:
            raise OptionError(
                "--model recorded needs --model_args path=FILE (or a folder or a pattern)"
            )
        place = Path(name).expanduser()
        if place.is_file():
            found = [place]
        elif place.is_dir():
            found = sorted(place.rglob("*.jsonl"))
        else:
            found = sorted(Path(match) for match in glob.glob(str(place), recursive=True))  # noqa: PTH207
        if not found:
            raise OptionError(f"--model recorded: no recorded answers at {name}")
        files += found
    return list(dict.fromkeys(files))


def _type_of(texts: Sequence[Any]) -> str:
    if len(texts) == 1:
        return "loglikelihood_rolling"
    return "loglikelihood" if isinstance(texts[1], str) else "generate_until"


def _rows(file: Path) -> Iterator[tuple[int, Any]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{file}:{number}: not JSON ({error.msg}, column {error.colno})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
