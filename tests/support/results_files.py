"""Results and samples as lm-eval writes them, made up: for pages of many models."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.cards import card_of
from lm_eval_ext.stats.intervals import UNIT, interval, mean_estimate

VALUES = {"direct": "correct"}
"""Columns of values behind metrics that are called otherwise."""

DATE = "2026-01-02T03-04-05.000006"


def write_files(
    folder: Path,
    model: str,
    task: str,
    *,
    figures: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any],
    samples: Iterable[Mapping[str, Any]],
    size: int,
    date: str = DATE,
) -> Path:
    """Writes a results file and its samples.

    Args:
        folder: Made if need be.
        model: As lm-eval names it.
        task: Any name.
        figures: By ``metric,filter``.
        entries: The task's ``metric_list``.
        metadata: The task's; a signature and the card's name are added.
        samples: Each with ``doc``, ``metrics`` and their values, and with more if it matters.
        size: Of the task, in documents.
        date: In the files' names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {"signature": {"task": task, "data": "made"}, **metadata}
    if card := card_of(task):
        about["benchmark"] = card.name
    content = {
        "results": {task: figures},
        "configs": {task: {"task": task, "metadata": about, "metric_list": entries}},
        "versions": {task: "1.0"},
        "n-samples": {task: {"original": size, "effective": size}},
        "config": {"model": "recorded", "model_args": {"path": model}},
        "model_name": model,
    }
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    with (folder / f"samples_{task}_{date}.jsonl").open("w", encoding="utf-8") as out:
        for number, sample in enumerate(samples):
            line = {
                "doc_id": number, "target": "x", "arguments": {}, "filtered_resps": ["y"],
                "filter": "none", "doc_hash": f"doc{number}", "prompt_hash": f"prompt{number}",
                "target_hash": f"target{number}", **sample,
            }  # fmt: skip
            out.write(json.dumps(line) + "\n")
    return file


def write_run(
    folder: Path,
    model: str,
    task: str,
    rows: Sequence[dict[str, Any]],
    *,
    metric: str = "exact_match",
    date: str = DATE,
    more: Mapping[str, Any] | None = None,
) -> Path:
    """Writes results of one metric, and their samples.

    Args:
        folder: As of :func:`write_files`; so are ``model``, ``task`` and ``date``.
        rows: Each with ``doc``, ``prompt``, ``target``, ``answer`` and ``score``.
        metric: What the scores are called.
        more: Further figures of the results.
    """
    scores = [float(row["score"]) for row in rows]
    found = interval(mean_estimate(scores, map(str, range(len(scores)))), UNIT)
    noted = {"documents": len(scores), "clusters": len(scores)}
    if found.method:
        noted |= found._asdict()

    def sample(row: Mapping[str, Any]) -> dict[str, Any]:
        """With a row of scores for a task of ours, with lm-eval's metric for others."""
        value = {VALUES.get(metric.partition("/")[0], metric): row["score"]}
        of_ours = {"metrics": ["rows"], "rows": [{**row.get("facets", {}), **value}]}
        return {
            "doc": row["doc"],
            "target": row["target"],
            "arguments": {"gen_args_0": {"arg_0": row["prompt"], "arg_1": {}}},
            "filtered_resps": [row["answer"]],
            **(of_ours if card_of(task) else {"metrics": [metric], metric: row["score"]}),
        }

    return write_files(
        folder, model, task,
        figures={f"{metric},none": sum(scores) / len(scores), **(more or {})},
        entries=[{"metric": metric, "range": [0.0, 1.0], "unit": "share"}],
        metadata={"intervals": {f"{metric},none": noted}},
        samples=map(sample, rows), size=len(rows), date=date,
    )  # fmt: skip


def rows(count: int, right: int) -> list[dict[str, Any]]:
    """Documents of which the first ones are answered right."""
    return [
        {
            "doc": {"id": str(number), "item": f"noun{number}", "type": "t"},
            "prompt": f"p{number}",
            "target": "x",
            "answer": "x" if number < right else "y",
            "score": float(number < right),
        }
        for number in range(count)
    ]
