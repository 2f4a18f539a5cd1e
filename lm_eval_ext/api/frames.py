"""Results as data frames: figures with their intervals, and the samples behind them."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, having, read_models

if TYPE_CHECKING:
    from pandas import DataFrame

    from lm_eval_ext.plots.figures import Figure

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Results:
    """Models with their results, or what :func:`~lm_eval_ext.api.scoring.score` made.

    Attributes:
        models: Each with the results file that counts for each task.
        folder: Of the files, where they are temporary.
    """

    models: Sequence[Model]
    folder: "TemporaryDirectory[str] | None" = None

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the models has scores of."""
        return list(dict.fromkeys(task for model in self.models for task in model.runs))

    def to_dataframe(self) -> "DataFrame":
        """One row for each model, task and metric.

        Columns: ``model``, ``benchmark`` (None for a task that isn't ours), ``task``, ``metric``,
        ``title`` (the metric in words), ``headline`` (whether it is the one that stands for the
        task), ``unit``, ``higher_is_better``, ``value``, ``stderr``, ``documents``, ``clusters``
        and their ``level``, ``low`` and ``high`` (the 95 % interval), ``method`` (how the interval
        was made), ``scored`` documents of ``total``, ``signature``, ``run`` (the file). NaN or None
        where there is none.
        """
        import pandas as pd

        from lm_eval_ext.results.ask import question_of

        return pd.DataFrame(
            {
                "model": model.label,
                "benchmark": card.name if (card := run.card(task)) else None,
                "task": task,
                "metric": metric,
                "title": run.title(task, metric),
                "headline": metric == run.headline(task),
                "unit": (measure := question_of(run, task, metric).measure).unit,
                "higher_is_better": not measure.lower_is_better,
                **vars(found),
                **dict(zip(("scored", "total"), run.documents(task), strict=True)),
                "signature": run.signature(task),
                "run": str(run.path),
            }
            for model in self.models
            for task, run in model.runs.items()
            for metric, found in run.scores(task).items()
        )

    def overview(self) -> "DataFrame":
        """Models by benchmarks, as ``show`` prints them (:mod:`lm_eval_ext.results.ask`)."""
        from lm_eval_ext.results.ask import overview

        return overview(self.models)

    def rows(self, task: str) -> "DataFrame":
        """The long table of a task: a row for each model and thing that was scored of a document.

        Columns: ``run`` (the file), ``model``, ``task``, ``filter``, ``document``, ``id``,
        ``cluster``, ``prompt``, ``target`` and ``doc_hash`` (digests), then the facets and values
        of the benchmark's rows (:mod:`lm_eval_ext.results.table`).

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.table import rows

        found = {(str(run.path), model, task): rows(run, task) for model, run in self._having(task)}
        names = ["run", "model", "task"]
        return pd.concat(found, names=names).reset_index(names).reset_index(drop=True)

    def samples(self, task: str) -> "DataFrame":
        """One row for each model, document and filter of a task: what was asked and answered.

        Columns: ``model``, then those of lm-eval's samples: ``doc``, ``arguments`` (the requests),
        ``filtered_resps`` (an answer per request, as it was scored), ``target``, and so on.

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.table import samples

        return pd.DataFrame(
            {"model": model, **row}
            for model, run in self._having(task)
            for _, row in samples(run, task)
        )

    def _having(self, task: str) -> Iterable[tuple[str, ResultsFile]]:
        if task not in self.tasks:
            raise OptionError(f"no task {task!r} in these results; there is {self.tasks}")
        return having(self.models, task).items()


def load_results(paths: Place | Iterable[Place]) -> Results:
    """Reads what ``lm_eval --output_path`` wrote.

    Args:
        paths: A ``results_*.json``, a folder, or several of either. Of several results of a model
            on a task one counts, as for ``show``; models are one if they have the same name and
            arguments, or the same display name.

    Raises:
        OptionError: There is none.
        DataError: A file is not lm-eval's.
    """
    return Results(read_models(places(paths), joined=True))


def places(paths: Place | Iterable[Place]) -> list[Path]:
    """One path, or several."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [Path(path).expanduser() for path in several]


def plot(paths: Place | Iterable[Place], names: Sequence[str] = ()) -> "list[Figure]":
    """The figures that results have the values for, as ``lm-eval-ext plot`` draws them.

    A notebook shows them; ``save(path)`` draws one into a file, and ``values`` is a data frame.

    Args:
        paths: As for :func:`~lm_eval_ext.api.frames.load_results`.
        names: Of figures, such as ``lieder-1`` (``lm-eval-ext plot --list`` names them); all if
            empty.

    Raises:
        OptionError: There are no results, or they lack a figure that is named.
        DataError: A file cannot be read.
    """
    from lm_eval_ext.plots.figures import figures

    return figures(read_models(places(paths)), names)
