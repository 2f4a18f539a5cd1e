"""The task class of the conceptual benchmark: each sample under both selections."""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from lm_eval_ext.benchmarks.conceptual import fewshot, openbookqa, score
from lm_eval_ext.benchmarks.conceptual.fewshot import SELECTIONS, Rules
from lm_eval_ext.benchmarks.conceptual.load import DEFAULT_PIPELINE
from lm_eval_ext.benchmarks.conceptual.prompt import framed, with_facts
from lm_eval_ext.harness.fewshot import Chosen, FewshotTask, Prompt, Turn


class ConceptualTask(FewshotTask):
    """Asks each document twice: with random and with concept-sharing demonstrations."""

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Finds the concepts that have metrics of their own."""
        self._rules = Rules(
            by_overlap=self.options["conceptual_dataset"] == "worldtree",
            max_words=self.options["conceptual_max_words"],
        )
        rows = self.dataset["test"].to_list()
        self._rows: Mapping[str, dict[str, Any]] = {row["id"]: row for row in rows}
        # WorldTree's concepts are facts. Each explains many samples only in part, so none gets
        # metrics of its own.
        self._concepts = (
            () if self._rules.by_overlap else score.concepts_with_enough(self._rows.values())
        )

    def metrics(self) -> list[dict[str, Any]]:
        """Returns the metric list, which depends on the concepts."""
        return score.metric_list(self._concepts)

    def sign(self, own: dict[str, str]) -> None:
        """Adds the version of the spaCy pipeline that found the concepts."""
        if self.options["conceptual_dataset"] == "openbookqa":
            named = self.options["conceptual_pipeline"] or DEFAULT_PIPELINE
            own["pipeline"] = openbookqa.find(named).label

    def choose(self, samples: Dataset, k: int, seed: int) -> Chosen:
        """Makes documents of the samples that have k demonstrations under both selections."""
        rows = samples.to_list()
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

    def score(self, doc: dict[str, Any], answers: Sequence[Any]) -> dict[str, Any]:
        """Makes lm-eval's metrics of the scores under both selections."""
        return dict(score.values(doc, super().score(doc, answers), self._concepts))
