"""Own examples on one database: intervals from clusters that exist."""

from typing import Any

import pytest
from support.asking import ask

from lm_eval_ext.benchmarks.magnifico.score import rows
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.statistics import Estimate

Document = dict[str, str]


def documents(interpretations: int, questions: int, databases: int = 1) -> list[Document]:
    """Return each question of each interpretation in two forms, over this many databases."""
    docs = []
    for meaning in range(interpretations):
        for question in range(questions):
            for form in ("base", "plausible"):
                docs.append(
                    {
                        "interpretation": f"meaning {meaning}",
                        "template": f"{meaning}/{question}",
                        "category": "own",
                        "form": form,
                        "db_id": f"Yard{meaning % databases}",
                    }
                )
    return docs


def base_accuracy(docs: list[Document], *, is_user_data: bool) -> Estimate:
    """Return the accuracy on base questions, all of which are right."""
    cluster = cards()["magnifico"].cluster
    verdicts: dict[str, Any] = {"populated": "correct", "original": "correct"}
    scored = []
    for number, doc in enumerate(docs):
        clusters = cluster.names(doc, is_user_data=is_user_data)
        scored.append((f"{number}", f"{number}", clusters, rows(doc, verdicts, query_found=True)))
    accuracy: Estimate = ask("magnifico", scored, "sql_execution_accuracy/base")
    return accuracy


@pytest.mark.parametrize(
    ("docs", "unit", "clusters", "has_interval"),
    [
        (documents(7, 2), "interpretation", 7, True),
        (documents(3, 3), "question", 9, True),
        (documents(1, 8), "question", 8, True),
        (documents(1, 3), "question", 3, False),
        (documents(8, 1, databases=2), "database", 2, False),
        (documents(8, 1, databases=8), "database", 8, True),
    ],
    ids=[
        "many meanings",
        "few meanings",
        "one meaning",
        "few questions",
        "few databases",
        "many databases",
    ],
)
def test_the_coarsest_unit_with_enough_clusters_counts(
    docs: list[Document], unit: str, clusters: int, has_interval: bool
) -> None:
    """With few clusters, no interval is promised."""
    accuracy = base_accuracy(docs, is_user_data=True)
    assert accuracy.clusters == clusters
    assert (accuracy.low is not None) is has_interval
    assert cards()["magnifico"].cluster.unit_at(accuracy.level) == unit


def test_published_examples_stay_clustered_by_database() -> None:
    """One database is one cluster, which gives no interval."""
    accuracy = base_accuracy(documents(7, 2), is_user_data=False)
    assert accuracy.clusters == 1
    assert accuracy.level == 0
    assert accuracy.low is None
