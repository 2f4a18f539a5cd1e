"""Which continuation is more probable (the paper's experiments 1 and 2).

The sums are over all tokens of a continuation. Comparisons are strict: equal values and NaN are
wrong.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.stats.table import Row


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> list[Row]:
    """Scores a document, which has one noun or pairs of nouns."""
    logprobs = [float(logprob) for logprob, _ in results]
    if "nouns" in doc:
        return two_nouns(doc, logprobs)
    return [{"pair": doc["pair"], "correct": float(one_noun(*logprobs))}]


def one_noun(ref: float, nonref: float, ref_without: float, nonref_without: float) -> bool:
    """Whether the pronoun gains more from a context that introduces an entity.

    Args:
        ref: Log-probability of the referential continuation.
        nonref: That of the other one, after the same context.
        ref_without: That of the referential continuation, after the context without an entity.
        nonref_without: That of the other one, after that context.
    """
    return ref - nonref > ref_without - nonref_without


def two_nouns(doc: Mapping[str, Any], logprobs: Sequence[float]) -> list[Row]:
    """A row for each order of clauses and nouns, and one over all four.

    ``systematic`` is whether all four are right, ``same_noun`` whether one noun was more probable
    in all four, of which two expect each noun.
    """
    facets = {"pair": doc["pair"], "continuation": doc["kind"]}
    orders = list(zip(doc["clauses"], doc["nouns"], strict=True))
    right = [one > other for one, other in zip(logprobs[::2], logprobs[1::2], strict=True)]
    chosen = {
        one == ((clauses == "first") == (nouns == "1"))
        for one, (clauses, nouns) in zip(right, orders, strict=True)
    }
    return [
        *(
            {**facets, "clauses": clauses, "nouns": nouns, "correct": float(one)}
            for one, (clauses, nouns) in zip(right, orders, strict=True)
        ),
        {**facets, "systematic": float(all(right)), "same_noun": float(len(chosen) == 1)},
    ]
