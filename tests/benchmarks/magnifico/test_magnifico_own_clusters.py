"""Own examples on one database: intervals from clusters that exist, in scores and in compare."""

import pytest

from lm_eval_ext.benchmarks.magnifico.score import Scopes
from lm_eval_ext.compare.align import clusters_of
from lm_eval_ext.harness.metrics import in_clusters
from lm_eval_ext.harness.noting import note
from lm_eval_ext.results.samples import Sample
from lm_eval_ext.stats import mean_estimate
from lm_eval_ext.stats.intervals import UNIT

BASE = "populated/execution_accuracy:base"


def rows(interpretations: int, questions: int, databases: int = 1) -> list[dict[str, str]]:
    return [
        {
            "interpretation": f"meaning {meaning}", "template": f"{meaning}/{question}",
            "category": "own", "form": form, "db_id": f"Yard{meaning % databases}",
        }
        for meaning in range(interpretations)
        for question in range(questions)
        for form in ("base", "plausible")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("docs", "unit", "clusters", "interval"),
    [
        (rows(7, 2), "interpretation", 7, True),
        (rows(3, 3), "question", 9, True),
        (rows(1, 8), "question", 8, True),
        (rows(1, 3), "question", 3, False),
        (rows(8, 1, databases=2), "database", 2, False),
        (rows(8, 1, databases=8), "database", 8, True),
    ],
)
def test_clusters_of_own_examples(
    docs: list[dict[str, str]], unit: str, clusters: int, interval: bool
) -> None:
    columns = {key: [doc[key] for doc in docs] for key in docs[0]}
    scopes = Scopes(columns, own=True)
    found = [
        scopes.metrics(doc, {"populated": "correct", "original": "correct"}, query_found=True)[BASE]
        for doc in docs
    ]
    values = [one for one in found if one is not None]
    _, clustered = in_clusters(values)
    noted = note(mean_estimate(clustered), UNIT, values)
    assert noted and noted["clusters"] == clusters
    assert ("low" in noted) is interval, "no interval is promised where there is none"
    samples = [Sample((str(place), 0), doc, "", "", {}) for place, doc in enumerate(docs)]
    named, same = clusters_of("magnifico_own_desc", samples)
    assert (named, len(set(same))) == (unit, clusters), "compare takes the same ones"


def test_published_examples_stay_clustered_by_database() -> None:
    docs = rows(7, 2)
    scopes = Scopes({key: [doc[key] for doc in docs] for key in docs[0]})
    value = scopes.metrics(
        docs[0], {"populated": "correct", "original": "correct"}, query_found=True
    )[BASE]
    assert value is not None and in_clusters([value, value])[0] == 0
    samples = [Sample((str(place), 0), doc, "", "", {}) for place, doc in enumerate(docs)]
    assert clusters_of("magnifico_desc", samples)[0] == "database"
