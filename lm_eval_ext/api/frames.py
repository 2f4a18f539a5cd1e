"""Results as data frames: figures with their intervals, and the samples behind them."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import ResultsFile

if TYPE_CHECKING:
    from pandas import DataFrame

Place = str | os.PathLike[str]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By task, samples as lm-eval logs them."""


@dataclass(frozen=True)
class Results:
    """Results files, or what :func:`~lm_eval_ext.api.scoring.score` made.

    Attributes:
        files: In the order in which they were written.
        logged: The samples, where they lie in no file.
    """

    files: tuple[ResultsFile, ...]
    logged: Rows | None = None

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the files has scores of."""
        return list(dict.fromkeys(task for results in self.files for task in results.tasks))

    def to_dataframe(self) -> "DataFrame":
        """One row for each model, task and metric.

        Columns: ``model``, ``benchmark`` (None for a task that isn't ours), ``task``, ``metric``,
        ``title`` (the metric in words), ``headline`` (whether it is the one that stands for the
        task), ``unit``, ``value``, ``stderr``, ``low`` and ``high`` (the 95 % interval),
        ``method`` (how the interval was made), ``clusters``, ``higher_is_better``, ``scored``
        documents of ``total``, ``shots``, ``model_args``, ``signature``, ``run`` (the file). NaN or
        None where there is none.
        """
        import pandas as pd

        return pd.DataFrame(
            [row for results in self.files for task in results.tasks
             for row in _figures(results, task)],
            columns=_COLUMNS,
        )  # fmt: skip

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

        from lm_eval_ext.results.files import label
        from lm_eval_ext.results.table import rows

        found = []
        for run in self._having(task):
            logged = None if self.logged is None else [("", one) for one in self.logged[task]]
            table = rows(run, task, logged)
            table.insert(0, "run", str(run.path))
            table.insert(1, "model", label(run))
            table.insert(2, "task", task)
            found.append(table)
        return pd.concat(found, ignore_index=True)

    def samples(self, task: str) -> "DataFrame":
        """One row for each model, document and filter of a task: what was asked and answered.

        Columns: ``model``, ``filter``, ``doc_id``, ``prompts`` and ``answers`` (lists, one per
        request; answers as they were scored, after the filter), ``target``, ``doc``, ``run``.

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        from lm_eval_ext.results.files import label
        from lm_eval_ext.results.table import samples

        return pd.DataFrame(
            {
                "model": label(run),
                "filter": row["filter"],
                "doc_id": row["doc_id"],
                "prompts": [one.get("arg_0") for one in row["arguments"].values()],
                "answers": list(row["filtered_resps"]),
                "target": row["target"],
                "doc": row["doc"],
                "run": str(run.path),
            }
            for run in self._having(task)
            for row in (
                (one for _, one in samples(run, task)) if self.logged is None else self.logged[task]
            )
        )

    def _having(self, task: str) -> list[ResultsFile]:
        runs = [results for results in self.files if task in results.tasks]
        if not runs:
            raise OptionError(f"no task {task!r} in these results; there is {self.tasks}")
        return runs

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
        (results,) = self.files
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


_COLUMNS = [
    "model", "benchmark", "task", "metric", "title", "headline", "unit", "value", "stderr", "low",
    "high", "method", "clusters", "higher_is_better", "scored", "total", "shots", "model_args",
    "signature", "run",
]  # fmt: skip


def _figures(results: ResultsFile, task: str) -> list[dict[str, Any]]:
    from lm_eval_ext.results.files import label

    card = results.card(task)
    headline = results.headline(task)
    scored, documents = results.documents(task)
    same = {
        "model": label(results),
        "benchmark": card.name if card else None,
        "task": task,
        "scored": scored,
        "total": documents,
        "shots": results.content["n-shot"].get(task, 0),
        "model_args": str(results.content["config"].get("model_args") or ""),
        "signature": results.signature(task),
        "run": str(results.path),
    }
    return [
        {
            **same,
            **vars(found),
            "metric": metric,
            "title": card.title_of(metric) if card else metric,
            "headline": metric == headline,
            "unit": results.unit(task, metric),
            "higher_is_better": not results.lower_is_better(task, metric),
        }
        for metric, found in results.scores(task).items()
    ]


def load_results(paths: Place | Iterable[Place]) -> Results:
    """Reads what ``lm_eval --output_path`` wrote.

    Args:
        paths: A ``results_*.json``, a folder, or several of either. Of a run that was repeated
            (same model and arguments, metrics and signatures) the newest file counts; runs with
            other seeds or settings are all there, and the column ``signature`` tells them apart.

    Raises:
        OptionError: There is none.
        DataError: A file is not lm-eval's.
    """
    from lm_eval_ext.results.files import find

    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = {one.path: one for path in several for one in find(Path(path).expanduser())}
    return Results(tuple(found.values()))
