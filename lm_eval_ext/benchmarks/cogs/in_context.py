"""COGS for models without fine-tuning: demonstrations from the training set.

Each sample gets the exposure example of its key word, and training examples that together cover
the constructions of the training set: the same for all samples, so they reveal nothing about the
answer. A choice depends on ids and unmodified words only, so it is the same under every lexicon.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lm_eval_ext.benchmarks.cogs import load
from lm_eval_ext.benchmarks.cogs.records import Example, Split
from lm_eval_ext.errors import OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness.loading import TaskData, loader
from lm_eval_ext.reading import embedded

WHY = "required: the exposure example of its key word"


class Options(load.Words):
    """The options of a task in context; as those of the other tasks."""

    split: Split = "gen"
    gen_revision: load.Revision = "2020"


@loader(prefix="cogs_", options=Options)
def dataset(options: Options) -> TaskData:
    """Loads a split as ``test`` and the training set as ``train``, with the lexicon's words.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    tested, files = load.examples(options.corpus, options.split, options.gen_revision)
    train, train_files = load.examples(options.corpus, "train")
    words, bare = options.words(), load.Style()

    def texts(example: Example) -> dict[str, Any]:
        sentence, form = bare.ask(example, words)
        return {"id": example.id, "input": sentence, "answer": form}

    exposing = {one.id: key for one in train if (key := words.keys() & _tokens(one))}
    asked = [
        {**texts(one), "exposure": [id_ for id_, key in exposing.items() if key & tokens]}
        for one in tested
        for tokens in [_tokens(one)]
    ]
    data = load.documents(options, tested, asked, [*files, *train_files])
    return replace(data, demonstrations=[texts(example) for example in train])


def _tokens(example: Example) -> set[str]:
    return {*example.sentence.split(), *example.form.split()}


def covers() -> Any:
    """By corpus, ten lists of training examples that cover the constructions: ids and reasons."""
    return embedded(__file__, "in_context.yaml")


def choose(
    train: Sequence[str], corpus: str, exposure: Sequence[str], *, k: int, seed: int
) -> dict[str, str]:
    """Chooses k demonstrations of a sample: ids and reasons, the exposure examples first.

    The seed chooses one of ten covers. Where k is larger than a cover, the others are drawn from
    the training set.

    Args:
        train: The ids of the training set.
        corpus: Whose cover.
        exposure: The ids of the sample's exposure examples.
        k: How many.
        seed: lm-eval's few-shot seed.

    Raises:
        OptionError: k is above the number of training examples.
    """
    if k > len(train):
        raise OptionError(
            f"{k} demonstrations per sample, but only {len(train)} training examples; use fewer"
        )
    ten = covers()[corpus]
    chosen = {**dict.fromkeys(exposure, WHY), **ten[seed % len(ten)]}
    drawn = shuffled(len(train), seed, "COGS in context")
    while len(chosen) < k:
        chosen.setdefault(train[next(drawn)], "drawn at random")
    return dict(list(chosen.items())[:k])
