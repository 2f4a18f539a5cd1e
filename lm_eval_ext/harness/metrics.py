"""From the rows of scored documents to lm-eval's metrics, with clustered errors and intervals.

lm-eval logs what ``process_results`` returns with each sample, and makes a metric of every value
in it. :class:`Scored` gives it the rows to log, and for each metric the :class:`Document` to
aggregate, which holds the same rows. A metric's value is the answer to the card's question
(:mod:`lm_eval_ext.stats.statistics`), in whatever order ranks deliver documents. The interval
goes into the results file with the task's metadata.
"""

from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.names import NONE, RANGE, ROWS, STDERR, UNIT
from lm_eval_ext.harness.row_checks import missing_values
from lm_eval_ext.log import get_logger
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Estimate, estimate
from lm_eval_ext.stats.table import Row, frame

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

AGGREGATION = "lm_eval_ext"
"""The name in lm-eval's registry: results files would show the source code of a function."""


@register_aggregation(AGGREGATION)  # type: ignore[untyped-decorator]
def _replaced_by_task(_: Iterable[object]) -> float:
    """Fail: :meth:`~lm_eval_ext.harness.task.ExtTask.aggregation` puts each metric's own here."""
    raise TypeError("this metric is aggregated by the task; set its class to one of lm_eval_ext")


class Document(NamedTuple):
    """A scored document: its id, its clusters from the coarsest to the finest, and its rows."""

    id: str
    clusters: Sequence[str]
    rows: Sequence[Row]


Aggregation: TypeAlias = Callable[[list[Document]], "float | str"]
"""What lm-eval calls with all scored documents; returns a number, or ``N/A``."""


class Scored(dict[str, object]):
    """The result of ``process_results``: lm-eval logs the rows, and aggregates the metrics.

    It logs what is stored here, and takes the metrics' values from :meth:`items`.
    """

    def __init__(self, document: Document, metrics: Iterable[str]) -> None:
        super().__init__({ROWS: document.rows})
        self._metrics: dict[str, Document] = {}
        for name in metrics:
            self._metrics[name] = document
            # A metric called NAME_stderr, after NAME, overwrites lm-eval's own standard error.
            self._metrics[name + STDERR] = document

    def items(self) -> ItemsView[str, Document]:  # type: ignore[override]
        """Return the document for each metric."""
        return self._metrics.items()


def metric_entry(name: str, question: Question) -> dict[str, object]:
    """Return one entry of lm-eval's ``metric_list``."""
    measure = question.measure
    return {
        "metric": name,
        "aggregation": AGGREGATION,
        "higher_is_better": not measure.lower_is_better,
        RANGE: list(measure.limits),
        UNIT: measure.unit,
    }


class Metrics:
    """The metrics of one task.

    Attributes:
        questions: The card's question behind each metric, by name.
        documents_without_rows: Number of documents that scoring gave no row.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        self.questions = questions
        self.documents_without_rows = 0
        self._estimates: dict[str, list[Estimate]] = {}
        """The estimates of each metric, one per filter in lm-eval's order."""
        self._last_table: tuple[list[Document], DataFrame] | None = None

    def aggregation(self) -> dict[str, Aggregation]:
        """Return what computes each metric and its standard error.

        lm-eval asks for the metric first, once per filter.
        """
        functions: dict[str, Aggregation] = {}
        for name in self.questions:
            functions[name] = partial(self._value, name)
            functions[name + STDERR] = partial(self._stderr, name)
        return functions

    def _value(self, name: str, documents: list[Document]) -> float | str:
        result = estimate(self._table(documents), self.questions[name])
        self._estimates.setdefault(name, []).append(result)
        return NONE if result.value is None else result.value

    def _stderr(self, name: str, _: list[Document]) -> float | str:
        """Return the standard error; N/A where too few clusters give no interval."""
        last_estimate = self._estimates[name][-1]
        if last_estimate.stderr is None or last_estimate.method is None:
            return NONE
        return last_estimate.stderr

    def _table(self, documents: list[Document]) -> "DataFrame":
        """Return the table of rows; it is kept, since the next metric is of the same documents."""
        if self._last_table is None or self._last_table[0] != documents:
            table = frame((str(number), *document) for number, document in enumerate(documents))
            self._last_table = (documents, table)
        return self._last_table[1]

    def check(self, task: str, document_count: int) -> None:
        """Check the estimates of a benchmark that does not ship.

        Where only some of its documents were asked, the others may have what no row has: then it
        is a warning.

        Args:
            task: The task's name.
            document_count: The number of all documents, asked or not.

        Raises:
            DataError: No document has a row, or a metric has no value since no row has what its
                card names.
        """
        if self.documents_without_rows and self._last_table is None:
            raise DataError(f"{task}: its scoring function returned no row for any document")
        scored = self._last_table[0] if self._last_table else []
        rows = [row for document in scored for row in document.rows]
        for name, estimates in self._estimates.items():
            if estimates[-1].value is not None:
                continue
            problem = missing_values(self.questions[name], rows)
            if problem and len(scored) == document_count:
                raise DataError(f"{task}: {name}: {problem}")
            if problem:
                _log.warning("%s: %s: %s", task, name, problem)

    def intervals(self, filters: Sequence[str]) -> dict[str, dict[str, object]]:
        """Return what the results file notes about each ``metric,filter``.

        Each note has the numbers of documents and clusters and, where there is an interval, its
        ends, method and level.
        """
        notes = {}
        for name, estimates in self._estimates.items():
            last_estimates = estimates[-len(filters) :]
            for filter_name, result in zip(filters, last_estimates, strict=False):
                notes[f"{name},{filter_name}"] = _interval_note(result)
        return notes


def _interval_note(result: Estimate) -> dict[str, object]:
    note = {}
    for key, value in vars(result).items():
        is_usual = key in ("level", "unused_clusters") and not value
        if key not in ("value", "stderr") and value is not None and not is_usual:
            note[key] = value
    return note
