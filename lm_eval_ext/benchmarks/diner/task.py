"""DiNeR's task classes; they hold the glossary by which answers are scored."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.diner.answers import NAME_READER
from lm_eval_ext.benchmarks.diner.component_answers import COMPONENT_READER, NAMED_LAST_READER
from lm_eval_ext.benchmarks.diner.demonstrations import INSTRUCTION, ORACLE, choose
from lm_eval_ext.benchmarks.diner.load import Options
from lm_eval_ext.benchmarks.diner.prompt import name_prompt
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Recipe, Split
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.fewshot import FewshotTask, Prompt, Turn
from lm_eval_ext.harness.lm_eval_types import Doc
from lm_eval_ext.harness.names import TOO_FEW
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask


class NameTask(ExtTask):
    """A task that asks for the name of a recipe's dish.

    Attributes:
        asks: The only legal ``diner_ask``, which the class can score.
        shows: The only legal ``diner_demonstrations``.
        reader: Reads the answer out of a response, with a chat template and without.
    """

    options: Options
    resources: Split
    asks: str = "name"
    shows: str | None = None
    reader: AnswerReader = NAME_READER

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Refuse options that the class cannot score."""
        fixed_options = (
            ("ask", self.options.ask, self.asks),
            ("demonstrations", self.options.demonstrations, self.shows),
        )
        for name, value, fixed in fixed_options:
            if value != fixed:
                raise OptionError(
                    f"diner_{name} is {value!r}, but {config['task']} has {fixed!r} of "
                    "its own; leave it out"
                )

    def metrics(self) -> list[str] | None:
        """Return the card's metrics, without the categories that no document has.

        The answers to component questions have all of the card's metrics: None.
        """
        if self.asks == "components":
            return None
        categories = set(self.dataset["test"]["category"][:])
        absent = set(CATEGORIES)
        if len(categories) > 1:
            absent -= categories
        return [name for name in self.card.metrics if name.rpartition("/")[2] not in absent]

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader:
        """Return the reader of the class, since the paper does not say how answers were read."""
        del doc, index
        return self.reader

    def scoring_arguments(self) -> dict[str, object]:
        """Return keywords of :func:`~lm_eval_ext.benchmarks.diner.score.by_glossary`."""
        return {"glossary": self.resources.glossary}

    def sign(self, parts: dict[str, str]) -> None:
        """Replace the paths of the user's files by digests of their content."""
        parts.pop("dir")
        parts.pop("components_file")
        if self.options.components_file is not None:
            digest = sha256_of(Path(self.options.components_file).expanduser())
            parts["components"] = digest[:16]
        parts["glossary"] = self.resources.glossary.digest[:16]


class CompositionalTask(NameTask):
    """A task that asks for the components first, or states them, and then for the name."""

    asks = "cp"
    reader = NAMED_LAST_READER


class ComponentsTask(NameTask, GroupedGenerationTask):
    """A task that asks for the components of the name, one kind after the other."""

    asks = "components"
    reader = COMPONENT_READER


class InContextTask(NameTask, FewshotTask):
    """A task that asks for the name after demonstrations from the training set."""

    shows: str = INSTRUCTION

    def choose(
        self, samples: Dataset, k: int, seed: int
    ) -> tuple[list[Doc], dict[str, Iterable[str]]]:
        """Make documents that record the demonstrations and the reason for each."""
        rows = list(samples)
        recipes = [Recipe(row["id"], row["instruction"], row["answer"]) for row in rows]
        choices = choose(self.resources, recipes, self.shows, k, seed)
        docs = []
        for row in rows:
            choice = choices.by_sample.get(row["id"])
            if choice is not None:
                reasons = [demonstration.why for demonstration in choice.picked]
                docs.append({**row, "demonstrations": list(choice.ids), "why": reasons})
        return docs, {TOO_FEW: choices.not_enough}

    def prompts(self, doc: Doc) -> list[Prompt]:
        """Return the recipe after its demonstrations."""
        turns = []
        for name in doc["demonstrations"]:
            recipe = self.resources.by_id[name]
            turns.append(Turn(name_prompt(recipe.instruction), recipe.name))
        return [Prompt(tuple(turns), doc["input"])]


class OracleTask(InContextTask):
    """A task that shows the paper's demonstrations, which are chosen by the gold name."""

    shows = ORACLE
