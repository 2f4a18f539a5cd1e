"""Answers of real models to our own mini tasks, read by eye: the reader takes what a person takes.

``real_answers.jsonl`` has the responses of SmolLM2-135M-Instruct and Qwen2.5-Coder-0.5B-Instruct
(Apache-2.0) after their chat templates, each with what a person takes for the answer; null if a
person finds none. ``prompt`` says whether the system prompt told the model to think step by step,
and whether the demonstrations stood in one turn.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext import load_documents
from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.cogs.answers import READER as COGS_READER
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.magnifico.answers import QueryReader
from lm_eval_ext.benchmarks.slog.answers import READERS as SLOG_READERS

FILE = Path(__file__).with_name("real_answers.jsonl")
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
TASKS = sorted({row["task"] for row in ROWS})


SIMPLE_READERS: dict[str, AnswerReader] = {
    "cogs_mini_icl_gen": COGS_READER,
    "diner_mini_name": NAME_READER,
    "magnifico_mini": QueryReader(),
    "slog_mini": SLOG_READERS["varfree"],
}
"""The readers of tasks whose documents are all read alike."""

MIN_ANSWERS = 50
"""Answers of each task that were read by eye."""


def reader_of(task: str, documents: dict[str, dict[str, Any]], document_id: str) -> AnswerReader:
    """Return what reads the answers to a document of a task."""
    if task != "conceptual_mini":
        return SIMPLE_READERS[task]
    document = documents[document_id]
    options = tuple(Option(**option) for option in document["options"])
    return reader_for(options, document["templates"][0])


def is_read_as_by_eye(task: str, answer: str, taken: str | None) -> bool:
    """Return whether the reader takes what a person takes, or nothing that can be right."""
    if taken is not None:
        return answer in (taken, taken.rstrip("."))
    if task == "magnifico_mini":
        return answer == ""
    return mini.glossary().parse(answer) is None


@pytest.mark.parametrize("task", TASKS)
def test_the_reader_takes_what_a_person_takes(task: str) -> None:
    """No answer of 50 or more is read otherwise than by eye."""
    rows = [row for row in ROWS if row["task"] == task]
    documents = {}
    if task == "conceptual_mini":
        documents = {document["id"]: document for document in load_documents(task)}
    misread = []
    for row in rows:
        answer = reader_of(task, documents, row["id"]).read(row["response"])
        if not is_read_as_by_eye(task, answer, row["taken"]):
            misread.append((row["response"], answer, row["taken"]))
    assert len(rows) >= MIN_ANSWERS
    assert misread == []
