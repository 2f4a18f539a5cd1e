"""From stimulus files, or our own sentences, to lm-eval's documents."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

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
"""The contexts of each verb pair: the one that introduces an entity, and the other one."""

PAIRS = {pair: (pair, "_".join(reversed(pair.split("_")))) for pair in SINGLE}
"""Clauses in both orders: the one that introduces an entity first, or second."""

CONTINUATIONS = {"ref": "coref", "nonref": "noncoref"}
"""By the end of an id: about the entity, or about the noun that introduced none."""

Row = Mapping[str, Any]
"""A line of a stimulus file."""


class Options(Exact):
    """The options of a task: ``set`` is ``single`` or ``pairs``, or our own pairs, ``mini``."""

    set: Literal["single", "pairs", "mini"] = "pairs"


@loader(prefix="discourse_entities_", options=Options)
def dataset(options: Options) -> LoadingResult:
    """Loads a set for lm-eval.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    if options.set == "mini":
        return pairs(written(embedded(__file__, "mini.yaml")["items"]), "mini.yaml")
    file = require("discourse_entities", options.set)
    documents = single if options.set == "single" else pairs
    return TaskData(
        documents=documents(read(file.path), str(file.path)), provenance=describe([file])
    )


def read(path: Path) -> list[Row]:
    """Reads a stimulus file: JSON in lines.

    Raises:
        DataError: A line is not a stimulus; the message names it.
    """
    rows: list[Row] = []
    for place, line in lines_of(path):
        try:
            rows.append({**json.loads(line)})
            if not {"id", "type"} <= rows[-1].keys():
                raise TypeError("no id or no type")
        except (ValueError, TypeError) as error:
            raise DataError(f"{place}: not a stimulus ({error})") from None
    return rows


def single(rows: Iterable[Row], place: str) -> list[dict[str, Any]]:
    """Documents of an item and a verb pair: both continuations after both contexts.

    The continuations differ from their first word on, which is the pronoun.

    Raises:
        DataError: A context has no partner.
    """
    rows = list(rows)
    items = dict.fromkeys(row["id"].removesuffix(f"_{row['type']}") for row in rows)
    documents = []
    for item, (pair, contexts) in product(items, SINGLE.items()):
        chosen = _partners(rows, [(f"{item}_{one}", "") for one in contexts], place)
        asked = [asked for row in chosen for asked in _split(row["i_sentence"], row["s_sentence"])]
        documents.append({"id": f"{item}/{pair}", "item": item, "pair": pair, **_columns(asked)})
    return documents


def pairs(rows: Iterable[Row], place: str) -> list[dict[str, Any]]:
    """Documents of an item, a verb pair and a kind of continuation: nouns and clauses in any order.

    Each of the four contexts has the expected continuation and the other one.

    Raises:
        DataError: A context has no partner.
    """
    rows = list(rows)
    items = dict.fromkeys(row["id"].partition(f"_{row['type']}_")[0] for row in rows)
    documents = []
    for item, (pair, both), (ending, kind) in product(items, PAIRS.items(), CONTINUATIONS.items()):
        orders = list(product(both, ("1", "2")))
        keys = [(f"{item}_{type_}_{ending}", nouns) for type_, nouns in orders]
        asked = [
            (row["prompt"], row[f"{which}_continuation"])
            for row in _partners(rows, keys, place)
            for which in ("exp", "unexp")
        ]
        documents.append(
            {
                "id": f"{item}/{pair}/{kind}",
                "item": item,
                "pair": pair,
                "kind": kind,
                "clauses": [("second", "first")[type_ == pair] for type_, _ in orders],
                "nouns": [nouns for _, nouns in orders],
                **_columns(asked),
            }
        )
    return documents


def _partners(rows: Sequence[Row], keys: Sequence[tuple[str, str]], place: str) -> list[Row]:
    """The rows with these ids and orders of nouns."""
    by_key = {(row["id"], str(row.get("order", ""))): row for row in rows}
    if lacking := [" ".join(key).strip() for key in keys if key not in by_key]:
        raise DataError(f"{place}: no stimulus {lacking[0]!r}, so its partners cannot be compared")
    return [by_key[key] for key in keys]


def _split(*sentences: str) -> Iterator[tuple[str, str]]:
    """Contexts and continuations of sentences, which are alike up to a word."""
    words = [sentence.split() for sentence in sentences]
    alike = next(n for n, some in enumerate(zip(*words, strict=False)) if len({*some}) > 1)
    return ((" ".join(one[:alike]), " ".join(one[alike:])) for one in words)


def _columns(asked: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """What is asked; some continuations of the authors' end in a space, which is not scored."""
    return {
        "context": [context for context, _ in asked],
        "continuation": [f" {continuation.strip()}" for _, continuation in asked],
    }


def written(items: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Our own sentences as rows of a stimulus file."""
    for item, (pair, both), ending in product(items, PAIRS.items(), CONTINUATIONS):
        for type_, order in product(both, (1, 2)):
            nouns = item["nouns"][:: 1 if order == 1 else -1]
            introduced = type_ != pair  # the place of the noun with the entity
            expected = nouns[introduced == (ending == "ref")]
            (other,) = {*nouns} - {expected}
            yield {
                "id": f"{item['item']}_{type_}_{ending}",
                "type": type_,
                "order": order,
                "prompt": item["contexts"][type_].format(*nouns),
                "exp_continuation": item[ending].format(expected.split()[-1]),
                "unexp_continuation": item[ending].format(other.split()[-1]),
            }
