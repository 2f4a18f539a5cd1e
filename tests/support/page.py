"""The samples that a leaderboard page has for its browser of samples."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import TypedDict

RIGHT = 0
"""What stands for an answer that is the gold."""


class ModelSamples(TypedDict):
    """A model's side of the samples, in the order of the documents; None: it has no such sample."""

    answers: list[str | int | None]
    scores: list[list[float | None]]
    parts: list[list[dict[str, object]] | None]


class TaskSamples(TypedDict):
    """A task's documents (title, id, gold and more), and its models by name."""

    documents: list[list[str]]
    models: dict[str, ModelSamples]


def samples_in(page: Path) -> dict[str, TaskSamples]:
    """Return the samples of each task, as the page's script unpacks them."""
    text = page.read_text()
    (content,) = re.findall(r'id="content">([^<]*)<', text)
    packed_samples = re.findall(r'id="samples-\d+">([^<]*)<', text)
    samples = {}
    for task, packed in zip(json.loads(content), packed_samples, strict=True):
        samples[task["task"]] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return samples


def answers(samples: TaskSamples, model: str) -> list[str | int | None]:
    """Return a model's answers, with the gold where the page says that the answer is right."""
    texts: list[str | int | None] = []
    for answer, document in zip(
        samples["models"][model]["answers"], samples["documents"], strict=True
    ):
        _title, _id, gold, *_ = document
        texts.append(gold if answer == RIGHT else answer)
    return texts
