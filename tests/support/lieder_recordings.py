"""The runs that LIEDER's authors recorded, scored by our function."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_ext.benchmarks.lieder import load, recordings, score
from lm_eval_ext.benchmarks.lieder.records import Experiment
from lm_eval_ext.stats.table import Row


class ScoredDocument(NamedTuple):
    """A document with the rows of a model's recorded answers."""

    doc: dict[str, Any]
    rows: list[Row]


class RequestKey(NamedTuple):
    """A request: a document, and the number of one of its sentences."""

    experiment: str
    item: str
    family: str
    number: int


@cache
def _responses(folder: Path) -> dict[str, dict[RequestKey, Any]]:
    """Return all recorded responses by model; the folder is that of LM_EVAL_EXT_DATA."""
    by_model = {}
    for system in recordings.convert(None).systems:
        responses = {}
        for row in system.rows:
            doc: Any = row["doc"]
            number: Any = row["idx"]
            key = RequestKey(doc["experiment"], doc["item"], doc["family"], number)
            responses[key] = row["response"]
        by_model[system.name] = responses
    return by_model


def scored_documents(folder: Path, experiment: Experiment, model: str) -> list[ScoredDocument]:
    """Score a recorded run with the scoring function of the tasks.

    Args:
        folder: The original data, which LM_EVAL_EXT_DATA must name.
        experiment: An experiment of the paper.
        model: A model whose responses the authors recorded.
    """
    responses = _responses(folder)[model]
    groups = load.read(folder / f"lieder/stimuli/{experiment}_stimuli.jsonl", experiment)
    scored = []
    for doc in load.to_documents(groups, experiment):
        answers = []
        for number in range(len(doc["context"])):
            answers.append(responses[RequestKey(experiment, doc["item"], doc["family"], number)])
        scored.append(ScoredDocument(doc, list(score.process_results(doc, answers))))
    return scored
