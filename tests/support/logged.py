"""Evaluations in this process, written as ``lm_eval --log_samples`` writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

from lm_eval_ext.runs.tasks import our_task_manager


def evaluate(
    folder: Path,
    model: LM | str,
    tasks: Sequence[str],
    *,
    include: Sequence[str] = (),
    metadata: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    name: str = "",
    **options: object,
) -> dict[str, Any]:
    """Evaluate a model and write results and samples into a folder.

    Args:
        folder: Made if need be.
        model: A model, or the name of a model type.
        tasks: Names of tasks of ours, or of ``include``.
        include: Folders with further task files.
        metadata: As of ``--metadata``.
        config: Entries of the results file's ``config`` that are replaced.
        name: The model's name in the results file; "": lm-eval's.
        **options: Further arguments of ``simple_evaluate``.

    Returns:
        What ``simple_evaluate`` returns.
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
    for task, samples in evaluated["samples"].items():
        tracker.save_results_samples(task_name=task, samples=samples)
    return evaluated
