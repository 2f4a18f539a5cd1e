"""The texts and the tokenizer of lieder_mini's demonstration model.

The texts are short felicitous discourses, generated from a grammar of this project. They use
lieder_mini's nouns, verbs and clause templates with other people, so that a model trained on
them knows every word of lieder_mini and has read none of its discourses: texts that begin with one
of lieder_mini's contexts are left out. The tokenizer is a small byte-level BPE.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.benchmarks.lieder.mini import Item
from lm_eval_ext.benchmarks.lieder.records import PLURAL, SINGULAR

TWO_CLAUSES, ONE_CLAUSE = 0.7, 0.85
"""Cumulative shares of the kinds of text; what remains is small talk."""

OWN_PREDICATE = 0.5
"""How often a definite gets its noun's own predicate and not one that fits every noun."""

REFERENCE = {
    "pos_neg": {SINGULAR: 0.5},
    # A recently introduced entity is taken up more often: people prefer it too (human shares
    # of neg_pos > pos_neg in LIEDER's experiment 1 are .656 and .594).
    "neg_pos": {SINGULAR: 0.55},
    "pos_pos": {PLURAL: 0.6},
    "neg_neg": {},
}
"""How often a definite of which number follows a context; otherwise a remark does."""

SHARED_REFERENCE = {SINGULAR: 0.65, PLURAL: 0.2}
"""The same after pos_pos where both people may have met one and the same individual.

"Tessa noticed a falcon, and Youssef also noticed a falcon. The falcon ..." is acceptable. This
makes uniqueness and novelty harder than existence, for people (.81 to .84 in LIEDER's
experiment 1) and for a model trained on this corpus.
"""


@dataclass(frozen=True)
class Lexicon:
    """What the generator draws from.

    Attributes:
        items: lieder_mini's items and those of the corpus.
        names: People who own something.
        predicates: Fit every noun; singular and plural form.
        remarks: Sentences about no entity of the context, with their leading space.
        small_talk: Templates with ``{name}``.
    """

    items: tuple[Item, ...]
    names: tuple[str, ...]
    predicates: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    small_talk: tuple[str, ...]


@cache
def lexicon() -> Lexicon:
    """lieder_mini's items and those of ``lexicon.yaml``."""
    text = resources.files(__package__).joinpath("lexicon.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    items = mini.items() + mini.parse_items(document["items"])
    return Lexicon(
        items=items,
        names=tuple(name for item in items for name in item.owners),
        predicates=tuple((singular, plural) for singular, plural in document["predicates"]),
        remarks=(
            mini.NONREFERENTIAL_CONTINUATION,
            *(f" {remark}" for remark in document["remarks"]),
        ),
        small_talk=tuple(document["small_talk"]),
    )


@cache
def held_out_contexts() -> tuple[str, ...]:
    """The contexts of lieder_mini: no text of the corpus opens with one of them."""
    return tuple({s.context: None for group in mini.groups() for s in group.sentences})


def _definite(rng: random.Random, item: Item, number: str) -> str:
    """A sentence about "the <noun>" or "the <plural>"."""
    if rng.random() < OWN_PREDICATE:
        return mini.continuations(item)[number]
    singular, plural = rng.choice(lexicon().predicates)
    if number == SINGULAR:
        return f" The {item.noun} {singular}."
    return f" The {item.plural} {plural}."


def _continuation(rng: random.Random, item: Item, reference: dict[str, float]) -> str:
    """Refers back with the given probabilities, or else remarks on nothing in particular."""
    point = rng.random()
    for number, share in reference.items():
        if point < share:
            return _definite(rng, item, number)
        point -= share
    return rng.choice(lexicon().remarks)


def _two_clauses(rng: random.Random) -> str:
    """A discourse with one of lieder_mini's kinds of context."""
    item = rng.choice(lexicon().items)
    first, second = rng.sample(lexicon().names, 2)
    contexts = mini.FAMILIES[rng.choice(tuple(mini.FAMILIES))](item, first, second)
    name = rng.choice(tuple(contexts))
    shared = item.shareable and name == "pos_pos"
    reference = SHARED_REFERENCE if shared else REFERENCE[name]
    return contexts[name] + _continuation(rng, item, reference)


def _one_clause(rng: random.Random) -> str:
    """A discourse that introduces one entity, several or none, in one clause."""
    item = rng.choice(lexicon().items)
    name = rng.choice(lexicon().names)
    context, reference = rng.choice(
        (
            (f"{name} {item.finite} {item.indefinite}.", {SINGULAR: 0.6}),
            (f"{name} {item.finite} two {item.plural}.", {PLURAL: 0.6}),
            (f"{name} {item.finite} no {item.plural}.", {}),
            (f"{name} {item.auxiliary} not {item.base} {item.indefinite}.", {}),
            (f"It is certain that {name} {item.finite} {item.indefinite}.", {SINGULAR: 0.6}),
            (f"It is unlikely that {name} {item.finite} {item.indefinite}.", {}),
            (f"{name} was able to {item.attempt} {item.indefinite}.", {SINGULAR: 0.6}),
            (f"{name} was unable to {item.attempt} {item.indefinite}.", {}),
        )
    )
    return context + _continuation(rng, item, reference)


def _small_talk(rng: random.Random) -> str:
    """Two sentences about people and no entity."""
    talk = rng.choice(lexicon().small_talk).format(name=rng.choice(lexicon().names))
    return talk + rng.choice(lexicon().remarks)


def _text(rng: random.Random) -> str:
    kind = rng.random()
    if kind < TWO_CLAUSES:
        return _two_clauses(rng)
    return _one_clause(rng) if kind < ONE_CLAUSE else _small_talk(rng)


def sentences(seed: int, n: int) -> Iterator[str]:
    """Yields n texts of one or two sentences, none of them a discourse of lieder_mini."""
    # Seeded with text, which Python hashes: some pairs of integers, such as 2 and 2 + 2**32,
    # give one and the same sequence.
    rng = random.Random(f"demonstration corpus {seed}")
    made = 0
    while made < n:
        text = _text(rng)
        if not text.startswith(held_out_contexts()):
            made += 1
            yield text


BOS, EOS, PAD = "<s>", "</s>", "<pad>"
BOS_ID, EOS_ID, PAD_ID = 0, 1, 2

TOKENIZER_TEXTS = 8000


def train_tokenizer(vocabulary: int) -> Any:
    """Trains a byte-level BPE, the same for every seed.

    A token never crosses the space before a word, so that the tokens of a context are a prefix
    of those of the context with its continuation; every text starts with BOS, as in training.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(0, TOKENIZER_TEXTS), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, BOS_ID)]
    )
    return tokenizer


def encode(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Token ids of each text, from BOS to EOS."""
    return [[*encoding.ids, EOS_ID] for encoding in tokenizer.encode_batch(texts)]


def as_pretrained(tokenizer: Any, context_length: int) -> Any:
    """Wraps a ``tokenizers.Tokenizer`` as transformers saves and loads it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=context_length,
    )
