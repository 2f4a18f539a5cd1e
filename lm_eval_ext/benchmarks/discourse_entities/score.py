"""Compares the probabilities of continuations (the paper's experiments 1 and 2).

The sums are over all tokens of a continuation. Comparisons are strict: equal values and NaN are
wrong.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.stats.table import Row


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> list[Row]:
    """Score a document, which has one noun or pairs of nouns."""
    logprobs = [float(logprob) for logprob, _ in results]
    if "nouns" in doc:
        return two_nouns(doc, logprobs)
    return [{"pair": doc["pair"], "correct": float(one_noun(*logprobs))}]


def one_noun(ref: float, nonref: float, ref_without: float, nonref_without: float) -> bool:
    """Return whether the pronoun gains more from a context that introduces an entity.

    Args:
        ref: Log-probability of the referential continuation.
        nonref: That of the other continuation, after the same context.
        ref_without: That of the referential continuation, after the context without an entity.
        nonref_without: That of the other continuation, after that context.
    """
    return ref - nonref > ref_without - nonref_without


def two_nouns(doc: Mapping[str, Any], logprobs: Sequence[float]) -> list[Row]:
    """Return a row for each order of clauses and nouns, and one over all four.

    ``systematic`` is whether all four are right, ``same_noun`` whether one noun was more probable
    in all four, of which two expect each noun.
    """
    facets = {"pair": doc["pair"], "continuation": doc["kind"]}
    rows: list[Row] = []
    verdicts = set()
    preferred_nouns = set()
    orders = zip(doc["clauses"], doc["nouns"], logprobs[::2], logprobs[1::2], strict=True)
    for clauses, nouns, expected_logprob, unexpected_logprob in orders:
        is_correct = expected_logprob > unexpected_logprob
        expects_first_noun = (clauses == "first") == (nouns == "1")
        verdicts.add(is_correct)
        preferred_nouns.add(is_correct == expects_first_noun)
        rows.append({**facets, "clauses": clauses, "nouns": nouns, "correct": float(is_correct)})
    is_systematic = verdicts == {True}
    is_same_noun = len(preferred_nouns) == 1
    rows.append({**facets, "systematic": float(is_systematic), "same_noun": float(is_same_noun)})
    return rows
