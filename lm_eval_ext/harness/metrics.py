"""From the rows of scored documents to lm-eval's metrics, with clustered errors and intervals.

lm-eval logs what ``process_results`` returns with each sample, and makes a metric of every value
in it. :class:`Scored` gives it the rows to log, and for each metric a :class:`Document` to
aggregate, which holds the same rows. A metric's figure is that of the card's question
(:mod:`lm_eval_ext.stats.statistics`), whatever the order in which ranks deliver documents. The
interval goes into the results file with the task's metadata.
"""

from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.cards import lacking
from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.names import NONE, RANGE, ROWS, STDERR, UNIT
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
def _of_task(_: Iterable[Any]) -> float:
    """Stands for what :meth:`~lm_eval_ext.harness.task.ExtTask.aggregation` puts in its place."""
    raise TypeError("this metric is aggregated by the task; set its class to one of lm_eval_ext")


class Document(NamedTuple):
    """A scored document: its id, its clusters from the coarsest to the finest, and its rows."""

    id: str
    clusters: Sequence[str]
    rows: Sequence[Row]


class Scored(dict[str, Any]):
    """What ``process_results`` returns: lm-eval logs the rows, and aggregates the metrics.

    It logs what is stored here, and takes the metrics' values from :meth:`items`.
    """

    def __init__(self, document: Document, metrics: Iterable[str]) -> None:
        super().__init__({ROWS: document.rows})
        # A metric called NAME_stderr, after NAME, overwrites lm-eval's own standard error.
        self._metrics = {name + end: document for name in metrics for end in ("", STDERR)}

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """By metric, the document."""
        return self._metrics.items()


def entry(name: str, question: Question) -> dict[str, Any]:
    """One entry of lm-eval's ``metric_list``."""
    measure = question.measure
    return {
        "metric": name,
        "aggregation": AGGREGATION,
        "higher_is_better": not measure.lower_is_better,
        RANGE: list(measure.limits),
        UNIT: measure.unit,
    }


class Metrics:
    """The metrics of one task, by name the card's questions.

    Attributes:
        without: Number of documents that scoring gave no row.
    """

    without = 0

    def __init__(self, questions: Mapping[str, Question]) -> None:
        self.questions = questions
        self._found: dict[str, list[Estimate]] = {}
        self._last: tuple[list[Document], DataFrame] | None = None

    def aggregation(self) -> dict[str, Callable[[list[Document]], float | str]]:
        """By metric and standard error; lm-eval asks for the metric first, once per filter."""
        found: dict[str, Callable[[list[Document]], float | str]] = {}
        for name in self.questions:
            found[name] = partial(self._value, name)
            found[name + STDERR] = partial(self._stderr, name)
        return found

    def _value(self, name: str, documents: list[Document]) -> float | str:
        found = estimate(self._frame(documents), self.questions[name])
        self._found.setdefault(name, []).append(found)
        return NONE if found.value is None else found.value

    def _stderr(self, name: str, documents: list[Document]) -> float | str:
        error = self._found[name][-1].stderr
        return NONE if error is None else error

    def _frame(self, documents: list[Document]) -> "DataFrame":
        """Kept for the next metric, which has the very same documents."""
        if self._last is None or self._last[0] != documents:
            made = frame((str(place), *one) for place, one in enumerate(documents))
            self._last = (documents, made)
        return self._last[1]

    def check(self, task: str, documents: int) -> None:
        """Checks the figures of a benchmark that does not ship.

        Where only some of its documents were asked, what no row has may be in others, so that it is
        a warning.

        Args:
            task: Its name.
            documents: How many there are, asked or not.

        Raises:
            DataError: No document has a row, or a metric has no value since no row has what its
                card names.
        """
        if self.without and self._last is None:
            raise DataError(f"{task}: its scoring function returned no row for any document")
        scored, _ = self._last or ([], None)
        rows = [row for one in scored for row in one.rows]
        for name, found in self._found.items():
            problem = found[-1].value is None and lacking(self.questions[name], rows)
            if problem and len(scored) == documents:
                raise DataError(f"{task}: {name}: {problem}")
            if problem:
                _log.warning("%s: %s: %s", task, name, problem)

    def noted(self, filters: Sequence[str]) -> dict[str, dict[str, Any]]:
        """For the results file, by ``metric,filter``: documents, clusters and the interval."""
        return {
            f"{name},{filter_name}": {
                key: value
                for key, value in vars(found).items()
                if key not in ("value", "stderr")
                and value is not None
                and (value or key != "level")
            }
            for name, of_metric in self._found.items()
            for filter_name, found in zip(filters, of_metric[-len(filters) :], strict=False)
        }
