"""The class behind the tasks in context: every example after its demonstrations."""

from typing import TYPE_CHECKING, Any

from lm_eval_ext.benchmarks.cogs import in_context
from lm_eval_ext.harness.fewshot import Chosen, DemonstratedTask, Prompt, Turn

if TYPE_CHECKING:
    from datasets import Dataset

TOO_FEW = "too_few_demonstrations"
"""Why a sample is not asked."""

COLUMNS = ["id", "type", "corpus", "split", "input", "answer"]


class InContextTask(DemonstratedTask):
    """A task that shows every sample demonstrations from the training set."""

    def __init__(self, config: dict[str, Any]) -> None:
        options = config["custom_dataset"].options(config.get("metadata") or {})
        self._cover = options["cogs_cover"]
        super().__init__(config)
        self._turns = {
            row["id"]: Turn(self.framed(row["input"]), row["answer"])
            for row in self.dataset["train"]
        }

    # In Python, since lm-eval compiles a template anew for every turn of every prompt.
    @staticmethod
    def framed(sentence: str) -> str:
        """A sentence as the prompt asks for its logical form."""
        return f"Sentence: {sentence}\nLogical form:"

    def choose(self, samples: "Dataset", k: int, seed: int) -> Chosen:
        """Makes documents that say what is shown, why, and which constructions are not."""
        from datasets import Dataset

        rows = list(samples)
        choices = in_context.choose(self.dataset["train"], rows, cover=self._cover, k=k, seed=seed)
        documents = []
        for row in rows:
            choice = choices.by_sample.get(row["id"])
            if choice is not None:
                documents.append(
                    {
                        **{name: row[name] for name in COLUMNS},
                        "demonstrations": list(choice.ids),
                        "why": [one.why for one in choice.picked],
                        "not_shown": list(choice.uncovered),
                    }
                )
        short = sorted(choices.not_enough)
        return Chosen(Dataset.from_list(documents), {TOO_FEW: short} if short else {})

    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """The sample after its demonstrations."""
        turns = tuple(self._turns[name] for name in doc["demonstrations"])
        return [Prompt(turns, self.framed(doc["input"]))]
