"""Lexicons: replacements for the 21 context-controlled items (paper, sections 2 to 4).

One substitution serves every lexicon, in sentences, logical forms and whole files. With the
published lexicons it reproduces the published variants of the files byte for byte.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.cogs.records import COLUMNS
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.lexicon import SHAPES, Shape, draw_words
from lm_eval_ext.lexicon.fresh import fresh_words

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
"""Those that have tasks of their own."""

_REDUCED = "bcdfghklmnprstvwz"
"""Consonants without j, q, x and y."""

REDUCED = MappingProxyType(
    {
        "cvcv_reduced_long": (999, Shape("syllables", range(15, 30), _REDUCED)),
        "cvcv_reduced_short": (9999, Shape("syllables", range(7, 15), _REDUCED)),
    }
)
"""Strings of fewer consonants, with the seeds of the authors' script (reformat_datasets.sh of
github najoungkim/cogs-with-pretraining at 68a10fd). They are not in the paper."""

NUMBERED = "tokens_randn"
"""``[w_`` and 150 to 159 random digits: ``[w_n]_randn`` of the authors' later script. Not in the
paper, and no seed is published: 555 is the script's default."""

_NUMBERED_SEED, _DIGITS = 555, range(150, 160)

UNPUBLISHED = (*REDUCED, NUMBERED)
"""In the authors' scripts only: for training data and, as ``cogs_lexicon``, for any task."""

OTHER_WORDS = frozenset({*(item.lower() for item in ITEMS), "grayson", "scarlett"})
"""Words of COGS that are not in the list of English words but long enough (seven letters) to be
drawn. Together they cover every word of every COGS file. A fixed set, not read from the files, so
that a seed gives the same words on every machine."""


def replacements(
    lexicon: str,
    *,
    seed: int | None = None,
    shape: str | None = None,
    items: Sequence[str] = ITEMS,
    fresh: int | None = None,
) -> Mapping[str, str]:
    """The replacement of each item.

    Args:
        lexicon: One of :data:`LEXICONS` or :data:`UNPUBLISHED`. ``unmodified`` replaces nothing,
            ``tokens`` uses ``[w_0]`` to ``[w_20]``, ``fresh`` draws new words.
        seed: Required for ``fresh``. For a published lexicon of strings, replaces its own seed.
        shape: Required for ``fresh``: the name of a published lexicon whose form the words have.
        items: The items to replace, at most 21; the first one gets the first word.
        fresh: Instead of a seed, for the lexicon ``fresh``: the one for all benchmarks.

    Raises:
        OptionError: The lexicon is unknown, or seed or shape are missing or superfluous.
    """
    if lexicon not in (*LEXICONS, *UNPUBLISHED):
        legal = ", ".join((*LEXICONS, *UNPUBLISHED))
        raise OptionError(f"no COGS lexicon {lexicon!r}; use {legal}")
    if lexicon == FRESH:
        words = _fresh_words(seed, shape, fresh)
    elif shape is not None:
        raise OptionError(f"the lexicon {lexicon} has a fixed shape; only {FRESH} takes a shape")
    elif lexicon in SEEDS:
        rng = random.Random(SEEDS[lexicon] if seed is None else seed)
        words = draw_words(SHAPES[lexicon], len(ITEMS), rng)
    elif lexicon in REDUCED:
        own, like = REDUCED[lexicon]
        words = draw_words(like, len(ITEMS), random.Random(own if seed is None else seed))
    elif lexicon == NUMBERED:
        words = _numbered(_NUMBERED_SEED if seed is None else seed)
    elif seed is not None:
        raise OptionError(f"the lexicon {lexicon} has no random words; leave out the seed")
    else:
        words = [f"[w_{i}]" for i in range(len(ITEMS))] if lexicon == TOKENS else list(items)
    return MappingProxyType(dict(zip(items, words[: len(items)], strict=True)))


def _numbered(seed: int) -> list[str]:
    rng = random.Random(seed)
    lengths = (rng.choice(_DIGITS) for _ in ITEMS)
    return [f"[w_{''.join(str(rng.randint(0, 9)) for _ in range(one))}]" for one in lengths]


def _fresh_words(seed: int | None, shape: str | None, fresh: int | None) -> list[str]:
    """Draws words that are neither English nor in COGS.

    The generator is seeded with text, so no seed reproduces the published strings.
    """
    from lm_eval_ext.lexicon.words import is_english

    if fresh is None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise OptionError(f"the lexicon {FRESH} needs a seed, a whole number, not {seed!r}")
    if shape is None or shape not in SHAPES:
        raise OptionError(f"no shape {shape!r} of words; use {', '.join(SHAPES)}")
    like, count = SHAPES[shape], len(ITEMS)
    if fresh is not None:
        use = f"COGS, {shape}"
        return fresh_words(like, count, fresh, use=use, taken=OTHER_WORDS, refused=is_english)
    rng = random.Random(f"COGS, {shape}, seed {seed}")
    return draw_words(like, count, rng, taken=OTHER_WORDS, refused=is_english)


def substitute(text: str, words: Mapping[str, str], *, leading_space: bool = False) -> str:
    """Replaces whole tokens of a sentence or a logical form.

    Matching is case-sensitive; tokens are joined with single spaces. With ``leading_space``, a text
    that starts with a replaced token gets a space before it (paper, appendix B: some tokenizers
    recognize an added token only after a space).
    """
    tokens = text.split()
    replaced = " ".join(map(words.get, tokens, tokens))
    if leading_space and tokens and words.get(tokens[0], tokens[0]) != tokens[0]:
        return f" {replaced}"
    return replaced


def substitute_lines(
    lines: Iterable[str], words: Mapping[str, str], *, leading_space: bool = False
) -> Iterator[str]:
    """Replaces words in the first two columns of a file's lines; the type stays.

    Raises:
        DataError: A line does not have three columns; the message names it.
    """
    for number, line in enumerate(lines, start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != COLUMNS:
            raise DataError(
                f"line {number}: {len(columns)} columns; a COGS file has three, separated by tabs: "
                "sentence, logical form and type"
            )
        sentence, form, kind = columns
        new = (substitute(text, words, leading_space=leading_space) for text in (sentence, form))
        yield "\t".join((*new, kind)) + "\n"


def substitute_file(
    source: Path, target: Path, words: Mapping[str, str], *, leading_space: bool = False
) -> int:
    """Writes a variant of a COGS file, completely or not at all; returns the number of lines.

    Raises:
        DataError: The source cannot be read or is not a COGS file.
        OptionError: The target cannot be written.
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
