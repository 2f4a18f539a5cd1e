"""Cards say how many documents and clusters the metrics of a part count."""

from pathlib import Path

import pytest
from support.logged import evaluate
from support.made_answers import MadeAnswers

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import estimates

MINI_TASKS = [
    task
    for card in cards().values()
    for task, facts in card.tasks.items()
    if facts.parts and "mini" in task and "icl" not in task
]


@pytest.mark.parametrize("task", MINI_TASKS)
def test_parts_have_as_many_documents_and_clusters_as_the_card_says(
    task: str, tmp_path: Path
) -> None:
    """What a metric counts is seen in results on the whole task."""
    evaluate(tmp_path / "a", MadeAnswers(right=0.5), [task], name="a")
    (model,) = read_models([tmp_path])
    card = card_of(task)
    assert card is not None
    for metric, part in card.tasks[task].parts.items():
        ((_, estimate),) = estimates(model.runs[task], card.question_of(metric))
        counted = (estimate.documents, estimate.clusters)
        assert counted == (part.documents, part.clusters), metric
