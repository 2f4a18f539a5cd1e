"""Evaluations in this process, written as ``lm_eval --log_samples`` writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker

from lm_eval_ext.runs.tasks import our_task_manager


def evaluate(
    folder: Path,
    model: Any,
    tasks: Sequence[str],
    *,
    include: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    name: str = "",
    **options: Any,
) -> dict[str, Any]:
    """Evaluates tasks of ours, or of ``include``, and writes results and samples into a folder.

    ``config`` and ``name`` replace parts of what the results file says about the model. Returns
    what ``simple_evaluate`` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tracker = EvaluationTracker(output_path=str(folder / "results.json"))
    evaluated: dict[str, Any] = simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=our_task_manager(include, metadata or {}),
        evaluation_tracker=tracker,
        log_samples=True,
        bootstrap_iters=0,
        **options,
    )
    results = {key: value for key, value in evaluated.items() if key != "samples"}
    results["config"].update(config or {})
    if name:
        tracker.general_config_tracker.model_name = name
    tracker.save_results_aggregated(results=results, samples=evaluated["samples"])
    for task, rows in evaluated["samples"].items():
        tracker.save_results_samples(task_name=task, samples=rows)
    return evaluated
