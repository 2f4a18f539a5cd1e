"""MAGNIFICo's scores: whether a query gives the right result, on each database.

Relative performance is min(EX_novel / EX_base, 1) x 100 for each interpretation, averaged over the
interpretations whose EX_base is at least 5 % (paper, section 4 and footnote 8). Average execution
accuracy is EX of each interpretation, averaged over all of them (paper, figures 6 and 12). Both are
statistics of the card.

Every answer is executed on the original database and, while it is right, on those of its test
suite, whose rows distinguish more wrong queries from right ones: ``populated`` is the verdict of
all of them.
"""

from collections.abc import Callable, Mapping, Sequence

from lm_eval_ext.benchmarks.magnifico.records import BASE
from lm_eval_ext.sql import Status
from lm_eval_ext.stats.table import Row

POPULATED, ORIGINAL = "populated", "original"
DATABASES = (POPULATED, ORIGINAL)
NOVEL = "novel"

FAILURES: Mapping[str, Status] = {
    "error": "prediction_error",
    "timeout": "prediction_timeout",
    "too_large": "prediction_too_large",
}
"""Queries that failed, by cause."""


def by_execution(
    doc: Mapping[str, str],
    results: Sequence[str],
    *,
    execute: Callable[[Mapping[str, str], str], Mapping[str, Status] | None],
) -> list[Row]:
    """Scores a document: ``process_results`` in the YAML.

    Args:
        doc: An example.
        results: The query; "" where there is none.
        execute: From the task's class. Returns the verdict on each database; None where the
            document cannot be scored, which then has no rows.
    """
    (query,) = results
    statuses = execute(doc, query)
    return [] if statuses is None else rows(doc, statuses, query_found=bool(query))


def rows(doc: Mapping[str, str], statuses: Mapping[str, Status], *, query_found: bool) -> list[Row]:
    """A row for the verdict on each database, and one for the answer."""
    about = {
        "interpretation": doc["interpretation"],
        "form": doc["form"],
        "word": BASE if doc["form"] == BASE else NOVEL,
        "category": doc["category"],
    }
    verdicts: list[Row] = [
        {
            **about,
            "database": database,
            "correct": float(status == "correct"),
            **{name: float(status == one) for name, one in FAILURES.items()},
        }
        for database, status in statuses.items()
    ]
    return [*verdicts, {**about, "no_query": float(not query_found)}]


def metric_list(forms: Sequence[str], databases: Sequence[str]) -> list[str]:
    """The metrics of a task.

    Args:
        forms: Of its words; with one novel form, that form has no metric of its own.
        databases: That answers are executed on.
    """
    novel = [form for form in dict.fromkeys(forms) if form != BASE]
    shares = ("base", "novel")
    return sorted(
        [
            *(["relative_performance"] if POPULATED in databases else []),
            "relative_performance/original",
            *(f"relative_performance/{form}" for form in novel if len(novel) > 1),
            *(f"sql_average_accuracy/{share}" for share in shares),
            *(f"sql_execution_accuracy/{share}" for share in shares),
            "sql_no_query",
        ]
    )
