"""Recorded answers, indexed by how requests will ask for them."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

MatchBy = Literal["arguments", "doc"]
Key: TypeAlias = tuple[str, ...]

FILES_NAMED = 3
"""How many files a message names."""


@dataclass(frozen=True)
class Recorded:
    """One request's recorded answers.

    Attributes:
        responses: One per repeat of the request, usually one.
        place: ``file:line``, for messages.
    """

    responses: list[Any]
    place: str


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
        # Documents matter only where one request has several answers, which is rare; looking
        # a document up costs its whole text.
        self._by_document: dict[tuple[Key, str], list[Recorded]] = defaultdict(list)
        self._ambiguous: set[Key] = set()
        self._by_part: dict[tuple[str, ...], dict[Key, list[Recorded]]] = defaultdict(
            lambda: defaultdict(list)
        )

    @property
    def summary(self) -> str:
        """How much was read and from where, for messages."""
        named = ", ".join(str(file) for file in self.files[:FILES_NAMED])
        more = len(self.files) - FILES_NAMED
        return f"{self._count} answers were read from {named}" + (
            f" and {more} more files" if more > 0 else ""
        )

    def add(
        self, request_type: str, arguments: Sequence[Any], doc: Any, idx: int, recorded: Recorded
    ) -> None:
        """Adds the answers to one request; the same ones again change nothing."""
        key = self._key(request_type, arguments, doc, idx)
        known = self._by_key[key]
        document = (key, canonical(doc))
        if any(same.responses == recorded.responses for same in self._by_document[document]):
            return
        if known and known[0].responses != recorded.responses:
            self._ambiguous.add(key)
        known.append(recorded)
        self._by_document[document].append(recorded)
        self._count += 1

    def add_part(
        self, request_type: str, part: Mapping[str, Any], idx: Any, recorded: Recorded
    ) -> None:
        """Adds answers for every document that has these fields."""
        key = (request_type, canonical(part), str(idx))
        self._by_part[tuple(sorted(part))][key].append(recorded)
        self._count += 1

    def find(self, request: Any) -> list[Recorded]:
        """Returns what is recorded for a request; several only if they differ.

        Of different answers to the same request, those to the same document count.
        """
        key = self._key(request.request_type, request.args, request.doc, request.idx)
        known = self._by_key.get(key)
        if known is None:
            return _distinct(self._by_document_part(request))
        if key not in self._ambiguous:
            return known[:1]
        return _distinct(self._by_document.get((key, canonical(request.doc))) or known)

    def _key(self, request_type: str, arguments: Sequence[Any], doc: Any, idx: int) -> Key:
        if self.match == "doc":
            return (request_type, canonical(doc), str(idx))
        texts = arguments[:1] if request_type == "generate_until" else arguments
        return (request_type, *(t if isinstance(t, str) else canonical(t) for t in texts))

    def _by_document_part(self, request: Any) -> list[Recorded]:
        doc = request.doc
        found: list[Recorded] = []
        if isinstance(doc, Mapping):
            for fields, rows in self._by_part.items():
                if all(name in doc for name in fields):
                    part = canonical({name: doc[name] for name in fields})
                    found += rows.get((request.request_type, part, str(request.idx)), [])
        return found


def canonical(value: Any) -> str:
    """One text for equal JSON values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _distinct(candidates: Sequence[Recorded]) -> list[Recorded]:
    return list({canonical(one.responses): one for one in reversed(candidates)}.values())[::-1]
