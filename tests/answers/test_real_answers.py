"""Answers of real models to our own mini tasks, read by eye: the reader takes what a person takes.

``real_answers.jsonl`` has the responses of SmolLM2-135M-Instruct and Qwen2.5-Coder-0.5B-Instruct
(Apache-2.0) after their chat templates, each with what a person takes for the answer; null if a
person finds none.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext import load_documents
from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.slog.answers import READERS

FILE = Path(__file__).with_name("real_answers.jsonl")
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
TASKS = sorted({row["task"] for row in ROWS})


def reader_of(task: str, documents: dict[str, dict[str, Any]], document_id: str) -> AnswerReader:
    """Return what reads the answers to a document of a task."""
    if task == "conceptual_mini":
        document = documents[document_id]
        options = tuple(Option(**option) for option in document["options"])
        return reader_for(options, document["templates"][0])
    return READERS["varfree"] if task == "slog_mini" else NAME_READER


@pytest.mark.parametrize("task", TASKS)
def test_the_reader_takes_what_a_person_takes(task: str) -> None:
    """No answer of 40 or more is read otherwise than by eye."""
    rows = [row for row in ROWS if row["task"] == task]
    documents = {}
    if task == "conceptual_mini":
        documents = {document["id"]: document for document in load_documents(task)}
    misread = []
    for row in rows:
        answer = reader_of(task, documents, row["id"]).read(row["response"])
        if row["taken"] is None:
            is_right = mini.glossary().parse(answer) is None
        else:
            is_right = answer == row["taken"].rstrip(".")
        if not is_right:
            misread.append((row["response"], answer, row["taken"]))
    assert len(rows) >= 40
    assert misread == []
