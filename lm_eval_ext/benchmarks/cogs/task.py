"""COGS's task classes: bare sentences, pairs of them, and sentences after demonstrations."""

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.cogs import demonstrations
from lm_eval_ext.benchmarks.cogs.answers import INSTRUCTION, READER
from lm_eval_ext.benchmarks.cogs.load import Options
from lm_eval_ext.harness.fewshot import FewshotTask, Prompt, Turn
from lm_eval_ext.harness.lm_eval_types import Doc
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask


class CogsTask(ExtTask):
    """A task that asks for the logical form of a sentence."""

    options: Options

    def chat_instruction(self) -> str | None:
        """Return None for a prompt with words of its own or the user's, or on the user's wish."""
        has_words = bool(self.options.prefix or self.options.separator)
        if has_words or not self.options.instruction:
            return None
        return INSTRUCTION

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader | None:
        """Return the reader after a template; the paper compares whole responses."""
        del doc, index
        return READER if self.has_chat_template else None

    def sign(self, parts: dict[str, str]) -> None:
        """Leave out the option of the instruction, which is signed where it is used."""
        parts.pop("instruction", None)


class OverestimationTask(CogsTask, GroupedGenerationTask):
    """A task that asks for every sentence twice, without and with substitution."""


class InContextTask(CogsTask, FewshotTask):
    """A task that shows every sample demonstrations from the training set."""

    def chat_instruction(self) -> None:
        """Return None, since the prompt says what to do."""

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader:
        """Return the reader of logical forms, also without a template: the prompt is our own."""
        del doc, index
        return READER

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Render the training examples as demonstrations."""
        self._turns = {}
        for row in self.dataset["train"].to_list():
            self._turns[row["id"]] = Turn(self.framed(row["input"]), row["answer"])

    # In Python, since lm-eval compiles a template anew for every turn of every prompt.
    @staticmethod
    def framed(sentence: str) -> str:
        """Return a sentence in the format of the prompt."""
        return f"Sentence: {sentence}\nLogical form:"

    def choose(self, samples: Dataset, k: int, seed: int) -> tuple[list[Doc], dict[str, list[str]]]:
        """Make documents that record demonstrations and the reason for each."""
        train_ids = list(self._turns)
        docs = []
        for row in samples.to_list():
            exposure = row.pop("exposure")
            chosen = demonstrations.choose(train_ids, row["corpus"], exposure, k=k, seed=seed)
            reasons = list(chosen.values())
            docs.append({**row, "demonstrations": list(chosen), "why": reasons})
        return docs, {}

    def prompts(self, doc: Doc) -> list[Prompt]:
        """Return the sample after its demonstrations."""
        turns = tuple(self._turns[name] for name in doc["demonstrations"])
        return [Prompt(turns, self.framed(doc["input"]))]
