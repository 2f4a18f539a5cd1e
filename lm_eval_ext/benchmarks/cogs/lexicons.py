"""What stands in for the 21 context-controlled items (fact sheet, "COGS").

Replacing the key words, in sentences, logical forms and whole files.

One engine serves every lexicon. Applied to the unmodified files with the published lexicons it
gives the published variants byte for byte.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.lexicon import SHAPES, draw_words

ITEMS = (
    "hedgehog", "shark", "cockroach", "Lina", "Paula", "Charlie", "baked", "bake", "shattered",
    "shatter", "crawl", "cobra", "hippo", "blessed", "bless", "squeezed", "squeeze", "teleported",
    "teleport", "shipped", "ship",
)  # fmt: skip
"""The items in the authors' order, in which strings are drawn for them. A verb's inflected form
and its lemma are two items and get two strings."""

UNMODIFIED, TOKENS, FRESH = "unmodified", "tokens", "fresh"
SEEDS = MappingProxyType(
    {"random_long": 555, "random_short": 666, "cvcv_long": 777, "cvcv_short": 888}
)
"""The published string lexicons: the seeds of Python's generator that give them."""

LEXICONS = (UNMODIFIED, *SEEDS, TOKENS, FRESH)

OTHER_WORDS = frozenset({*(item.lower() for item in ITEMS), "grayson", "scarlett"})
"""Words of COGS that the list of English words does not hold and that are long enough (seven
letters) to be drawn. With that list they cover every word of every file of COGS; a fixed set
instead of the files, so that a seed gives the same words wherever it is used."""


def replacements(
    lexicon: str,
    *,
    seed: int | None = None,
    shape: str | None = None,
    items: Sequence[str] = ITEMS,
) -> Mapping[str, str]:
    """Returns what each item becomes.

    Args:
        lexicon: One of :data:`LEXICONS`. ``unmodified`` replaces nothing, ``tokens`` puts
            ``[w_0]`` to ``[w_20]``, ``fresh`` draws new words.
        seed: For ``fresh``, what the words depend on. For a published string lexicon, another
            seed than the published one.
        shape: For ``fresh``, what the words look like: one of the published lexicons' names.
        items: What is replaced; at most 21. The first item gets the first word in any case.

    Raises:
        OptionError: For an unknown lexicon, a seed or a shape where nothing is drawn, or none
            where ``fresh`` wants them.
    """
    if lexicon not in LEXICONS:
        raise OptionError(f"no COGS lexicon {lexicon!r}; use {', '.join(LEXICONS)}")
    if lexicon == FRESH:
        words = _fresh_words(seed, shape)
    elif shape is not None:
        raise OptionError(f"the lexicon {lexicon} has its shape; a shape is for {FRESH} only")
    elif lexicon in SEEDS:
        rng = random.Random(SEEDS[lexicon] if seed is None else seed)
        words = draw_words(SHAPES[lexicon], len(ITEMS), rng)
    elif seed is not None:
        raise OptionError(f"the lexicon {lexicon} draws nothing, so a seed changes nothing")
    else:
        words = [f"[w_{i}]" for i in range(len(ITEMS))] if lexicon == TOKENS else list(items)
    return MappingProxyType(dict(zip(items, words[: len(items)], strict=True)))


def _fresh_words(seed: int | None, shape: str | None) -> list[str]:
    """Draws words that are neither English nor COGS's.

    The generator is seeded with text, so that no seed gives the published strings again.
    """
    from lm_eval_ext.lexicon.words import is_english

    if not isinstance(seed, int) or isinstance(seed, bool):
        raise OptionError(f"the lexicon {FRESH} wants a seed, a whole number; it is {seed!r}")
    if shape is None or shape not in SHAPES:
        raise OptionError(f"no shape {shape!r} of words; use {', '.join(SHAPES)}")
    rng = random.Random(f"COGS, {shape}, seed {seed}")
    return draw_words(SHAPES[shape], len(ITEMS), rng, taken=OTHER_WORDS, refused=is_english)


COLUMNS = 3
"""Sentence, logical form, type; tab-separated, without a header and without quoting."""


def substitute(text: str, words: Mapping[str, str], *, leading_space: bool = False) -> str:
    """Replaces whole tokens of a sentence or a logical form.

    Args:
        text: Tokens separated by whitespace; rejoined with single spaces.
        words: What each token becomes, case-sensitively; others stay.
        leading_space: Whether a text that starts with a replaced token gets a space before it
            (the paper's appendix B: some tokenizers know an added token only so).
    """
    tokens = text.split()
    replaced = " ".join(words.get(token, token) for token in tokens)
    if leading_space and tokens and words.get(tokens[0], tokens[0]) != tokens[0]:
        return f" {replaced}"
    return replaced


def substitute_lines(
    lines: Iterable[str], words: Mapping[str, str], *, leading_space: bool = False
) -> Iterator[str]:
    """Replaces the words in the first two columns of a file's lines, and leaves the type.

    Raises:
        DataError: For a line that has not three columns; its number is named.
    """
    for number, line in enumerate(lines, start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != COLUMNS:
            raise DataError(
                f"line {number}: {len(columns)} columns; a COGS file has sentence, logical form "
                "and type, separated by tabs"
            )
        sentence, form, kind = columns
        new = (substitute(text, words, leading_space=leading_space) for text in (sentence, form))
        yield "\t".join((*new, kind)) + "\n"


def substitute_file(
    source: Path, target: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> int:
    """Writes a variant of a COGS file, whole or not at all.

    Returns:
        How many lines it has.

    Raises:
        DataError: If the source cannot be read or has a line that is none of COGS's.
        OptionError: If the target cannot be written.
    """
    try:
        with source.open(encoding="utf-8", newline="\n") as lines, atomic_text(target) as out:
            count = 0
            for line in substitute_lines(lines, words, leading_space=leading_space):
                out.write(line)
                count += 1
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source}: cannot be read ({error})") from None
    return count
