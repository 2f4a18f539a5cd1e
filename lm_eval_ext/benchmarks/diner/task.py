"""The classes behind DiNeR's tasks; they hold the glossary that answers are compared by."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval.api.filter import Filter
from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_filter

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.diner import load, score
from lm_eval_ext.benchmarks.diner.extract import name_after_components, name_of
from lm_eval_ext.benchmarks.diner.in_context import INSTRUCTION, ORACLE, choose
from lm_eval_ext.benchmarks.diner.prompt import name_prompt
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Recipe
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.fewshot import Chosen, DemonstratedTask, Prompt, Turn
from lm_eval_ext.harness.missing import LeftOut
from lm_eval_ext.harness.names import NOT_SCORABLE
from lm_eval_ext.harness.task import ExtTask, GroupedGenerationTask

if TYPE_CHECKING:
    from datasets import Dataset

CHAT_STOPS: list[str] = []
"""After a chat template nothing but the turn's end stops an answer: it may be a sentence, or a
thought before it."""

TOO_FEW = "too_few_demonstrations"
"""Why a recipe is not asked in context."""


@register_filter("diner_name")
class NameFilter(Filter):
    """Takes the name out of each answer; "" where there is none."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Any) -> list[list[str]]:
        """Returns a name for every answer."""
        return [[name_of(answer) for answer in answers] for answers in resps]


@register_filter("diner_name_after_components")
class LastLineFilter(Filter):
    """Takes the name out of answers that state components before it; "" where there is none."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Any) -> list[list[str]]:
        """Returns a name for every answer."""
        return [[name_of(name_after_components(answer)) for answer in answers] for answers in resps]


class _Scored(ExtTask):
    """What all DiNeR tasks do: hold the split, sign it, and score by its glossary.

    Attributes:
        asks: What the class can score, and so the only legal ``diner_ask``.
        shows: Of demonstrations, likewise: no task is another one under its own name.
    """

    asks: str = load.NAME
    shows: str | None = None

    def __init__(self, config: dict[str, Any]) -> None:
        metadata = config.get("metadata") or {}
        self._options = config["custom_dataset"].options(metadata)
        for option, own in (("diner_ask", self.asks), ("diner_demonstrations", self.shows)):
            if self._options[option] != own:
                raise OptionError(
                    f"{option} is {self._options[option]!r}, but {config['task']} has {own!r} of "
                    "its own; leave it out"
                )
        documents = load.dataset(**metadata)["test"]
        self.split = load.split_for(self._options)
        present = set(documents["category"])
        self._categories = [one for one in (*CATEGORIES, load.OTHER) if one in present]
        super().__init__({**config, "metric_list": self.metric_list()})
        self._not_asked = provenance.left_out(self.dataset)
        # Where the user's files lie says nothing; what is in them does.
        for place in ("dir", "components_file"):
            self._signature.pop(place)
        if self._options["diner_components_file"] is not None:
            digest = sha256_of(Path(self._options["diner_components_file"]).expanduser())
            self._signature["components"] = digest[:16]
        self._signature["glossary"] = self.split.glossary.digest[:16]

    def metric_list(self) -> list[dict[str, Any]]:
        """lm-eval's."""
        return score.name_metrics(self._categories)

    def score(self, doc: dict[str, Any], results: Sequence[str]) -> dict[str, Any]:
        """Scores a document whose answers are all there."""
        (predicted,) = results
        return score.name(
            doc["answer"], doc["category"], predicted, self.split.glossary, self._categories
        )

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        """Builds the requests, without stop strings where a chat template is applied."""
        chat = kwargs.get("apply_chat_template", False)
        requests = super().construct_requests(doc, ctx, **kwargs)
        for request in requests if chat else ():
            text, generation = request.arguments
            request.arguments = (text, {**generation, "until": list(CHAT_STOPS)})
        return requests

    def process_results(self, doc: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores a document; one with a missing answer counts in no metric."""
        missing = any(isinstance(result, LeftOut) for result in results)
        if missing or self.config.process_results is not score.by_glossary:
            return super().process_results(doc, results)
        return self.score(doc, results)

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; recipes not asked are named there."""
        dumped: dict[str, Any] = super().dump_config()
        others = dumped["metadata"].get(NOT_SCORABLE, {})
        dumped["metadata"][NOT_SCORABLE] = {**self._not_asked, **others}
        return dumped


class NameTask(_Scored):
    """Asks for the name of a recipe's dish."""


class CompositionalTask(_Scored):
    """Asks for the components first, or states them, and then for the name."""

    asks = load.COMPOSITIONAL


class ComponentsTask(_Scored, GroupedGenerationTask):
    """Asks for the components of the name, one kind after the other."""

    asks = load.COMPONENTS

    def metric_list(self) -> list[dict[str, Any]]:
        """lm-eval's."""
        return score.component_metrics()

    def score(self, doc: dict[str, Any], results: Sequence[str]) -> dict[str, Any]:
        """Scores the answers to the three questions."""
        return score.components(doc["answer"], results, self.split.glossary)


class InContextTask(_Scored, DemonstratedTask):
    """Asks for the name after demonstrations from the training set."""

    shows: str = INSTRUCTION

    def choose(self, samples: "Dataset", k: int, seed: int) -> Chosen:
        """Makes documents that say what is shown and why."""
        from datasets import Dataset

        rows = list(samples)
        recipes = [Recipe(row["id"], row["instruction"], row["answer"]) for row in rows]
        choices = choose(self.split, recipes, self.shows, k, seed)
        documents = [
            {
                **row,
                "demonstrations": list(choice.ids),
                "why": [one.why for one in choice.picked],
            }
            for row in rows
            if (choice := choices.by_sample.get(row["id"])) is not None
        ]
        short = sorted(choices.not_enough)
        return Chosen(Dataset.from_list(documents), {TOO_FEW: short} if short else {})

    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """The recipe after its demonstrations."""
        shown = (self.split.by_id[name] for name in doc["demonstrations"])
        turns = tuple(Turn(name_prompt(one.instruction), one.name) for one in shown)
        return [Prompt(turns, doc["input"])]


class OracleTask(InContextTask):
    """The same with the paper's demonstrations, which the gold name chooses."""

    shows = ORACLE
