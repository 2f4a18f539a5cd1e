"""Whether a tokenizer reads each novel token as one token and writes COGS's text back exactly.

The paper's appendix B lists what goes wrong: a space before or after an added token is lost or
doubled, or the token falls into pieces at the start of a text. Exact match counts all of it as
wrong answers.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.cogs.lexicons import TOKENS, replacements
from lm_eval_ext.benchmarks.cogs.substitute import substitute
from lm_eval_ext.errors import DataError, OptionError

NOVEL_TOKENS = tuple(replacements(TOKENS).values())
"""``[w_0]`` to ``[w_20]``."""

SPACE_MARKS = "▁Ġ "
"""How vocabularies write the space that belongs to a piece."""

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
"""A novel token at the start, in the middle, at the end, before and after every mark of COGS's
notation, and beside another novel token."""


def load_tokenizer(folder: Path) -> Any:
    """Loads a tokenizer as lm-eval does, but never from the network.

    Raises:
        OptionError: If the folder is none or transformers cannot make a tokenizer of it.
    """
    if not folder.is_dir():
        raise OptionError(
            f"{folder} is no folder; name the folder of a model in the Hugging Face format "
            "(config.json, tokenizer and weights), for models are not downloaded here"
        )
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # noqa: BLE001 - whatever a broken file leads transformers to
        raise OptionError(f"{folder}: no tokenizer can be loaded ({one_line(error)})") from None


def one_line(error: Exception) -> str:
    """An error of transformers, which may be a page long, for a message of ours."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def novel_texts() -> Iterator[str]:
    """Every template with every novel token; the next one stands beside it."""
    for number, token in enumerate(NOVEL_TOKENS):
        other = NOVEL_TOKENS[(number + 1) % len(NOVEL_TOKENS)]
        for template in TEMPLATES:
            yield template.format(a=token, b=other)


def texts_of(file: Path) -> Iterator[str]:
    """Sentences and logical forms of a COGS file, the key words replaced by novel tokens.

    Raises:
        DataError: If the file cannot be read or a line has no two columns.
    """
    words = replacements(TOKENS)
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                columns = line.rstrip("\n").split("\t")
                if len(columns) < 2:  # noqa: PLR2004
                    raise DataError(
                        f"{file}: line {number} has one column; a COGS file has a sentence and a "
                        "logical form, separated by a tab"
                    )
                yield from (substitute(text, words) for text in columns[:2])
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from None


def ids_by_token(tokenizer: Any) -> dict[str, set[int]]:
    """The ids that stand for each novel token, with a space before it or without."""
    ids: dict[str, set[int]] = {token: set() for token in NOVEL_TOKENS}
    for piece, number in tokenizer.get_vocab().items():
        token = piece.lstrip(SPACE_MARKS)
        if token in ids:
            ids[token].add(number)
    return ids


def find_failure(tokenizer: Any, texts: Iterable[str]) -> str | None:
    """Reads texts and writes them back as lm-eval's ``hf`` model does.

    That is: with the tokens that the tokenizer puts around a text, and special tokens skipped
    in decoding.

    Returns:
        What is wrong with the first text that fails; None if all are exact.
    """
    token_by_id = {
        number: token for token, ids in ids_by_token(tokenizer).items() for number in ids
    }
    for text in texts:
        ids = tokenizer.encode(text)
        wanted = [word for word in text.split() if word in NOVEL_TOKENS]
        if [token_by_id[number] for number in ids if number in token_by_id] != wanted:
            pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
            return f"{text!r} is read as {pieces!r}, where a novel token is not one token"
        back = tokenizer.decode(ids, skip_special_tokens=True)
        if back != text:
            return f"{text!r} comes back as {back!r}"
    return None


def find_novel_failure(tokenizer: Any) -> str | None:
    """Looks at the vocabulary, then at :data:`OLD_TEXTS` and :func:`novel_texts`.

    Returns:
        What is wrong; None if nothing is.
    """
    ids = ids_by_token(tokenizer)
    missing = [token for token in NOVEL_TOKENS if not ids[token]]
    if missing:
        return f"{missing[0]} is not in the vocabulary ({len(missing)} of {len(ids)} are missing)"
    for token in NOVEL_TOKENS:
        if not all(tokenizer.decode([number], skip_special_tokens=True) for number in ids[token]):
            return f"{token} is a special token, which lm-eval leaves out of answers"
    return find_failure(tokenizer, (*OLD_TEXTS, *novel_texts()))
