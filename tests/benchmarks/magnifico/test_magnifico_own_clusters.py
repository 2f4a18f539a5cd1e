"""Own examples on one database: intervals from clusters that exist."""

import pytest
from support.asking import ask

from lm_eval_ext.benchmarks.magnifico.score import rows
from lm_eval_ext.cards import cards
from lm_eval_ext.stats.statistics import Estimate


def documents(interpretations: int, questions: int, databases: int = 1) -> list[dict[str, str]]:
    return [
        {
            "interpretation": f"meaning {meaning}", "template": f"{meaning}/{question}",
            "category": "own", "form": form, "db_id": f"Yard{meaning % databases}",
        }
        for meaning in range(interpretations)
        for question in range(questions)
        for form in ("base", "plausible")
    ]  # fmt: skip


def of_base(docs: list[dict[str, str]], *, own: bool) -> Estimate:
    card = cards()["magnifico"]
    found = (
        (
            str(place),
            str(place),
            card.cluster.names(doc, is_user_data=own),
            rows(doc, {"populated": "correct", "original": "correct"}, query_found=True),
        )
        for place, doc in enumerate(docs)
    )
    return ask("magnifico", found, "sql_execution_accuracy/base")


@pytest.mark.parametrize(
    ("docs", "unit", "clusters", "interval"),
    [
        (documents(7, 2), "interpretation", 7, True),
        (documents(3, 3), "question", 9, True),
        (documents(1, 8), "question", 8, True),
        (documents(1, 3), "question", 3, False),
        (documents(8, 1, databases=2), "database", 2, False),
        (documents(8, 1, databases=8), "database", 8, True),
    ],
)
def test_clusters_of_own_examples(
    docs: list[dict[str, str]], unit: str, clusters: int, interval: bool
) -> None:
    found = of_base(docs, own=True)
    assert found.clusters == clusters
    assert (found.low is not None) is interval, "no interval is promised where there is none"
    assert cards()["magnifico"].cluster.unit_at(found.level) == unit


def test_published_examples_stay_clustered_by_database() -> None:
    found = of_base(documents(7, 2), own=False)
    assert (found.clusters, found.level, found.low) == (1, 0, None)
