"""Novel tokens in a tokenizer's files: adding them, and checking the round trip of COGS's text.

The paper's appendix B lists the problems: a space before or after an added token is lost or
doubled, or the token is split at the start of a text. Exact match counts all of that as wrong
answers. :func:`put_tokens` therefore tries several ways and takes the first one that reads each
novel token as one token and reproduces every text exactly.

The files are edited instead of saved again, so that everything else in them stays. What counts is
the tokenizer that ``AutoTokenizer`` makes of them: for some classes (T5, Llama) transformers 5
rebuilds it from its vocabulary and ignores the rest of ``tokenizer.json``.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from lm_eval_ext.benchmarks.cogs.lexicons import SEEDS, TOKENS, UNMODIFIED, replacements, substitute
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.text import one_line

NOVEL_TOKENS = tuple(replacements(TOKENS).values())
"""``[w_0]`` to ``[w_20]``."""

SPACE_MARKS = "▁Ġ "
"""How vocabularies write a space at the start of a token."""

OLD_TEXTS = (
    "The farmer with a parcel was seen by five judges , Jack Quinn , Max Voss and Zoe Yu .",
    "A big quiet lazy wolf jumped over a DAMP BOX , five JUGS , a VIEW and CHEQ KLYNT RFW",
    "* wolf ( x _ 1 ) ; * parcel ( x _ 10 ) ; see . agent ( x _ 2 , x _ 1 ) AND "
    "see . theme ( x _ 2 , Zoe ) AND wolf . nmod . beside ( x _ 3 , x _ 45 )",
    "LAMBDA a . LAMBDA b . LAMBDA e . see . agent ( e , b ) AND see . theme ( e , a )",
    "sing . ccomp ( x _ 6 , x _ 7 ) AND sing . xcomp ( x _ 8 , x _ 9 )",
    "Zoe",
)
"""COGS's notation and every letter and digit, without a novel token."""

TEMPLATES = (
    "{a}",
    "{a} saw the parcel .",
    "A farmer saw {a} .",
    "The farmer believed that Zoe was seen by {a}",
    "{a} {b} the {a} {b} .",
    "* {a} ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , {b} )",
    "{a} . agent ( x _ 1 , {b} ) AND {a} . theme ( x _ 1 , x _ 4 ) AND {b} ( x _ 4 )",
    "see . agent ( {a} , {b} ) AND see . xcomp ( {b} , x _ 3 ) AND {a} . nmod . on ( x _ 4 , {b} )",
    "LAMBDA a . {a} ( a )",
    "LAMBDA a . LAMBDA e . {a} . agent ( e , a )",
)
"""A novel token at the start, in the middle and at the end, before and after every mark of COGS's
notation, and next to another novel token."""

Document: TypeAlias = dict[str, Any]

_BATCH = 1000
"""Texts that are encoded at a time; affects memory only."""

TOKENIZER, CONFIG, ADDED = "tokenizer.json", "tokenizer_config.json", "added_tokens.json"

NOT_SPECIAL = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
"""Stripping would remove the spaces around a token, and special tokens are not decoded."""


def load_tokenizer(folder: Path) -> Any:
    """Loads a tokenizer as lm-eval does, but from local files only.

    Raises:
        OptionError: The folder does not exist, or transformers cannot load it.
    """
    if not folder.is_dir():
        raise OptionError(
            f"{folder} is not a folder; name a local model in the Hugging Face format "
            "(config.json, tokenizer and weights); models are not downloaded"
        )
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # noqa: BLE001 - transformers raises many types for broken files
        raise OptionError(f"{folder}: no tokenizer can be loaded ({summary(error)})") from None


def summary(error: Exception) -> str:
    """One line about an error of transformers, whose message can be very long."""
    return one_line(f"{type(error).__name__}: {error}", limit=200)


@dataclass(frozen=True)
class Tokens:
    """The result of :func:`put_tokens`.

    Attributes:
        ids: Of the novel tokens, in their order.
        old_ids: All ids of the old vocabulary.
        way: How the tokens were added: a key of :data:`WAYS`.
        notes: Other changes, one line each.
    """

    ids: tuple[int, ...]
    old_ids: frozenset[int]
    way: str
    notes: tuple[str, ...]


