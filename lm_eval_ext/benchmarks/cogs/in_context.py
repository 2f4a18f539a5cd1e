"""COGS's examples with demonstrations, for models without fine-tuning."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lm_eval_ext.benchmarks.cogs import load
from lm_eval_ext.benchmarks.cogs.demonstrations import exposure_examples
from lm_eval_ext.benchmarks.cogs.lexicons import substitute
from lm_eval_ext.benchmarks.cogs.records import Example, Split
from lm_eval_ext.harness.loading import TaskData, loader


class Options(load.Words):
    """The options of a task in context, with the meanings of :class:`.load.Options`."""

    split: Split = "gen"
    gen_revision: load.Revision = "2020"


@loader(prefix="cogs_", options=Options)
def dataset(options: Options) -> TaskData:
    """Load a split as ``test`` and the training set as ``train``, with the lexicon's words.

    Raises:
        DataError: A file is unavailable or invalid.
    """
    samples, files = load.examples(options.corpus, options.split, options.gen_revision)
    train, train_files = load.examples(options.corpus, "train")
    words = options.words()
    texts: list[dict[str, Any]] = []
    exposure = exposure_examples(samples, train, words.keys())
    for example, exposing_ids in zip(samples, exposure, strict=True):
        texts.append({**_substituted(example, words), "exposure": exposing_ids})
    data = load.documents(options, samples, texts, [*files, *train_files])
    return replace(data, demonstrations=[_substituted(example, words) for example in train])


def _substituted(example: Example, words: Mapping[str, str]) -> dict[str, str]:
    sentence = substitute(example.sentence, words)
    form = substitute(example.form, words)
    return {"id": example.id, "input": sentence, "answer": form}
