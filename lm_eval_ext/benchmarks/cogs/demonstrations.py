"""COGS for models without fine-tuning: demonstrations from the training set.

Each sample gets the exposure example of its key word, and training examples that together cover
the constructions of the training set: the same for all samples, so they reveal nothing about the
answer. A choice depends on ids and unmodified words only, so it is the same under every lexicon.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from lm_eval_ext.benchmarks.cogs.records import Example
from lm_eval_ext.errors import OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import embedded

WHY = "required: the exposure example of its key word"

Cover: TypeAlias = dict[str, str]
"""Training examples that cover the constructions: the reason for each, by its id."""


def exposure_examples(
    samples: Sequence[Example], train: Sequence[Example], key_words: Collection[str]
) -> list[list[str]]:
    """Return, for each sample, the ids of the training examples that have its key words."""
    keys = frozenset(key_words)
    exposing = []
    for example in train:
        exposed = keys & _tokens(example)
        if exposed:
            exposing.append((example.id, exposed))
    by_sample = []
    for sample in samples:
        tokens = _tokens(sample)
        by_sample.append([name for name, exposed in exposing if exposed & tokens])
    return by_sample


def _tokens(example: Example) -> set[str]:
    return {*example.sentence.split(), *example.form.split()}


def covers() -> dict[str, list[Cover]]:
    """Return ten covers for each corpus."""
    by_corpus: dict[str, list[Cover]] = embedded(__file__, "in_context.yaml")
    return by_corpus


def choose(
    train: Sequence[str], corpus: str, exposure: Sequence[str], *, k: int, seed: int
) -> dict[str, str]:
    """Choose k demonstrations of a sample: ids and reasons, the exposure examples first.

    The seed chooses one of ten covers. Where k is larger than a cover, further demonstrations are
    drawn from the training set.

    Args:
        train: The ids of the training set.
        corpus: The corpus of the cover.
        exposure: The ids of the sample's exposure examples.
        k: Number of demonstrations.
        seed: lm-eval's few-shot seed.

    Raises:
        OptionError: k is above the number of training examples.
    """
    if k > len(train):
        raise OptionError(
            f"{k} demonstrations per sample, but only {len(train)} training examples; use fewer"
        )
    corpus_covers = covers()[corpus]
    chosen = {**dict.fromkeys(exposure, WHY), **corpus_covers[seed % len(corpus_covers)]}
    drawn_numbers = shuffled(len(train), seed, "COGS in context")
    while len(chosen) < k:
        chosen.setdefault(train[next(drawn_numbers)], "drawn at random")
    return dict(list(chosen.items())[:k])
