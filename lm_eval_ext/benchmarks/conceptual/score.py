"""Rows of scores: of an answer after the demonstrations of each selection, by each template.

Beside them what copying scores: stand-ins for a model that answer with what the demonstrations
show. They need no model; a gain that is no larger than theirs may be copying.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual import matching
from lm_eval_ext.benchmarks.conceptual.demonstrations import SAME_LABELS, SELECTIONS
from lm_eval_ext.benchmarks.conceptual.prompt import SHOW_LABELS
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.stats.table import Row

CONTROL_METRICS = ("gain_from_concept", "gain_from_labels", "score/same_labels")
"""The metrics of a task with a third prompt, after the control's demonstrations."""

SEEDS = {"random": 0, "concept": 1, SAME_LABELS: 2}
"""The seeds of the bootstrap's independent draws."""


def selections_of(doc: Mapping[str, Any]) -> list[str]:
    """Return the selections that a document has demonstrations of."""
    return [name for name in (*SELECTIONS, SAME_LABELS) if doc.get(f"{name}_demonstrations")]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> list[Row]:
    """Score a document: a row for each template and selection, in the order of the prompts."""
    options = [Option(**option) for option in doc["options"]]
    selections = selections_of(doc)
    requests = []
    for template, gold in zip(doc["templates"], doc["answers"], strict=True):
        for selection in selections:
            requests.append((template, gold, selection))
    rows: list[Row] = []
    for (template, gold, selection), answer in zip(requests, results, strict=True):
        scores = matching.score(
            answer, gold, options, doc["answer_label"], labels_shown=template in SHOW_LABELS
        )
        facets = {"template": template, "demonstrations": selection, "concept": doc["concept"]}
        rows.append({**facets, **scores})
    return rows


def stand_ins(shown_answers: Sequence[str]) -> dict[str, str]:
    """Return the stand-ins' answers: that of the last demonstration, and the most frequent one.

    Of several answers that are equally frequent, the majority is the one that comes last.
    """
    majority = max(reversed(shown_answers), key=Counter(shown_answers).__getitem__)
    return {"copy_last": shown_answers[-1], "copy_majority": majority}


def copied(gold: str, shown_answers: Sequence[str]) -> dict[str, float]:
    """Return the stand-ins' scores, and how far copying can go.

    Args:
        gold: The right answer.
        shown_answers: The demonstrations' answers, in the order of the prompt; one or more.

    Returns:
        ``rouge_l_copy_last`` and the like; ``answer_share``, the share of demonstrations that
        have the right answer; ``answer_shown``, whether any has it.
    """
    columns = {
        "answer_share": shown_answers.count(gold) / len(shown_answers),
        "answer_shown": float(gold in shown_answers),
    }
    for stand_in, answer in stand_ins(shown_answers).items():
        scores = matching.score(answer, gold)
        for name in (matching.ROUGE_L, matching.ACCURACY):
            columns[f"{name}_{stand_in}"] = scores[name]
    return columns
