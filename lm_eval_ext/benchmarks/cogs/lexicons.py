"""What stands in for the 21 context-controlled items (fact sheet, "COGS")."""

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lm_eval_ext.errors import OptionError
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
    from lm_eval_ext.lexicon.english import is_english

    if not isinstance(seed, int) or isinstance(seed, bool):
        raise OptionError(f"the lexicon {FRESH} wants a seed, a whole number; it is {seed!r}")
    if shape is None or shape not in SHAPES:
        raise OptionError(f"no shape {shape!r} of words; use {', '.join(SHAPES)}")
    rng = random.Random(f"COGS, {shape}, seed {seed}")
    return draw_words(SHAPES[shape], len(ITEMS), rng, taken=OTHER_WORDS, refused=is_english)
