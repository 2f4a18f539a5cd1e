"""From stimulus files, or our own sentences, to lm-eval's documents."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lm_eval_ext.data import require
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.loading import LoadingResult, TaskData, loader
from lm_eval_ext.harness.provenance import describe
from lm_eval_ext.reading import Exact, embedded, lines_of

SINGLE = {
    "affirmative_negation": ("affirmative", "negated"),
    "affirmative_modal": ("affirmative", "modal"),
    "know_doubt": ("know", "doubt"),
    "managed_failed": ("managed", "failed"),
}
"""The contexts of each verb pair: the one that introduces an entity, and the one that does not."""

PAIRS = {pair: (pair, "_".join(reversed(pair.split("_")))) for pair in SINGLE}
"""Clauses in both orders: the one that introduces an entity first, or second."""

CONTINUATIONS = {"ref": "coref", "nonref": "noncoref"}
"""By the end of an id: about the entity, or about the noun that introduced none."""

NOUN_ORDERS = ("1", "2")
"""The nouns of an item in the order of the file, and the other way round."""

Row = Mapping[str, Any]
"""A line of a stimulus file."""

Document = dict[str, str | list[str]]


class Request(NamedTuple):
    """A text, and the continuation whose log-probability after it is requested."""

    context: str
    continuation: str


class Options(Exact):
    """The options of a task: ``set`` is ``single`` or ``pairs``, or our own pairs, ``mini``."""

    set: Literal["single", "pairs", "mini"] = "pairs"


@loader(prefix="discourse_entities_", options=Options)
def dataset(options: Options) -> LoadingResult:
    """Load a set for lm-eval.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    if options.set == "mini":
        rows = written(embedded(__file__, "mini.yaml")["items"])
        return pairs(rows, "mini.yaml")
    file = require("discourse_entities", options.set)
    make_documents = single if options.set == "single" else pairs
    documents = make_documents(read(file.path), str(file.path))
    return TaskData(documents=documents, provenance=describe([file]))


def read(path: Path) -> list[Row]:
    """Read a stimulus file: JSON in lines.

    Raises:
        DataError: A line is not a stimulus; the message names it.
    """
    rows: list[Row] = []
    for position, line in lines_of(path):
        try:
            row = {**json.loads(line)}
            if "id" not in row or "type" not in row:
                raise TypeError("no id or no type")
        except (ValueError, TypeError) as error:
            raise DataError(f"{position}: not a stimulus ({error})") from None
        rows.append(row)
    return rows


def single(rows: Iterable[Row], location: str) -> list[Document]:
    """Return a document for each item and verb pair: both continuations after both contexts.

    The continuations differ from their first word on, which is the pronoun.

    Args:
        rows: The stimuli.
        location: Where they are from, for the error.

    Raises:
        DataError: A context has no partner.
    """
    rows = list(rows)
    items = dict.fromkeys(row["id"].removesuffix(f"_{row['type']}") for row in rows)
    documents: list[Document] = []
    for item, (pair, contexts) in product(items, SINGLE.items()):
        keys = [(f"{item}_{context}", "") for context in contexts]
        requests: list[Request] = []
        for row in _partners(rows, keys, location):
            requests += _split(row["i_sentence"], row["s_sentence"])
        documents.append({"id": f"{item}/{pair}", "item": item, "pair": pair, **_columns(requests)})
    return documents


def pairs(rows: Iterable[Row], location: str) -> list[Document]:
    """Return a document for each item, verb pair and kind of continuation.

    Its four contexts have the nouns and the clauses in either order; each has the expected
    continuation and the unexpected one.

    Args:
        rows: The stimuli.
        location: Where they are from, for the error.

    Raises:
        DataError: A context has no partner.
    """
    rows = list(rows)
    items = dict.fromkeys(row["id"].partition(f"_{row['type']}_")[0] for row in rows)
    documents: list[Document] = []
    for item, (pair, types), (ending, kind) in product(items, PAIRS.items(), CONTINUATIONS.items()):
        clauses: list[str] = []
        nouns: list[str] = []
        keys: list[tuple[str, str]] = []
        for type_, noun_order in product(types, NOUN_ORDERS):
            clauses.append("first" if type_ == pair else "second")
            nouns.append(noun_order)
            keys.append((f"{item}_{type_}_{ending}", noun_order))
        requests: list[Request] = []
        for row in _partners(rows, keys, location):
            requests.append(Request(row["prompt"], row["exp_continuation"]))
            requests.append(Request(row["prompt"], row["unexp_continuation"]))
        documents.append(
            {
                "id": f"{item}/{pair}/{kind}",
                "item": item,
                "pair": pair,
                "kind": kind,
                "clauses": clauses,
                "nouns": nouns,
                **_columns(requests),
            }
        )
    return documents


def _partners(rows: Sequence[Row], keys: Sequence[tuple[str, str]], location: str) -> list[Row]:
    """Return the rows with these ids and orders of nouns."""
    by_key = {(row["id"], str(row.get("order", ""))): row for row in rows}
    for key in keys:
        if key not in by_key:
            stimulus = " ".join(key).strip()
            raise DataError(
                f"{location}: no stimulus {stimulus!r}, so its partners cannot be compared"
            )
    return [by_key[key] for key in keys]


def _split(sentence: str, other_sentence: str) -> list[Request]:
    """Split two sentences before the first word in which they differ."""
    words = sentence.split()
    other_words = other_sentence.split()
    shared = 0
    while words[shared] == other_words[shared]:
        shared += 1
    return [
        Request(" ".join(words[:shared]), " ".join(words[shared:])),
        Request(" ".join(other_words[:shared]), " ".join(other_words[shared:])),
    ]


def _columns(requests: Sequence[Request]) -> dict[str, list[str]]:
    """Return the requests as columns.

    Some continuations of the authors' end in a space, which is not scored.
    """
    return {
        "context": [request.context for request in requests],
        "continuation": [f" {request.continuation.strip()}" for request in requests],
    }


def written(items: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield our own sentences as rows of a stimulus file."""
    for item, (pair, types), ending in product(items, PAIRS.items(), CONTINUATIONS):
        for type_, order in product(types, (1, 2)):
            nouns = list(item["nouns"])
            if order == 2:  # noqa: PLR2004 - the second of both orders
                nouns.reverse()
            with_entity, without_entity = nouns
            if type_ != pair:  # the second clause introduces the entity
                without_entity, with_entity = nouns
            expected, unexpected = with_entity, without_entity
            if ending == "nonref":
                expected, unexpected = without_entity, with_entity
            yield {
                "id": f"{item['item']}_{type_}_{ending}",
                "type": type_,
                "order": order,
                "prompt": item["contexts"][type_].format(*nouns),
                "exp_continuation": item[ending].format(expected.split()[-1]),
                "unexp_continuation": item[ending].format(unexpected.split()[-1]),
            }
