"""A glossary from the corpus itself (paper, section 3.2).

The paper's steps that programs do: foods from ingredient lists and from the nouns in dish names,
actions from the verbs, flavours from the adjectives; words in fewer than 5 dish names are left
out. What its authors did by hand cannot be derived: each word is a class of its own, and words
of several components (such as the name of a whole dish) stay.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from lm_eval_ext.benchmarks.diner import retrieval
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary, clean_name
from lm_eval_ext.errors import DataError

FEWEST = 5
"""Names of dishes that a word of the glossary must occur in."""

TAGS = {"n": "food", "v": "action", "a": "flavour"}
"""The first letter of jieba's part-of-speech tags, and the kind of component they make."""

FOOD, *_ = KINDS


def derive(names: Iterable[str], ingredients: Iterable[str]) -> Glossary:
    """Makes a glossary.

    A word that is tagged in several ways gets the kind that it has most often in names, else
    the first of food, action and flavour.

    Args:
        names: Of dishes, cleaned; each counts once.
        ingredients: Entries of ingredient lists, amounts included.

    Raises:
        DataError: No word is left.
    """
    cut = _tagger()
    tagged: dict[str, Counter[str]] = {}
    names = sorted(set(names))
    for name in names:
        for word, tag in cut(name):
            kind = TAGS.get(tag[:1])
            if kind is not None:
                tagged.setdefault(word, Counter())[kind] += 1
    for entry in sorted(set(ingredients)):
        for word, tag in cut(clean_name(entry)):
            if tag.startswith("n"):
                tagged.setdefault(word, Counter())[FOOD] += 0
    occurring = _occurrences(tagged, names)
    kinds: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for word, counts in sorted(tagged.items()):
        if occurring[word] >= FEWEST:
            kinds[min(counts, key=lambda kind: (-counts[kind], KINDS.index(kind)))][word] = word
    if not any(kinds.values()):
        raise DataError(
            f"no glossary can be derived: no word is in {FEWEST} of the {len(names):,} dish "
            "names; use a larger corpus, or --glossary FILE"
        )
    return Glossary.of(kinds)


def _occurrences(words: Mapping[str, object], names: Iterable[str]) -> Counter[str]:
    """In how many names each word stands, whatever jieba takes the name apart into."""
    longest = max(map(len, words), default=0)
    found: Counter[str] = Counter()
    for name in names:
        parts = {
            name[start : start + length]
            for start in range(len(name))
            for length in range(1, min(longest, len(name) - start) + 1)
        }
        found.update(parts & words.keys())
    return found


def _tagger() -> Callable[[str], list[tuple[str, str]]]:
    """What gives the words of a text with their tags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The segmenter first: it is what silences jieba.
        words = retrieval.segmenter()
        from jieba import posseg
    tagger = posseg.POSTokenizer(words)
    return lambda text: [(pair.word, pair.flag) for pair in tagger.cut(text)]
