"""MAGNIFICo's scores: whether a query gives the right result, on each database.

Relative performance is min(EX_novel / EX_base, 1) x 100 for each interpretation, averaged over the
interpretations whose EX_base is at least 5 % (paper, section 4 and footnote 8). Average execution
accuracy is EX of each interpretation, averaged over all of them (paper, figures 6 and 12). Both are
statistics of the card.

Every answer is executed on the original database and, while it is right, on those of its test
suite, whose rows distinguish more wrong queries from right ones: ``populated`` is the verdict of
all of them.
"""

from collections.abc import Mapping, Sequence

from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.harness.judged import JudgedText
from lm_eval_ext.sql import Status, Verdict
from lm_eval_ext.stats.table import Row

POPULATED, ORIGINAL = "populated", "original"
DATABASES = (POPULATED, ORIGINAL)
NOVEL = "novel"

FAILURES: Mapping[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}
"""The statuses of queries that failed, by the column of rows that counts them."""


def by_execution(
    doc: Mapping[str, str], results: Sequence[JudgedText], *, has_suite: bool
) -> list[Row]:
    """Score a document: ``process_results`` in the YAML.

    Args:
        doc: An example.
        results: The query with its verdict; "" where there is none.
        has_suite: Whether the databases have test suites.
    """
    (query,) = results
    return rows(doc, statuses_of(query.verdict, has_suite=has_suite), query_found=bool(query))


def statuses_of(verdict: Verdict, *, has_suite: bool) -> Mapping[str, Status]:
    """Return the status on each database that rows are about."""
    original_status = verdict.original_status or verdict.status
    if not has_suite:
        return {ORIGINAL: original_status}
    return {POPULATED: verdict.status, ORIGINAL: original_status}


def rows(doc: Mapping[str, str], statuses: Mapping[str, Status], *, query_found: bool) -> list[Row]:
    """Return a row for the status on each database, and one for the answer."""
    facets = {
        "interpretation": doc["interpretation"],
        "form": doc["form"],
        "word": BASE if doc["form"] == BASE else NOVEL,
        "category": doc["category"],
    }
    scored: list[Row] = []
    for database, status in statuses.items():
        values = {"correct": float(status == "correct")}
        for column, failure in FAILURES.items():
            values[column] = float(status == failure)
        scored.append({**facets, "database": database, **values})
    scored.append({**facets, "no_query": float(not query_found)})
    return scored


def metric_list(forms: Sequence[str], databases: Sequence[str]) -> list[str]:
    """Return the metrics of a task, in alphabetical order.

    Args:
        forms: The forms of its words; with one novel form, that form has no metric of its own.
        databases: The databases that rows are about.
    """
    novel_forms = [form for form in dict.fromkeys(forms) if form != BASE]
    metrics = ["relative_performance/original", "sql_no_query"]
    if POPULATED in databases:
        metrics.append("relative_performance")
    if len(novel_forms) > 1:
        metrics += [f"relative_performance/{form}" for form in novel_forms]
    for word in (BASE, NOVEL):
        metrics.append(f"sql_average_accuracy/{word}")
        metrics.append(f"sql_execution_accuracy/{word}")
    return sorted(metrics)
