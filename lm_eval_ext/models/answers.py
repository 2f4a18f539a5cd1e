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
        # By the fields that rows name; each row with its place in the order of all.
        self._by_part: dict[tuple[str, ...], dict[Key, list[tuple[int, Recorded]]]] = defaultdict(
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
        """Adds the answers to one request; the same ones again, one after the other, count once."""
        key = self._key(request_type, arguments, doc, idx)
        known = self._by_key[key]
        document = (key, canonical(doc))
        of_document = self._by_document[document]
        if of_document and of_document[-1].responses == recorded.responses:
            return  # once per filter in lm-eval's logs
        if known and known[0].responses != recorded.responses:
            self._ambiguous.add(key)
        known.append(recorded)
        of_document.append(recorded)
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

        Of different answers to the same request, those to the same document count. Rows that
        name a part of a document are asked where no row has the whole request.
        """
        key = self._key(request.request_type, request.args, request.doc, request.idx)
        known = self._by_key.get(key)
        if known is None:
            return self._by_document_part(request)
        if key not in self._ambiguous:
            return known[:1]
        return self._by_document.get((key, canonical(request.doc))) or known

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
