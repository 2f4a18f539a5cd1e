"""Derives a glossary from the corpus, by the automatic steps of the paper (section 3.2).

Foods are taken from ingredient lists and from the nouns in dish names, actions from the verbs,
flavours from the adjectives; words in fewer than 5 dish names are dropped. The authors' manual
steps are missing: every word is a class of its own, and words that consist of several components,
such as the name of a whole dish, are kept.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from lm_eval_ext.benchmarks.diner import retrieval
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary, clean_name
from lm_eval_ext.benchmarks.diner.script import simplified
from lm_eval_ext.errors import DataError

FEWEST = 5
"""Number of dish names that a word of the glossary must occur in."""

TAGS = {"n": "food", "v": "action", "a": "flavour"}
"""Kinds of component by the first letter of jieba's part-of-speech tags."""

FOOD, *_ = KINDS


def derive(names: Iterable[str], ingredients: Iterable[str]) -> Glossary:
    """Derives a glossary from cleaned dish names and entries of ingredient lists.

    A word with several tags gets the kind that is most frequent in names; in a tie, the first of
    food, action and flavour.

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
        for word, tag in cut(simplified(clean_name(entry))):
            if tag.startswith("n"):
                tagged.setdefault(word, Counter())[FOOD] += 0
    occurring = _occurrences(tagged, names)
    kinds: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for word, counts in sorted(tagged.items()):
        if occurring[word] >= FEWEST:
            kinds[min(counts, key=lambda kind: (-counts[kind], KINDS.index(kind)))][word] = word
    if not any(kinds.values()):
        raise DataError(
            f"no glossary can be derived: no word occurs in {FEWEST} of {len(names):,} dish names; "
            "use a larger corpus, or --glossary FILE"
        )
    return Glossary.of(kinds)


def _occurrences(words: Mapping[str, object], names: Iterable[str]) -> Counter[str]:
    """Numbers of names that contain each word, however jieba segments the names."""
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
    """A function from a text to its words and their tags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Before posseg, because it silences jieba's log.
        words = retrieval.segmenter()
        from jieba import posseg
    tagger = posseg.POSTokenizer(words)
    return lambda text: [(pair.word, pair.flag) for pair in tagger.cut(text)]
