"""Results as data frames: figures with their intervals, and the samples behind them."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, having, read_models

if TYPE_CHECKING:
    from pandas import DataFrame

Place = str | os.PathLike[str]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By task, samples as lm-eval logs them."""


@dataclass(frozen=True)
class Results:
    """Models with their results, or what :func:`~lm_eval_ext.api.scoring.score` made.

    Attributes:
        models: Each with the results file that counts for each task.
        logged: The samples, where they lie in no file.
    """

    models: Sequence[Model]
    logged: Rows | None = None

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

        return pd.DataFrame(
            {
                "model": model.label,
                "benchmark": card.name if (card := run.card(task)) else None,
                "task": task,
                "metric": metric,
                "title": run.title(task, metric),
                "headline": metric == run.headline(task),
                "unit": run.unit(task, metric),
                "higher_is_better": not run.lower_is_better(task, metric),
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
        """Models by benchmarks, as ``show`` prints them (:mod:`lm_eval_ext.results.overview`)."""
        from lm_eval_ext.results.overview import overview

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

        found = []
        for model, run in self._having(task):
            logged = None if self.logged is None else [("", one) for one in self.logged[task]]
            own = {"run": str(run.path), "model": model, "task": task}
            table = rows(run, task, logged)
            found.append(pd.DataFrame({**dict.fromkeys(own), **table}).assign(**own))
        return pd.concat(found, ignore_index=True)

    def samples(self, task: str) -> "DataFrame":
        """One row for each model, document and filter of a task: what was asked and answered.

        Columns: ``model``, ``filter``, ``doc_id``, ``prompts`` and ``answers`` (lists, one per
        request; answers as they were scored, after the filter), ``target``, ``doc``.

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.table import samples

        return pd.DataFrame(
            {
                "model": model,
                **{name: row[name] for name in ("filter", "doc_id", "target", "doc")},
                "prompts": [one.get("arg_0") for one in row["arguments"].values()],
                "answers": list(row["filtered_resps"]),
            }
            for model, run in self._having(task)
            for row in (self.logged or {}).get(task) or (one for _, one in samples(run, task))
        )

    def _having(self, task: str) -> Iterable[tuple[str, ResultsFile]]:
        if task not in self.tasks:
            raise OptionError(f"no task {task!r} in these results; there is {self.tasks}")
        return having(self.models, task).items()

    def save(self, folder: Place, model: str) -> Path:
        """Writes scored answers as ``lm_eval`` would, for ``show``, ``compare`` and so on.

        Args:
            folder: As for ``--output_path``; made if need be.
            model: The name of what gave the answers.

        Returns:
            The results file.

        Raises:
            OptionError: These results were read from files.
        """
        from datetime import datetime

        from lm_eval.utils import handle_non_serializable

        from lm_eval_ext.atomic import atomic_text

        if self.logged is None:
            raise OptionError("these results lie in files already; only scored answers are saved")
        (results,) = self.models[0].runs.values()
        place = Path(folder).expanduser() / model.replace("/", "__")
        place.mkdir(parents=True, exist_ok=True)
        date = datetime.now().isoformat().replace(":", "-")
        for task, rows in self.logged.items():
            with atomic_text(place / f"samples_{task}_{date}.jsonl") as file:
                for row in rows:
                    file.write(json.dumps(row, default=handle_non_serializable) + "\n")
        content = {**results.content, "model_name": model}
        with atomic_text(place / f"results_{date}.json") as file:
            json.dump(content, file, indent=2, default=handle_non_serializable)
        return place / f"results_{date}.json"


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
