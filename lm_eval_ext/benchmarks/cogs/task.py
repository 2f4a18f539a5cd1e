"""COGS's task classes: all stop at a line's end; the in-context task chooses demonstrations."""

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from lm_eval_ext.benchmarks.cogs import in_context
from lm_eval_ext.harness.fewshot import Chosen, FewshotTask, Prompt, Turn
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask

COLUMNS = ["id", "type", "corpus", "split", "input", "answer"]


LINE_END = ("\n",)
"""The stop string after a chat template as well: the whole answer is compared, and a logical form
is one line."""


class CogsTask(ExtTask):
    """A task that asks for the logical form of a sentence."""

    chat_stops = LINE_END


class OverestimationTask(GroupedGenerationTask):
    """A task that asks for every sentence twice, without and with substitution."""

    chat_stops = LINE_END


class InContextTask(FewshotTask):
    """A task that shows every sample demonstrations from the training set."""

    chat_stops = LINE_END

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