def put_tokens(folder: Path, source: Path) -> Tokens:
    """Adds the novel tokens to the tokenizer in ``folder``, a copy of ``source``.

    Raises:
        OptionError: The tokenizer has the tokens already, cannot be edited, or has no exact round
            trip with any of :data:`WAYS`. Messages name ``source``.
    """
    old = load_tokenizer(source)
    present = [token for token, ids in ids_by_token(old).items() if ids]
    if present:
        raise OptionError(
            f"{source}: the tokenizer has {present[0]} already; use a model without novel tokens, "
            "or check this one with `lm-eval-ext cogs check-tokens`"
        )
    if not (folder / TOKENIZER).is_file():
        old.save_pretrained(folder)
    if not (folder / TOKENIZER).is_file():
        raise OptionError(
            f"{source}: {type(old).__name__} has no {TOKENIZER}; only tokenizers from the library "
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
                _list_for_slow_tokenizers(folder, edited)
            return Tokens(ids, frozenset(old.get_vocab().values()), way, notes)
        failures.append(failure)
    raise OptionError(f"{source}: no exact round trip with novel tokens: {failures[0]}")


def _append_added(document: Document, *, normalized: bool) -> None:
    first = max(
        [len(document["model"]["vocab"]), *(token["id"] + 1 for token in document["added_tokens"])]
    )
    document["added_tokens"] += [
        {"id": number, "content": token, "normalized": normalized, **NOT_SPECIAL}
        for number, token in enumerate(NOVEL_TOKENS, start=first)
    ]


def _piece(document: Document) -> None:
    """Appends pieces that start with a space to a unigram vocabulary.

    A piece's score is a log-probability, so 0 beats every other segmentation of the token. A
    piece's id is its position, so tokens that were added after the vocabulary move into it first.
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
    "added": partial(_append_added, normalized=False),
    "normalized": partial(_append_added, normalized=True),
}
"""The ways of adding a token, in the order in which they are tried.

``piece``: an ordinary piece of a unigram vocabulary, including the space before it (T5), so that a
token has the same id at the start and in the middle of a text. ``added``: an added token, matched
in the original text; spaces belong to its neighbours (byte-level BPE, WordPiece, BPE with
Metaspace). ``normalized``: an added token, matched after normalisation (Llama tokenizers that put
a space before each part of a text, which would double the space after an added token)."""


def _no_clean_up(folder: Path, document: Document, old: Any) -> tuple[str, ...]:
    """Disables the removal of spaces before punctuation in decoding; returns notes."""
    notes = []
    if old.clean_up_tokenization_spaces:
        config = _read(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        _write(folder / CONFIG, config | {"clean_up_tokenization_spaces": False})
        notes.append(
            "clean_up_tokenization_spaces set to false, since it removes spaces from COGS's text"
        )
    decoder = document["decoder"] or {}
    if decoder.get("type") == "WordPiece" and decoder["cleanup"]:
        decoder["cleanup"] = False
        notes.append("the decoder's cleanup set to false, since it removes spaces from COGS's text")
    return tuple(notes)


def _list_for_slow_tokenizers(folder: Path, document: Document) -> None:
    """Adds the tokens to the folder's second lists of added tokens, which transformers 4 wrote."""
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


def _find_change(old: Any, new: Any) -> str | None:
    """Describes a change of an old token's id or of an old text's tokens."""
    vocabulary = new.get_vocab()
    for piece, number in old.get_vocab().items():
        if vocabulary.get(piece) != number:
            return f"the id of {piece!r} changes from {number} to {vocabulary.get(piece)}"
    for text in OLD_TEXTS:
        if old.encode(text) != new.encode(text):
            return f"the tokens of {text!r} change"
    return None


def find_novel_failure(tokenizer: Any) -> str | None:
    """Checks vocabulary, :data:`OLD_TEXTS` and :func:`novel_texts`; describes a failure."""
    ids = ids_by_token(tokenizer)
    missing = [token for token in NOVEL_TOKENS if not ids[token]]
    if missing:
        return f"{missing[0]} is not in the vocabulary ({len(missing)} of {len(ids)} are missing)"
    for token in NOVEL_TOKENS:
        if not all(tokenizer.decode([number], skip_special_tokens=True) for number in ids[token]):
            return f"{token} is a special token, which lm-eval leaves out of answers"
    return find_failure(tokenizer, (*OLD_TEXTS, *novel_texts()))


def find_failure(tokenizer: Any, texts: Iterable[str]) -> str | None:
    """Encodes and decodes texts as lm-eval's ``hf`` model does; describes the first failure.

    That is, the tokenizer adds its own tokens around a text, and decoding skips special tokens.
    """
    token_by_id = {
        number: token for token, ids in ids_by_token(tokenizer).items() for number in ids
    }
    left = iter(texts)
    while part := list(islice(left, _BATCH)):
        encoded = tokenizer(part)["input_ids"]
        decoded = tokenizer.batch_decode(encoded, skip_special_tokens=True)
        for text, ids, back in zip(part, encoded, decoded, strict=True):
            wanted = [word for word in text.split() if word in NOVEL_TOKENS]
            if [token_by_id[number] for number in ids if number in token_by_id] != wanted:
                pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
                return f"{text!r} is encoded as {pieces!r}, where a novel token is not one token"
            if back != text:
                return f"{text!r} is decoded as {back!r}"
    return None


def ids_by_token(tokenizer: Any) -> dict[str, set[int]]:
    """The ids of each novel token, with and without a space before it."""
    ids: dict[str, set[int]] = {token: set() for token in NOVEL_TOKENS}
    for piece, number in tokenizer.get_vocab().items():
        token = piece.lstrip(SPACE_MARKS)
        if token in ids:
            ids[token].add(number)
    return ids


def novel_texts() -> Iterator[str]:
    """Every template with every novel token, and with the following one as its neighbour."""
    for number, token in enumerate(NOVEL_TOKENS):
        other = NOVEL_TOKENS[(number + 1) % len(NOVEL_TOKENS)]
        for template in TEMPLATES:
            yield template.format(a=token, b=other)


def texts_of(file: Path) -> Iterator[str]:
    """Sentences and logical forms of a COGS file under every published lexicon, each text once.

    Raises:
        DataError: The file cannot be read, or a line has only one column.
    """
    lexicons = [replacements(lexicon) for lexicon in (TOKENS, UNMODIFIED, *SEEDS)]
    seen: set[str] = set()
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                columns = line.rstrip("\n").split("\t")
                if len(columns) < 2:  # noqa: PLR2004
                    raise DataError(
                        f"{file}: line {number} has one column; a COGS file has a sentence and a "
                        "logical form, separated by a tab"
                    )
                texts = {substitute(text, words) for words in lexicons for text in columns[:2]}
                yield from sorted(texts - seen)
                seen |= texts
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None
