"""The texts and the tokenizer of the demonstration model.

Texts are of four kinds: generated discourses (:mod:`.discourses`), cogs_mini's training set,
recipes (:mod:`.recipes`) and generated questions to databases (:mod:`.queries`). None has an item
that a task asks for. The tokenizer is a byte-level BPE.
"""

import random
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import Any

from lm_eval_ext.benchmarks.cogs import mini as cogs_mini
from lm_eval_ext.benchmarks.magnifico.prompt import INSTRUCTION
from lm_eval_ext.demo_model import discourses, queries, recipes
from lm_eval_ext.demo_model.text import Text

Row = tuple[list[int], list[int]]
"""The tokens of what is read and of what is to be written."""

PAD, EOS, BOS = "<pad>", "</s>", "<s>"
PAD_ID, EOS_ID, BOS_ID = 0, 1, 2

SHARES: Mapping[str, float] = MappingProxyType(
    {"discourse": 0.42, "form": 0.28, "recipe": 0.1, "query": 0.2}
)
"""How many of the texts are of each kind."""


def texts(seed: int) -> Iterator[Text]:
    """Yields texts without end."""
    # Seeded with text, which Python hashes: some pairs of integers, such as 2 and 2 + 2**32,
    # give one and the same sequence.
    rng = random.Random(f"demonstration corpus {seed}")
    of_kind = {
        "discourse": discourses.texts(seed, rng),
        "form": _forms(rng),
        "recipe": (recipes.draw(rng) for _ in count()),
        "query": (queries.draw(rng) for _ in count()),
    }
    kinds, weights = tuple(SHARES), tuple(SHARES.values())
    while True:
        yield next(of_kind[rng.choices(kinds, weights)[0]])


def _forms(rng: random.Random) -> Iterator[Text]:
    """cogs_mini's training sentences with their logical forms, again and again."""
    examples = cogs_mini.examples("train")
    while True:
        for one in rng.sample(examples, len(examples)):
            yield one.sentence, f" {one.form}"


TOKENIZER_TEXTS = 6000

WORDS = (
    r" ?\(? ?x _ \d+ [,)]| ?\. (nmod \. )?[a-z]+ \(| ?[A-Za-z]+?(?=s?\b)|\d|"
    r"[\u4e00-\u9fff]|\s*\n| ?[^\sA-Za-z\d\u4e00-\u9fff]+| "
)
"""What a token does not cross: words without a last s, Chinese characters, and in logical forms
also what always goes together."""


@cache
def train_tokenizer(vocabulary: int) -> Any:
    """Trains a byte-level BPE, the same for every seed; any text can be encoded, and comes back.

    What opens the prompts about a database is one token for each of its tables: otherwise a prompt
    would have 600 tokens, too many for a model of minutes.
    """
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    whole = [f"{block}\n\n" for some in queries.blocks().values() for block in some]
    whole.append(f"{INSTRUCTION}\n\n")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(whole),
        special_tokens=[PAD, EOS, BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    drawn = ("".join(text) for _, text in zip(range(TOKENIZER_TEXTS), texts(0), strict=False))
    tokenizer.train_from_iterator((text.rpartition(INSTRUCTION)[2] for text in drawn), trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in whole])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A {EOS}", special_tokens=[(EOS, EOS_ID), (BOS, BOS_ID)]
    )
    return tokenizer


def encode(tokenizer: Any, text: Text) -> Row:
    """The tokens of a text: of the prompt as lm-eval encodes it, of the answer up to EOS."""
    prompt, answer = (tokenizer.encode(part).ids for part in text)
    return prompt, answer[1:]
