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
        rows: The samples, where they lie in no file.
    """

    files: tuple[ResultsFile, ...]
    rows: Rows | None = None

    @property
    def tasks(self) -> list[str]:
        """The tasks that any of the files has scores of."""
        return list(dict.fromkeys(task for results in self.files for task in results.tasks))

    def to_dataframe(self) -> "DataFrame":
        """One row for each model, task and metric.

        Columns: ``model``, ``benchmark`` (None for a task that isn't ours), ``task``, ``metric``,
        ``headline`` (whether it is the one that stands for the task), ``value``, ``stderr``,
        ``low`` and ``high`` (the 95 % interval), ``method`` (how the interval was made),
        ``clusters``, ``higher_is_better``, ``scored`` (documents, of ``documents``), ``shots``,
        ``model_args``, ``signature``, ``file``. NaN or None where there is none.
        """
        import pandas as pd

        return pd.DataFrame(
            [row for results in self.files for task in results.tasks
             for row in _figures(results, task)],
            columns=_COLUMNS,
        )  # fmt: skip

    def samples(self, task: str) -> "DataFrame":
        """One row for each model, document and filter of a task.

        Columns: ``model``, ``filter``, ``doc_id``, ``cluster`` (of the errors), ``prompts`` and
        ``answers`` (lists, one per request; answers as they were scored, after the filter),
        ``target``, ``doc``, ``file``, and each metric's score of the document (NaN where it does
        not apply, or an answer was missing).

        Raises:
            OptionError: The task is not in these results.
            DataError: Samples were not logged, or cannot be read.
        """
        import pandas as pd

        runs = [results for results in self.files if task in results.tasks]
        if not runs:
            raise OptionError(f"no task {task!r} in these results; there is {self.tasks}")
        return pd.DataFrame([row for run in runs for row in self._samples(run, task)])

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

        if self.rows is None:
            raise OptionError("these results lie in files already; only scored answers are saved")
        (results,) = self.files
        place = Path(folder).expanduser() / model.replace("/", "__")
        place.mkdir(parents=True, exist_ok=True)
        date = datetime.now().isoformat().replace(":", "-")
        for task, rows in self.rows.items():
            with atomic_text(place / f"samples_{task}_{date}.jsonl") as file:
                for row in rows:
                    file.write(json.dumps(row, default=handle_non_serializable) + "\n")
        content = {**results.content, "model_name": model}
        with atomic_text(place / f"results_{date}.json") as file:
            json.dump(content, file, indent=2, default=handle_non_serializable)
        return place / f"results_{date}.json"

    def _samples(self, run: ResultsFile, task: str) -> list[dict[str, Any]]:
        from lm_eval_ext.compare.align import DOCUMENT, clusters_of
        from lm_eval_ext.harness.names import HIGH, LOW, STDERR
        from lm_eval_ext.results.files import label
        from lm_eval_ext.results.samples import Sample, finite, logged_doc, logged_rows

        logged = logged_rows(run, task) if self.rows is None else self.rows[task]
        keys = [(str(row["doc_id"]), 0) for row in logged]
        documents = [
            Sample(key, logged_doc(row), "", "", {}) for key, row in zip(keys, logged, strict=True)
        ]
        unit, clusters = clusters_of(task, documents) if documents else (DOCUMENT, [])
        return [
            {
                "model": label(run),
                "filter": row["filter"],
                "doc_id": row["doc_id"],
                "cluster": str(row["doc_id"]) if unit == DOCUMENT else cluster,
                "prompts": [one.get("arg_0") for one in row["arguments"].values()],
                "answers": list(row["filtered_resps"]),
                "target": row["target"],
                "doc": row["doc"],
                "file": str(run.path),
                **{
                    name: finite(row.get(name))
                    for name in row["metrics"]
                    if not name.endswith((STDERR, LOW, HIGH))
                },
            }
            for row, cluster in zip(logged, clusters, strict=True)
        ]


_COLUMNS = [
    "model", "benchmark", "task", "metric", "headline", "value", "stderr", "low", "high", "method",
    "clusters", "higher_is_better", "scored", "documents", "shots", "model_args", "signature",
    "file",
]  # fmt: skip


def _figures(results: ResultsFile, task: str) -> list[dict[str, Any]]:
    from lm_eval_ext.cards import card_of, headline_of
    from lm_eval_ext.results.files import label

    card = card_of(task)
    scores = results.scores(task)
    headline = headline_of(task, scores)
    better = results.content.get("higher_is_better", {}).get(task) or {}
    scored, documents = results.documents(task)
    of_run = {
        "shots": results.content["n-shot"].get(task, 0),
        "model_args": str(results.content["config"].get("model_args") or ""),
        "signature": results.signature(task),
        "file": str(results.path),
    }
    return [
        {
            "model": label(results),
            "benchmark": card.name if card else None,
            "task": task,
            "metric": metric,
            "headline": metric == headline,
            "value": score.value,
            "stderr": score.stderr,
            "low": score.interval[0] if score.interval else None,
            "high": score.interval[1] if score.interval else None,
            "method": score.method,
            "clusters": score.clusters,
            "higher_is_better": better.get(metric.partition(",")[0]) is not False,
            "scored": scored,
            "documents": documents,
            **of_run,
        }
        for metric, score in scores.items()
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
