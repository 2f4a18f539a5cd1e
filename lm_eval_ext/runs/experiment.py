"""``lm-eval-ext experiment``: trains and evaluates what an experiment lacks."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments.cells import FIRST, MODELS, RESULTS, TRAINED, state_of
from lm_eval_ext.experiments.plan import Cell, Plan
from lm_eval_ext.runs.run import FailedError, Work
from lm_eval_ext.runs.tasks import select
from lm_eval_ext.training.command import Shared
from lm_eval_ext.training.records import Trained, summary

Train = Callable[..., list[Trained]]
Evaluate = Callable[[Work], None]


@dataclass(frozen=True)
class Steps:
    """What an experiment is made of: :func:`lm_eval_ext.training.command.train` and ``run``."""

    train: Train
    evaluate: Evaluate
    line: Callable[[str], None]


def check_tasks(plan: Plan) -> None:
    """Looks at tasks before anything is trained.

    Raises:
        OptionError: There is no such task, or a score is of a task that is not evaluated.
    """
    for tasks in dict.fromkeys(one.tasks for one in plan.conditions):
        found = {task for own in select(tasks, []).requested.values() for task in own}
        for condition in plan.conditions:
            for heading, (task, _) in condition.scores.items():
                if condition.tasks == tasks and task not in found:
                    raise OptionError(f"scores, {heading}: {task} is not among the tasks {tasks}")


def experiment(plan: Plan, out: Path, steps: Steps, *, only: str = "") -> None:
    """Trains every model that is not there yet, and evaluates those that learned.

    All models of a seed are evaluated before the next seed's are trained. What is there is not
    done again: training and ``run`` resume by themselves, in the same folders.

    Args:
        plan: The experiment.
        out: Its folder.
        steps: How.
        only: A pattern of models' names; the others are left as they are.

    Raises:
        LmEvalExtError: As the training.
        FailedError: Models could not be evaluated; all others were.
    """
    cells = plan.cells(only)
    shared = Shared(out / FIRST)
    number = 0
    failed: dict[str, str] = {}
    for _, of_seed in groupby(cells, key=lambda cell: cell.seed):
        learned: dict[str, list[Path]] = {}
        for cell in of_seed:
            number += 1
            place = f"[{number}/{len(cells)}] {cell.title}"
            steps.line(f"{place}: training")
            if state_of(cell, out).trained is None:  # results that are there are another model's
                shutil.rmtree(out / RESULTS / cell.name, ignore_errors=True)
            condition = cell.condition
            (trained,) = steps.train(
                condition.recipe, out / TRAINED / condition.slug,
                seeds=[cell.seed], settings=condition.settings, shared=shared,
            )  # fmt: skip
            steps.line(f"{place}: {summary(trained)}")
            file = _model_file(cell, plan, out, trained)
            if trained.learned:
                learned.setdefault(cell.condition.tasks, []).append(file)
        for tasks, files in learned.items():
            try:
                steps.evaluate(Work(files, tasks, out / RESULTS))
            except FailedError as error:
                failed |= error.reasons
    if failed:
        raise FailedError(failed, len(cells))


def _model_file(cell: Cell, plan: Plan, out: Path, trained: Trained) -> Path:
    """The training's own model file, under the names of the experiment."""
    import yaml

    assert trained.model_file is not None
    content: dict[str, Any] = yaml.safe_load(trained.model_file.read_text(encoding="utf-8"))
    content |= {"display_name": cell.title, "family": cell.condition.line(plan.about.trend)}
    file = out / MODELS / f"{cell.name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(file) as target:
        yaml.safe_dump(content, target, allow_unicode=True, sort_keys=False)
    return file


def missing(plan: Plan, out: Path, *, only: str = "") -> list[dict[str, Any]]:
    """What :func:`experiment` would do, a record for each model that lacks something.

    Returns:
        ``model``, ``condition``, ``seed`` and ``missing``, which is ``training`` or ``evaluation``.
    """
    found = []
    for cell in plan.cells(only):
        state = state_of(cell, out)
        if state.missing:
            own = {"condition": cell.condition.name, "seed": cell.seed, "missing": state.missing}
            found.append({"model": cell.name, **own})
    return found
