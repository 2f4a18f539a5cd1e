"""Putting the novel tokens into a tokenizer's files, by the first way whose round trip is exact.

The files are edited, not saved anew, so that all else in them stays as it was. What counts is
what ``AutoTokenizer`` makes of them: for some classes (T5, Llama) transformers 5 rebuilds the
tokenizer from its vocabulary and ignores the rest of ``tokenizer.json``.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lm_eval_ext.benchmarks.cogs.roundtrip import (
    NOVEL_TOKENS,
    OLD_TEXTS,
    find_failure,
    find_novel_failure,
    ids_by_token,
    load_tokenizer,
)
from lm_eval_ext.errors import OptionError

Document: TypeAlias = dict[str, Any]

TOKENIZER, CONFIG, ADDED = "tokenizer.json", "tokenizer_config.json", "added_tokens.json"

NOT_SPECIAL = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
"""Stripping would swallow the spaces around a token, and special tokens are not decoded."""


@dataclass(frozen=True)
class Tokens:
    """What became of a tokenizer.

    Attributes:
        ids: Of the novel tokens, in their order.
        old_ids: All that were in the vocabulary before.
        way: How the tokens were put in; a key of :data:`WAYS`.
        notes: What else was changed, one line each.
    """

    ids: tuple[int, ...]
    old_ids: frozenset[int]
    way: str
    notes: tuple[str, ...]


def _plain(document: Document) -> None:
    _append_added(document, normalized=False)


def _normalized(document: Document) -> None:
    _append_added(document, normalized=True)


def _append_added(document: Document, *, normalized: bool) -> None:
    first = max(
        [len(document["model"]["vocab"]), *(token["id"] + 1 for token in document["added_tokens"])]
    )
    document["added_tokens"] += [
        {"id": number, "content": token, "normalized": normalized, **NOT_SPECIAL}
        for number, token in enumerate(NOVEL_TOKENS, start=first)
    ]


def _piece(document: Document) -> None:
    """Puts pieces with a space mark into a unigram vocabulary.

    A piece's score is a log-probability: zero outweighs every way to spell the token. Pieces
    are numbered by their place, so tokens that were added behind the vocabulary come in first.
    """
    vocabulary = document["model"]["vocab"]
    behind = {
        token["id"]: token["content"]
        for token in document["added_tokens"]
        if token["id"] >= len(vocabulary)
    }
    lowest = min(score for _, score in vocabulary)
    for number in range(len(vocabulary), max(behind, default=-1) + 1):
        vocabulary.append([behind.get(number, f"<hole_{number}>"), lowest])
    vocabulary += [[f"▁{token}", 0.0] for token in NOVEL_TOKENS]


WAYS: dict[str, Callable[[Document], None]] = {
    "piece": _piece,
    "added": _plain,
    "normalized": _normalized,
}
"""``piece``: an ordinary piece of a unigram vocabulary with the space before it (T5), so that a
token has one id at the start and in the middle; ``added``: an added token that is looked for in
the text as it is, the spaces staying with its neighbours (byte-level BPE, WordPiece, BPE with
Metaspace); ``normalized``: one that is looked for after normalisation (Llama tokenizers whose
normaliser puts a space before each stretch of text, which doubles it after an added token)."""


def put_tokens(folder: Path, source: Path) -> Tokens:
    """Puts the novel tokens into the tokenizer of a folder, which is a copy of ``source``.

    Raises:
        OptionError: If the tokenizer has the tokens already, is of a kind that cannot be edited,
            or no way leads to an exact round trip. Messages name ``source``.
    """
    old = load_tokenizer(source)
    present = [token for token, ids in ids_by_token(old).items() if ids]
    if present:
        raise OptionError(
            f"{source}: the tokenizer has {present[0]} already; start from a model without novel "
            "tokens, or see what it does with `lm-eval-ext cogs check-tokens`"
        )
    if not (folder / TOKENIZER).is_file():
        old.save_pretrained(folder)
    if not (folder / TOKENIZER).is_file():
        raise OptionError(
            f"{source}: {type(old).__name__} has no {TOKENIZER}; only tokenizers of the library "
            "`tokenizers` are supported"
        )
    document = _read(folder / TOKENIZER)
    notes = _no_clean_up(folder, document, old)
    _write(folder / TOKENIZER, document)
    failure = find_failure(load_tokenizer(folder), OLD_TEXTS)
    if failure:
        raise OptionError(f"{source}: the tokenizer does not keep COGS's text: {failure}")
    failures = []
    for way, edit in WAYS.items():
        if (way == "piece") != isinstance(document["model"]["vocab"], list):
            continue
        edited = copy.deepcopy(document)
        edit(edited)
        _write(folder / TOKENIZER, edited)
        tokenizer = load_tokenizer(folder)
        failure = find_novel_failure(tokenizer) or _find_change(old, tokenizer)
        if not failure:
            ids = tuple(min(ids) for ids in ids_by_token(tokenizer).values())
            if way != "piece":
                _tell_slow_tokenizers(folder, edited)
            return Tokens(ids, frozenset(old.get_vocab().values()), way, notes)
        failures.append(failure)
    raise OptionError(f"{source}: no exact round trip with novel tokens: {failures[0]}")


def _find_change(old: Any, new: Any) -> str | None:
    """Whether old texts keep their ids and old tokens theirs."""
    vocabulary = new.get_vocab()
    for piece, number in old.get_vocab().items():
        if vocabulary.get(piece) != number:
            return f"the id of {piece!r} changes from {number} to {vocabulary.get(piece)}"
    for text in OLD_TEXTS:
        if old.encode(text) != new.encode(text):
            return f"the tokens of {text!r} change"
    return None


def _no_clean_up(folder: Path, document: Document, old: Any) -> tuple[str, ...]:
    """Switches off what removes the space before a full stop in decoding."""
    notes = []
    if old.clean_up_tokenization_spaces:
        config = _read(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        _write(folder / CONFIG, config | {"clean_up_tokenization_spaces": False})
        notes.append("clean_up_tokenization_spaces set to false: it removes spaces of COGS's text")
    decoder = document["decoder"] or {}
    if decoder.get("type") == "WordPiece" and decoder["cleanup"]:
        decoder["cleanup"] = False
        notes.append("the decoder's cleanup set to false: it removes spaces of COGS's text")
    return tuple(notes)


def _tell_slow_tokenizers(folder: Path, document: Document) -> None:
    """Lists added tokens where the folder lists them a second time, as transformers 4 did."""
    added = document["added_tokens"][-len(NOVEL_TOKENS) :]
    config = _read(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    if "added_tokens_decoder" in config:
        for token in added:
            entry = {key: value for key, value in token.items() if key != "id"}
            config["added_tokens_decoder"][str(token["id"])] = entry
        _write(folder / CONFIG, config)
    if (folder / ADDED).is_file():
        listed = {token["content"]: token["id"] for token in added}
        _write(folder / ADDED, _read(folder / ADDED) | listed)


def _read(file: Path) -> Document:
    document: Document = json.loads(file.read_text(encoding="utf-8"))
    return document


def _write(file: Path, document: Document) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2)
    file.write_text(f"{text}\n", encoding="utf-8")
