"""What stands in for the 21 context-controlled items (fact sheet, "COGS")."""

import random
from collections.abc import Mapping
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

UNMODIFIED, TOKENS = "unmodified", "tokens"
SEEDS = MappingProxyType(
    {"random_long": 555, "random_short": 666, "cvcv_long": 777, "cvcv_short": 888}
)
"""The published string lexicons: the seeds of Python's generator that give them."""

LEXICONS = (UNMODIFIED, *SEEDS, TOKENS)


def replacements(lexicon: str, *, seed: int | None = None) -> Mapping[str, str]:
    """Returns what each item becomes.

    Args:
        lexicon: One of :data:`LEXICONS`. ``unmodified`` replaces nothing, ``tokens`` puts
            ``[w_0]`` to ``[w_20]``.
        seed: For a string lexicon, another seed than the published one.

    Raises:
        OptionError: For an unknown lexicon, or a seed where nothing is drawn.
    """
    if lexicon not in LEXICONS:
        raise OptionError(f"no COGS lexicon {lexicon!r}; use {', '.join(LEXICONS)}")
    if lexicon not in SEEDS:
        if seed is not None:
            raise OptionError(f"the lexicon {lexicon} draws nothing, so a seed changes nothing")
        words = [f"[w_{number}]" for number in range(len(ITEMS))] if lexicon == TOKENS else ITEMS
        return MappingProxyType(dict(zip(ITEMS, words, strict=True)))
    rng = random.Random(SEEDS[lexicon] if seed is None else seed)
    return MappingProxyType(
        dict(zip(ITEMS, draw_words(SHAPES[lexicon], len(ITEMS), rng), strict=True))
    )
