"""COGS's task classes: bare sentences, pairs of them, and sentences after demonstrations."""

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from lm_eval_ext.benchmarks.cogs import in_context
from lm_eval_ext.benchmarks.cogs.chat import INSTRUCTION, form_in
from lm_eval_ext.harness.fewshot import Chosen, FewshotTask, Prompt, Turn
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask

COLUMNS = ["id", "type", "corpus", "split", "input", "answer"]


class _ChatTask(ExtTask):
    """What all COGS tasks do after a chat template."""

    def read_chat_answer(self, answer: str) -> str:
        """The logical form."""
        return form_in(answer)


class CogsTask(_ChatTask):
    """A task that asks for the logical form of a sentence."""

    def chat_instruction(self) -> str | None:
        """None for a prompt with the user's own words, or if the user wants none."""
        own = self.options["cogs_prefix"] or self.options["cogs_separator"]
        return INSTRUCTION if self.options["cogs_instruction"] and not own else None

    def sign(self, own: dict[str, str]) -> None:
        """Without the option of the instruction, which is signed where it is used."""
        own.pop("instruction")


class OverestimationTask(CogsTask, GroupedGenerationTask):
    """A task that asks for every sentence twice, without and with substitution."""


class InContextTask(_ChatTask, FewshotTask):
    """A task that shows every sample demonstrations from the training set."""

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Renders the training examples as demonstrations."""
        self._train = self.dataset["train"].to_list()
        self._turns = {
            row["id"]: Turn(self.framed(row["input"]), row["answer"]) for row in self._train
        }

    # In Python, since lm-eval compiles a template anew for every turn of every prompt.
    @staticmethod
    def framed(sentence: str) -> str:
        """A sentence in the format of the prompt."""
        return f"Sentence: {sentence}\nLogical form:"

    def choose(self, samples: Dataset, k: int, seed: int) -> Chosen:
        """Makes documents that record demonstrations, reasons, and constructions not covered."""
        rows = samples.to_list()
        choices = in_context.choose(
            self._train, rows, cover=self.options["cogs_cover"], k=k, seed=seed
        )
        documents = [
            {
                **{name: row[name] for name in COLUMNS},
                "demonstrations": list(choice.ids),
                "why": [one.why for one in choice.picked],
                "not_shown": list(choice.uncovered),
            }
            for row in rows
            if (choice := choices.by_sample.get(row["id"])) is not None
        ]
        return Chosen.of(documents, choices.not_enough)

    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """The sample after its demonstrations."""
        turns = tuple(self._turns[name] for name in doc["demonstrations"])
        return [Prompt(turns, self.framed(doc["input"]))]
