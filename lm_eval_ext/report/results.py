"""Results files as lm-eval writes them: finding them and reading their scores."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness import signature


@dataclass(frozen=True)
class Score:
    """One metric's value and standard error (None where there is none)."""

    value: float
    stderr: float | None


@dataclass(frozen=True)
class ResultsFile:
    """One ``results_*.json``.

    Attributes:
        path: Where it lies.
        content: All of it.
    """

    path: Path
    content: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model as lm-eval names it."""
        return str(
            self.content.get("model_name") or self.content.get("config", {}).get("model", "?")
        )

    @property
    def tasks(self) -> list[str]:
        """The tasks that have scores, groups left aside."""
        return [task for task in self.content["results"] if task in self.content.get("configs", {})]

    def scores(self, task: str) -> dict[str, Score]:
        """Scores by metric; where a task has several filters, ``metric,filter``."""
        entries = self.content["results"][task]
        values = {
            name: value
            for name, value in entries.items()
            if "," in name and "_stderr," not in name and isinstance(value, (int, float))
        }
        filters = {name.partition(",")[2] for name in values}
        scores = {}
        for name, value in values.items():
            metric, _, filter_name = name.partition(",")
            stderr = entries.get(f"{metric}_stderr,{filter_name}")
            scores[metric if len(filters) == 1 else name] = Score(
                float(value), float(stderr) if isinstance(stderr, (int, float)) else None
            )
        return scores

    def documents(self, task: str) -> tuple[int, int]:
        """How many documents were scored, and how many the task has."""
        counts = self.content.get("n-samples", {}).get(task, {})
        return int(counts.get("effective", 0)), int(counts.get("original", 0))

    def signature(self, task: str) -> str:
        """Everything that the task's scores depend on, in one line."""
        return signature.of_result(self.content, task)


def find(path: Path) -> list[ResultsFile]:
    """Reads a results file, or of a folder the newest per model and task set.

    Raises:
        OptionError: If there is none.
        DataError: If one is no results file.
    """
    if path.is_file():
        return [_read(path)]
    newest: dict[tuple[str, ...], ResultsFile] = {}
    for file in _in_order_of_time(path):
        results = _read(file)
        key = (results.model, *sorted(results.tasks))
        newest[key] = results
    if not newest:
        raise OptionError(
            f"no results_*.json under {path}; lm_eval writes them with --output_path {path}"
        )
    return list(newest.values())


def _in_order_of_time(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("results_*.json"), key=lambda file: (file.name, str(file)))


def _read(file: Path) -> ResultsFile:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content["results"], dict):
            raise TypeError("results")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: not a results file of lm-eval ({error!r})") from None
    return ResultsFile(file, content)
