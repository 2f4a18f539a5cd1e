"""Results and samples as lm-eval writes them, made up: for pages of many models."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from lm_eval_ext.cards import card_of
from lm_eval_ext.stats.intervals import UNIT, interval, mean_estimate

VALUE_COLUMNS = {"direct": "correct"}
"""Columns of values behind metrics that are called otherwise."""

DATE = "2026-01-02T03-04-05.000006"


class _AnsweredDocument(TypedDict):
    doc: Mapping[str, object]
    prompt: str
    target: str
    answer: str
    score: float


class AnsweredRow(_AnsweredDocument, total=False):
    """A document with an answer and its score; for a task of ours, facets and further values."""

    facets: Mapping[str, str | float]


def write_files(
    folder: Path,
    model: str,
    task: str,
    *,
    figures: Mapping[str, float | str],
    entries: Sequence[Mapping[str, object]],
    metadata: Mapping[str, object],
    samples: Iterable[Mapping[str, object]],
    size: int,
    date: str = DATE,
) -> Path:
    """Write a results file and its samples; return the results file.

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
    all_metadata = {"signature": {"task": task, "data": "made"}, **metadata}
    card = card_of(task)
    if card is not None:
        all_metadata["benchmark"] = card.name
    config = {"task": task, "metadata": all_metadata, "metric_list": entries}
    content = {
        "results": {task: figures},
        "configs": {task: config},
        "versions": {task: "1.0"},
        "n-samples": {task: {"original": size, "effective": size}},
        "config": {"model": "recorded", "model_args": {"path": model}},
        "model_name": model,
    }
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    with (folder / f"samples_{task}_{date}.jsonl").open("w", encoding="utf-8") as lines:
        for number, sample in enumerate(samples):
            line = {
                "doc_id": number, "target": "x", "arguments": {}, "filtered_resps": ["y"],
                "filter": "none", "doc_hash": f"doc{number}", "prompt_hash": f"prompt{number}",
                "target_hash": f"target{number}", **sample,
            }  # fmt: skip
            lines.write(json.dumps(line) + "\n")
    return file


def write_run(
    folder: Path,
    model: str,
    task: str,
    rows: Sequence[AnsweredRow | Mapping[str, Any]],
    *,
    metric: str = "exact_match",
    date: str = DATE,
    further_figures: Mapping[str, float] | None = None,
) -> Path:
    """Write results of one metric, and their samples; return the results file.

    Args:
        folder: As for :func:`write_files`; so are ``model``, ``task`` and ``date``.
        model: As lm-eval names it.
        task: Any name.
        rows: The documents with answers and scores, with the keys of :class:`AnsweredRow`.
        metric: What the scores are called.
        date: In the files' names.
        further_figures: Figures of the results beside the mean of the scores.
    """
    scores = [float(row["score"]) for row in rows]
    bounds = interval(mean_estimate(scores, map(str, range(len(scores)))), UNIT)
    interval_entry: dict[str, object] = {"documents": len(scores), "clusters": len(scores)}
    if bounds.method:
        interval_entry |= bounds._asdict()
    name = f"{metric},none"
    return write_files(
        folder,
        model,
        task,
        figures={name: sum(scores) / len(scores), **(further_figures or {})},
        entries=[{"metric": metric, "range": [0.0, 1.0], "unit": "share"}],
        metadata={"intervals": {name: interval_entry}},
        samples=[_sample(row, task, metric) for row in rows],
        size=len(rows),
        date=date,
    )


def _sample(row: AnsweredRow | Mapping[str, Any], task: str, metric: str) -> dict[str, object]:
    """Return a sample with a row of scores for a task of ours, with lm-eval's metric for others."""
    sample: dict[str, object] = {
        "doc": row["doc"],
        "target": row["target"],
        "arguments": {"gen_args_0": {"arg_0": row["prompt"], "arg_1": {}}},
        "filtered_resps": [row["answer"]],
    }
    if card_of(task) is None:
        return sample | {"metrics": [metric], metric: row["score"]}
    base_metric = metric.partition("/")[0]
    column = VALUE_COLUMNS.get(base_metric, metric)
    scored_row = {**row.get("facets", {}), column: row["score"]}
    return sample | {"metrics": ["rows"], "rows": [scored_row]}


def answered_rows(count: int, right: int) -> list[AnsweredRow]:
    """Return documents of which the first ``right`` ones are answered right."""
    rows: list[AnsweredRow] = []
    for number in range(count):
        is_right = number < right
        rows.append(
            {
                "doc": {"id": str(number), "item": f"noun{number}", "type": "t"},
                "prompt": f"p{number}",
                "target": "x",
                "answer": "x" if is_right else "y",
                "score": float(is_right),
            }
        )
    return rows
