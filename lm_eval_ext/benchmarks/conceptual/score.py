"""Rows of scores: of an answer after the demonstrations of each selection, by each template."""

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_ext.benchmarks.conceptual import answers
from lm_eval_ext.benchmarks.conceptual.fewshot import SAME_LABELS, SELECTIONS
from lm_eval_ext.benchmarks.conceptual.prompt import SHOW_LABELS
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.harness.metrics import Row

OF_CONTROL = ("gain_from_concept", "gain_from_labels", "score/same_labels")
"""The metrics of a task that asks a third time, with the control's demonstrations."""


def selections_of(doc: Mapping[str, Any]) -> list[str]:
    """The selections that a document has demonstrations of."""
    return [name for name in (*SELECTIONS, SAME_LABELS) if doc.get(f"{name}_demonstrations")]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> list[Row]:
    """Scores a document: a row for each template and selection, in the order of the prompts."""
    asked = selections_of(doc)
    options = [Option(**option) for option in doc["options"]]
    which = [
        (template, gold, selection)
        for template, gold in zip(doc["templates"], doc["answers"], strict=True)
        for selection in asked
    ]
    return [
        {
            "template": template,
            "demonstrations": selection,
            "concept": doc["concept"],
            **answers.score(
                answer, gold, options, doc["answer_label"], labels_shown=template in SHOW_LABELS
            ),
        }
        for (template, gold, selection), answer in zip(which, results, strict=True)
    ]
