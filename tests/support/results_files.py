"""Results and samples as lm-eval writes them, made up: for pages of many models."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.cards import card_of
from lm_eval_ext.stats.intervals import UNIT, interval, mean_estimate

VALUES = {"direct": "correct"}
"""Columns of values behind metrics that are called otherwise."""

DATE = "2026-01-02T03-04-05.000006"


def write_run(
    folder: Path,
    model: str,
    task: str,
    rows: Sequence[dict[str, Any]],
    *,
    metric: str = "exact_match",
    date: str = DATE,
    more: dict[str, Any] | None = None,
    data: str = "made",
) -> Path:
    """Writes a results file and its samples.

    Args:
        folder: Made if need be.
        model: As lm-eval names it.
        task: Any name.
        rows: Each with ``doc``, ``prompt``, ``target``, ``answer`` and ``score``.
        metric: What the scores are called.
        date: In the files' names.
        more: Further figures of the results.
        data: A part of the signature.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = [float(row["score"]) for row in rows]
    mean = sum(scores) / len(scores)
    error = (sum((score - mean) ** 2 for score in scores) / len(scores) ** 2) ** 0.5
    found = interval(mean_estimate(scores, map(str, range(len(scores)))), UNIT)
    noted = {"documents": len(scores), "clusters": len(scores)}
    if found.method:
        noted |= found._asdict()
    card = card_of(task)
    metadata = {"signature": {"task": task, "data": data}, "intervals": {f"{metric},none": noted}}
    if card:
        metadata["benchmark"] = card.name
    entry = {"metric": metric, "aggregation": "lm_eval_ext", "range": [0.0, 1.0], "unit": "share"}
    results = {
        "results": {task: {f"{metric},none": mean, f"{metric}_stderr,none": error, **(more or {})}},
        "configs": {task: {"task": task, "metadata": metadata, "metric_list": [entry]}},
        "versions": {task: "1.0"},
        "n-shot": {task: 0},
        "higher_is_better": {task: {metric: True}},
        "n-samples": {task: {"original": len(rows), "effective": len(rows)}},
        "config": {"model": "recorded", "model_args": {"path": model}},
        "lm_eval_version": "0.4.13",
        "model_name": model,
    }
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(results), encoding="utf-8")
    with (folder / f"samples_{task}_{date}.jsonl").open("w", encoding="utf-8") as out:
        for number, row in enumerate(rows):
            # A row of scores for a task of ours, lm-eval's metric for others.
            values = {
                **row.get("facets", {}),
                VALUES.get(metric.partition("/")[0], metric): row["score"],
            }
            scored = (
                {"metrics": ["rows"], "rows": [values]}
                if card
                else {"metrics": [metric], metric: row["score"]}
            )
            sample = {
                "doc_id": number,
                "doc": row["doc"],
                "target": row["target"],
                "arguments": {"gen_args_0": {"arg_0": row["prompt"], "arg_1": {}}},
                "resps": [[row["answer"]]],
                "filtered_resps": [row["answer"]],
                "filter": "none",
                **scored,
                "doc_hash": f"doc{number}",
                "prompt_hash": f"prompt{number}",
                "target_hash": f"target{number}",
            }
            out.write(json.dumps(sample) + "\n")
    return file


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
