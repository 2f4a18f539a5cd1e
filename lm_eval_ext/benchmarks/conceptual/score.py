"""Scores of one answer, and of a document's two."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual.documents import CONCEPT, RANDOM
from lm_eval_ext.benchmarks.conceptual.records import plain

ROUGE_L, ROUGE_L_F1, ACCURACY = "rouge_l", "rouge_l_f1", "accuracy"
SCORES = (ROUGE_L, ROUGE_L_F1, ACCURACY)

MOST_CHARACTERS = 20_000
"""Of an answer that is compared: far beyond any right one, and the time grows with it."""


def score(answer: str, gold: str) -> dict[str, float]:
    """Compares an answer with the right one.

    Args:
        answer: What the model wrote, whatever it is.
        gold: The right answer in the template's words.

    Returns:
        ``rouge_l``, the recall of ROUGE-L with Porter stemming, which is what the paper's
        figures are: the share of the right answer's words that stand in the answer in their
        order (Lin 2004 takes recall as the default of ROUGE-L, by a large beta; the authors
        call the library that is called here). ``rouge_l_f1``, its F1, which a long answer does
        not raise. ``accuracy``, 1.0 if both are the same words, whatever their case and
        punctuation.
    """
    answer = answer.strip()[:MOST_CHARACTERS]
    rouge = _scorer().score(gold, answer)["rougeL"]
    return {
        ROUGE_L: float(rouge.recall),
        ROUGE_L_F1: float(rouge.fmeasure),
        ACCURACY: float(_same(answer, gold)),
    }


def _same(answer: str, gold: str) -> bool:
    # An answer such as "+" has no words, and neither has an empty one.
    return plain(answer) == plain(gold) if plain(gold) else answer == gold.strip()


@functools.cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, float]]:
    """Scores a document's answers under both selections: by score, then by selection.

    The task (:mod:`lm_eval_ext.benchmarks.conceptual.task`) makes lm-eval's metrics of it.
    """
    random, concept = (score(answer, doc["answer"]) for answer in results)
    return {name: {RANDOM: random[name], CONCEPT: concept[name]} for name in SCORES}
