"""Lexicons: replacements for the 21 context-controlled items (paper, sections 2 to 4).

One substitution serves every lexicon, in sentences, logical forms and whole files. With the
published lexicons it reproduces the published variants of the files byte for byte.
"""

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import SHAPES, draw_words, fresh_words, is_english

ITEMS = (
    "hedgehog", "shark", "cockroach", "Lina", "Paula", "Charlie", "baked", "bake", "shattered",
    "shatter", "crawl", "cobra", "hippo", "blessed", "bless", "squeezed", "squeeze", "teleported",
    "teleport", "shipped", "ship",
)  # fmt: skip
"""The items (key words) in the authors' order, in which strings are drawn for them. A verb's
inflected form and its lemma are two items with two strings."""

UNMODIFIED, TOKENS, FRESH = "unmodified", "tokens", "fresh"
SEEDS = MappingProxyType(
    {"random_long": 555, "random_short": 666, "cvcv_long": 777, "cvcv_short": 888}
)
"""The published lexicons of strings, and the seeds of Python's generator that produce them."""

LEXICONS = (UNMODIFIED, *SEEDS, TOKENS, FRESH)
"""The lexicons that have tasks of their own."""

OTHER_WORDS = frozenset({*(item.lower() for item in ITEMS), "grayson", "scarlett"})
"""Words of COGS that are not in the list of English words but long enough (seven letters) to be
drawn. Together they cover every word of every COGS file. A fixed set, not read from the files, so
that a seed gives the same words on every machine."""


def replacements(
    lexicon: str,
    *,
    seed: int | None = None,
    shape: str | None = None,
    fresh: int | None = None,
    items: Sequence[str] = ITEMS,
) -> Mapping[str, str]:
    """Return the replacement of each item.

    Args:
        lexicon: One of :data:`LEXICONS`. ``unmodified`` replaces nothing, ``tokens`` uses
            ``[w_0]`` to ``[w_20]``, ``fresh`` draws new words.
        seed: The seed of the lexicon ``fresh``, which needs this or ``fresh``.
        shape: The published lexicon whose form the words of ``fresh`` have; by default
            ``cvcv_short``.
        fresh: The seed for all benchmarks, instead of ``seed``; for ``fresh``.
        items: The items to replace, at most 21; the first one gets the first word.

    Raises:
        OptionError: The lexicon or the shape is unknown, or another option is missing or would be
            ignored.
    """
    if lexicon not in LEXICONS:
        raise OptionError(f"no COGS lexicon {lexicon!r}; use {', '.join(LEXICONS)}")
    if lexicon != FRESH:
        for name, value in (("seed", seed), ("shape", shape), ("fresh", fresh)):
            if value is not None:
                raise OptionError(
                    f"{name} is only for the lexicon {FRESH}; the words of {lexicon} are fixed: "
                    "leave it out, or use fresh"
                )
    if lexicon == FRESH:
        words = _fresh_words(seed, shape or "cvcv_short", fresh)
    elif lexicon == TOKENS:
        words = [f"[w_{number}]" for number in range(len(ITEMS))]
    elif lexicon == UNMODIFIED:
        words = list(items)
    else:
        words = draw_words(SHAPES[lexicon], len(ITEMS), random.Random(SEEDS[lexicon]))
    return MappingProxyType(dict(zip(items, words, strict=False)))


def _fresh_words(seed: int | None, shape: str, fresh: int | None) -> list[str]:
    """Draw words that are neither English nor in COGS.

    The generator is seeded with text, so no seed reproduces the published strings.
    """
    if shape not in SHAPES:
        raise OptionError(f"no shape {shape!r} of words; use {', '.join(SHAPES)}")
    count = len(ITEMS)
    if fresh is not None:
        return fresh_words(
            SHAPES[shape],
            count,
            fresh,
            use=f"COGS, {shape}",
            taken=OTHER_WORDS,
            refused=is_english,
        )
    if seed is None:
        raise OptionError(f"the lexicon {FRESH} needs a seed, a whole number")
    rng = random.Random(f"COGS, {shape}, seed {seed}")
    return draw_words(SHAPES[shape], count, rng, taken=OTHER_WORDS, refused=is_english)


def substitute(text: str, words: Mapping[str, str], *, leading_space: bool = False) -> str:
    """Replace whole tokens of a sentence or a logical form.

    Matching is case-sensitive; tokens are joined with single spaces. With ``leading_space``, a text
    that starts with a replaced token gets a space before it (paper, appendix B: some tokenizers
    recognize an added token only after a space).
    """
    tokens = text.split()
    replaced = " ".join(map(words.get, tokens, tokens))
    if leading_space and tokens and words.get(tokens[0], tokens[0]) != tokens[0]:
        return f" {replaced}"
    return replaced
