"""Rows of a document, and the metrics of a task."""

import pytest
from support.asking import pick

from lm_eval_ext.benchmarks.magnifico.score import metric_list, rows
from lm_eval_ext.sql import Status
from lm_eval_ext.stats.table import Row

BOTH = ("populated", "original")


def test_a_task_with_several_novel_forms_has_a_metric_for_each() -> None:
    """With a single form, it would repeat the metric over all."""
    metrics = metric_list(["base", "plausible", "foreign"], BOTH)
    assert metrics[0] == "relative_performance"
    of_forms = {"relative_performance/plausible", "relative_performance/foreign"}
    assert of_forms <= set(metrics)
    assert set(metrics) - set(metric_list(["base", "plausible"], BOTH)) == of_forms


def test_on_original_databases_alone_the_main_metric_is_theirs() -> None:
    metrics = metric_list(["base", "plausible"], ["original"])
    assert metrics[0] == "relative_performance/original"


def scored(
    form: str, populated: Status, original: Status, *, query_found: bool = True
) -> list[Row]:
    """Return the rows of a document whose query has these verdicts."""
    doc = {"form": form, "category": "basic", "interpretation": "maximum", "db_id": "Yard"}
    return rows(doc, {"populated": populated, "original": original}, query_found=query_found)


@pytest.mark.parametrize(
    ("form", "word"), [("base", "base"), ("plausible", "novel"), ("foreign", "novel")]
)
def test_a_row_for_each_database_has_the_facets_of_the_document(form: str, word: str) -> None:
    score_rows = scored(form, "correct", "wrong")
    assert pick(score_rows, "correct", database="populated") == 1
    assert pick(score_rows, "correct", database="original") == 0
    facets = {"form": form, "category": "basic", "interpretation": "maximum", "word": word}
    for row in score_rows:
        assert facets.items() <= row.items()


CAUSES: dict[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_failure_counts_under_its_cause(cause: str) -> None:
    score_rows = scored("base", CAUSES[cause], "correct")
    for name in CAUSES:
        assert pick(score_rows, name, database="populated") == (name == cause), name
        assert pick(score_rows, name, database="original") == 0, name
    assert pick(score_rows, "correct", database="populated") == 0


@pytest.mark.parametrize(("query_found", "no_query"), [(True, 0), (False, 1)])
def test_a_response_without_a_query_is_counted(query_found: bool, no_query: float) -> None:
    score_rows = scored("base", "prediction_error", "correct", query_found=query_found)
    assert pick(score_rows, "no_query") == no_query
