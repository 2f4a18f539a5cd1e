"""Rows of a document, and the metrics of a task."""

from typing import Any

import pytest
from support.asking import pick

from lm_eval_ext.benchmarks.magnifico.score import metric_list, rows
from lm_eval_ext.sql import Status

BOTH = ("populated", "original")


def test_the_metrics_of_a_task_with_several_forms() -> None:
    found = metric_list(["base", "plausible", "foreign"], BOTH)
    assert found[0] == "relative_performance"
    forms = {"relative_performance/plausible", "relative_performance/foreign"}
    assert forms <= set(found)
    assert set(found) - set(metric_list(["base", "plausible"], BOTH)) == forms, (
        "a single form would repeat the metric over all"
    )
    alone = metric_list(["base", "plausible"], ["original"])
    assert alone[0] == "relative_performance/original"


def scored(form: str, populated: Status, original: Status, *, query_found: bool = True) -> Any:
    doc = {"form": form, "category": "basic", "interpretation": "maximum", "db_id": "Yard"}
    return rows(doc, {"populated": populated, "original": original}, query_found=query_found)


@pytest.mark.parametrize("form", ["base", "plausible", "foreign"])
def test_a_row_for_each_database_has_the_facets_of_the_document(form: str) -> None:
    found = scored(form, "correct", "wrong")
    assert pick(found, "correct", database="populated") == 1
    assert pick(found, "correct", database="original") == 0
    about = {"form": form, "category": "basic", "interpretation": "maximum"}
    about["word"] = "base" if form == "base" else "novel"
    assert all(about.items() <= row.items() for row in found)


CAUSES: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_failure_counts_under_its_cause(cause: str) -> None:
    found = scored("base", CAUSES[cause], "correct", query_found=False)
    for name in CAUSES:
        assert pick(found, name, database="populated") == (name == cause)
        assert pick(found, name, database="original") == 0
    assert pick(found, "correct", database="populated") == 0
    assert pick(found, "no_query") == 1
    assert pick(scored("base", "correct", "correct"), "no_query") == 0
