"""What there is of an experiment: its folders, and of each model its gates and results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments.plan import Cell
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import read_models
from lm_eval_ext.training.records import Trained, finished

TRAINED, FIRST, MODELS, RESULTS = "trained", "first", "models", "results"
"""In the experiment's folder: models by condition and seed, trainings that they share, model
files, and results of ``lm-eval-ext run``."""


@dataclass(frozen=True)
class State:
    """Of one model.

    Attributes:
        trained: None before its training has ended.
        runs: Its results by task; empty before it was evaluated, or if it did not learn.
        missing: What there is to do: ``training``, ``evaluation``, or "" for nothing.
    """

    trained: Trained | None
    runs: Mapping[str, ResultsFile]
    missing: str


def state_of(cell: Cell, out: Path) -> State:
    """Looks at a model's files.

    Raises:
        DataError: One of them is broken.
    """
    trained = finished(out / TRAINED / cell.condition.slug / f"seed-{cell.seed}")
    if trained is None:
        return State(None, {}, "training")
    if not trained.learned:
        return State(trained, {}, "")
    runs: Mapping[str, ResultsFile] = {}
    folder = out / RESULTS / cell.name
    if folder.is_dir():
        try:
            runs = next((model.runs for model in read_models([folder])), {})
        except OptionError:  # nothing in it yet
            runs = {}
    lacking = any(task not in runs for task, _ in cell.condition.scores.values())
    return State(trained, runs, "evaluation" if lacking else "")
