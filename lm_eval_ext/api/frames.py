"""Results as data frames: values with their intervals, and the samples behind them."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, read_models, runs_by_model

if TYPE_CHECKING:
    from pandas import DataFrame

    from lm_eval_ext.plots.figures import Figure
    from lm_eval_ext.results.query import QueryRow

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Results:
    """Models with their results, or what :func:`~lm_eval_ext.api.scoring.score` made.

    Attributes:
        models: Each with the results file that counts for each task.
        folder: The folder of the files, where they are temporary.
    """

    models: Sequence[Model]
    folder: "TemporaryDirectory[str] | None" = None

    @property
    def _runs(self) -> list[tuple[str, Run]]:
        """The runs of all models, each after its model's label."""
        runs = []
        for model in self.models:
            for run in model.runs.values():
                runs.append((model.label, run))
        return runs

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the models has scores of."""
        return list(dict.fromkeys(run.task for _, run in self._runs))

    def to_dataframe(
        self,
        *,
        metrics: Sequence[str] = (),
        by: str = "",
        where: Sequence[str] = (),
        value: str = "",
    ) -> "DataFrame":
        """Return a row for each model, task and metric; or for each part that is asked for.

        The arguments are the options of ``show``: ``to_dataframe(by="family",
        where=["metric=direct"])``. A task that cannot answer them is left out.

        Columns: ``model``, ``benchmark`` (None for a task that isn't ours), ``task``, ``metric``,
        the facets of ``by``, ``title`` (the metric in words), ``headline`` (whether it is the one
        that stands for the task), ``unit``, ``higher_is_better``, ``value``, ``stderr``,
        ``documents``, ``clusters`` and their ``level``, ``low`` and ``high`` (the 95 % interval),
        ``method`` (how the interval was made), ``scored`` documents of ``total``, ``signature``,
        ``run`` (the file). NaN or None where there is none.

        Raises:
            OptionError: No task has the metric, the facet or its value.
            DataError: Samples are needed, and were not logged or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.query import ScoreQuery, query_rows

        query = ScoreQuery(tuple(metrics), value, tuple(where), by)
        records: list[dict[str, object]] = []
        problems: list[LmEvalExtError] = []
        for model, run in self._runs:
            try:
                rows = list(query_rows(run, query))
            except (OptionError, DataError) as error:
                problems.append(error)
                continue
            for row in rows:
                is_headline = not query.is_question and row.metric == run.headline
                records.append(_record(model, row, is_headline=is_headline))
        if problems and not records:
            raise problems[0]
        return pd.DataFrame(records)

    def overview(self) -> "DataFrame":
        """Return models by benchmarks, as ``show`` prints them.

        Columns are the attributes of :class:`~lm_eval_ext.results.overview.OverviewRow`.
        """
        from lm_eval_ext.results.overview import overview

        return overview(self.models)

    def rows(self, task: str) -> "DataFrame":
        """Return the long table of a task: a row for each model and scored thing of a document.

        Columns: ``run`` (the file), ``model``, ``task``, ``filter``, ``document``, ``id``,
        ``cluster``, ``prompt``, ``target`` and ``doc_hash`` (digests), then the facets and values
        of the benchmark's rows (:mod:`lm_eval_ext.results.table`).

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.table import rows

        tables = []
        for model, run in self._runs_of(task):
            table = rows(run)
            table.insert(0, "run", str(run.file.path))
            table.insert(1, "model", model)
            table.insert(2, "task", task)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def samples(self, task: str) -> "DataFrame":
        """Return a row for each model, document and filter of a task, as lm-eval logged them.

        Columns: ``model``, then those of lm-eval's samples: ``doc``, ``arguments`` (the requests),
        ``filtered_resps`` (an answer per request, as it was scored), ``target``, and so on.

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.table import samples

        records = []
        for model, run in self._runs_of(task):
            for _, sample in samples(run):
                records.append({"model": model, **sample})
        return pd.DataFrame(records)

    def _runs_of(self, task: str) -> Iterable[tuple[str, Run]]:
        if task not in self.tasks:
            raise OptionError(
                f"no task {task!r} in these results; available: {', '.join(self.tasks)}"
            )
        return runs_by_model(self.models, task).items()


def _record(model: str, row: "QueryRow", *, is_headline: bool) -> dict[str, object]:
    """Return the columns of :meth:`Results.to_dataframe` for an estimate."""
    run, measure = row.run, row.question.measure
    scored, total = run.documents
    return {
        "model": model,
        "benchmark": run.card.name if run.card else None,
        "task": run.task,
        "metric": row.metric,
        **row.part,
        "title": row.title,
        "headline": is_headline,
        "unit": measure.unit,
        "higher_is_better": not measure.lower_is_better,
        **vars(row.estimate),
        "scored": scored,
        "total": total,
        "signature": run.signature,
        "run": str(run.file.path),
    }


def load_results(paths: AnyPath | Iterable[AnyPath]) -> Results:
    """Read what ``lm_eval --output_path`` wrote.

    Args:
        paths: A ``results_*.json``, a folder, or several of either. Of several results of a model
            on a task one counts, as for ``show``; models are one if they have the same name and
            arguments, or the same display name.

    Raises:
        OptionError: There are no results.
        DataError: No file is lm-eval's; others are left out with a warning.
    """
    return Results(read_models(as_paths(paths)))


def as_paths(paths: AnyPath | Iterable[AnyPath]) -> list[Path]:
    """Return one path or several as a list of paths."""
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [Path(path).expanduser() for path in paths]


def plot(paths: AnyPath | Iterable[AnyPath], names: Sequence[str] = ()) -> "list[Figure]":
    """Return the figures that results have the values for, as ``lm-eval-ext plot`` draws them.

    A notebook shows them; ``save(path)`` draws one into a file, and ``values`` is a data frame.

    Args:
        paths: As for :func:`~lm_eval_ext.api.frames.load_results`.
        names: The figures, such as ``lieder-1`` (``lm-eval-ext plot --list`` names them); all if
            empty.

    Raises:
        OptionError: There are no results, or they lack a figure that is named.
        DataError: A file cannot be read.
    """
    from lm_eval_ext.plots.figures import figures

    return figures(read_models(as_paths(paths)), names)
