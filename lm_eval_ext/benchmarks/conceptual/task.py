"""The class behind the conceptual tasks: each sample under both selections."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval.api.instance import Instance

from lm_eval_ext.benchmarks.conceptual import fewshot, openbookqa, score
from lm_eval_ext.benchmarks.conceptual.fewshot import SELECTIONS, Rules
from lm_eval_ext.benchmarks.conceptual.load import DEFAULT_PIPELINE
from lm_eval_ext.benchmarks.conceptual.prompt import framed, with_facts
from lm_eval_ext.harness.fewshot import Chosen, DemonstratedTask, Prompt, Turn

if TYPE_CHECKING:
    from datasets import Dataset

CHAT_STOPS: list[str] = []
"""After a chat template nothing but the turn's end stops an answer."""


class ConceptualTask(DemonstratedTask):
    """A task whose documents are asked twice: with random and with concept-sharing ones."""

    def __init__(self, config: dict[str, Any]) -> None:
        metadata = config.get("metadata") or {}
        load = config["custom_dataset"]
        options = load.options(metadata)
        self._rules = Rules(
            by_overlap=options["conceptual_dataset"] == "worldtree",
            max_words=options["conceptual_max_words"],
        )
        rows = load(**metadata)["test"].select_columns(["id", "concept"])
        # WorldTree's concepts are facts, each of which explains many things a little.
        self._concepts = () if self._rules.by_overlap else score.concepts_with_enough(rows)
        super().__init__({**config, "metric_list": score.metric_list(self._concepts)})
        # What the task's file says; --gen_kwargs may say otherwise later.
        self._until = (self.config.generation_kwargs or {}).get("until")
        self._rows: Mapping[str, dict[str, Any]] = {row["id"]: row for row in self.dataset["test"]}
        if options["conceptual_dataset"] == "openbookqa":
            named = options["conceptual_pipeline"] or DEFAULT_PIPELINE
            self._signature["pipeline"] = openbookqa.find(named).label

    def choose(self, samples: "Dataset", k: int, seed: int) -> Chosen:
        """Makes documents of the samples that have k demonstrations under both selections."""
        from datasets import Dataset

        rows = list(samples)
        chosen, left_out = fewshot.choose(rows, self._rules, k, seed)
        made = [
            {key: row[key] for key in ("id", "input", "answer", "concept", "concepts")}
            | fewshot.columns(chosen[row["id"]])
            for row in rows
            if row["id"] in chosen
        ]
        if self._rules.max_words:
            long = [doc["id"] for doc in made if self._words(doc) > self._rules.max_words]
            made = [doc for doc in made if doc["id"] not in set(long)]
            left_out |= {fewshot.TOO_LONG: long} if long else {}
        return Chosen(Dataset.from_list(made), left_out)

    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """The sample after its random and after its concept-sharing demonstrations."""
        return [self._prompt(doc, doc[f"{name}_demonstrations"]) for name in SELECTIONS]

    def _prompt(self, doc: Mapping[str, Any], shown: Sequence[str]) -> Prompt:
        rows = [self._rows[name] for name in shown]
        facts = dict.fromkeys(
            fact for row in [*rows, self._rows[doc["id"]]] for fact in row["facts"]
        )
        turns = [Turn(framed(row["input"]), row["answer"]) for row in rows]
        turns[0] = Turn(with_facts(facts, turns[0].input), turns[0].answer)
        return Prompt(tuple(turns), framed(doc["input"]))

    def _words(self, doc: dict[str, Any]) -> int:
        """Distinct words of the longer of both prompts."""
        return max(
            fewshot.distinct_words(
                prompt.input,
                *(text for turn in prompt.demonstrations for text in (turn.input, turn.answer)),
            )
            for prompt in self.prompts(doc)
        )

    def construct_requests(
        self, doc: dict[str, Any], ctx: list[str], **kwargs: Any
    ) -> list[Instance]:
        """Builds both requests.

        Where a chat template is applied, the task's own stop string is left out; one that
        the user gave stays.
        """
        chat = kwargs.get("apply_chat_template", False)
        requests = super().construct_requests(doc, ctx, **kwargs)
        for request in requests if chat else ():
            text, generation = request.arguments
            if generation.get("until") != self._until:
                continue
            request.arguments = (text, {**generation, "until": list(CHAT_STOPS)})
        return requests

    def process_results(self, doc: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores a document; one with a missing answer counts in no metric."""
        found = super().process_results(doc, results)
        # Nothing is scored under --predict_only, which takes the function away.
        if not found or not callable(self.config.process_results):
            return found
        return dict(score.values(doc, found, self._concepts))
