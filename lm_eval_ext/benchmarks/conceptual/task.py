"""The task class of the conceptual benchmark: each sample under both selections."""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from lm_eval_ext.benchmarks.conceptual import copying, fewshot, glue, openbookqa, score
from lm_eval_ext.benchmarks.conceptual.answers import in_chat
from lm_eval_ext.benchmarks.conceptual.fewshot import SAME_LABELS, SELECTIONS, Rules
from lm_eval_ext.benchmarks.conceptual.load import DEFAULT_PIPELINE, dataset
from lm_eval_ext.benchmarks.conceptual.prompt import ALL, framed, with_facts
from lm_eval_ext.cards import cards
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.fewshot import Chosen, FewshotTask, Prompt, Turn
from lm_eval_ext.harness.metrics import Row
from lm_eval_ext.log import get_logger
from lm_eval_ext.stats.measures import Question

_log = get_logger(__name__)

OF_DOCUMENT = ("id", "input", "answer", "concept", "concepts", "answers", "options", "answer_label")
"""Columns of a sample that its document has, too."""


class ConceptualTask(FewshotTask):
    """Asks each document with random and with concept-sharing demonstrations.

    With a control it asks a third time, and with several templates as often for each.
    """

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Finds the templates and the rules for demonstrations."""
        asked = self.asked = dataset.checked(self.options)
        self._rules = Rules(
            by_overlap=asked.dataset == "worldtree",
            max_words=asked.max_words,
            min_overlap=asked.min_overlap,
            separator=glue.SEPARATOR if asked.dataset == "glue" else "",
            control=asked.control == "labels",
        )
        self._selections = (*SELECTIONS, SAME_LABELS) if self._rules.control else SELECTIONS
        self._rows = {row["id"]: row for row in self.dataset["test"].to_list()}
        self._templates = tuple(asked.templates)

    def metrics(self) -> list[str]:
        """Those of the control only where it is asked."""
        return [
            name
            for name in cards()["conceptual"].metrics
            if self._rules.control or name not in score.OF_CONTROL
        ]

    def questions(self, found: dict[str, Question]) -> dict[str, Question]:
        """With the draws that the option names."""
        draws = {"draws": self.asked.bootstrap}
        return {
            name: Question(one.measure.model_copy(update=draws), one.where)
            for name, one in found.items()
        }

    def sign(self, own: dict[str, str]) -> None:
        """Adds what the options leave open.

        That is the default's template by name, a digest of all inputs and answers, and the version
        of the spaCy pipeline that found the concepts.
        """
        names = "+".join(self._templates)
        own["template"] = f"best of {names}" if self.asked.template == ALL else names
        shown = sorted([row["id"], row["inputs"], row["answers"]] for row in self._rows.values())
        own["inputs"] = signature.digest(shown)
        if self.asked.dataset == "openbookqa":
            own["pipeline"] = openbookqa.find(self.asked.pipeline or DEFAULT_PIPELINE).label

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; with a digest of who is shown what."""
        dumped = super().dump_config()
        shown = sorted(
            [doc["id"], *(doc[f"{name}_demonstrations"] for name in self._selections)]
            for doc in self.chosen.documents.to_list()
        )
        dumped["metadata"][signature.METADATA_KEY]["demonstrations"] = signature.digest(shown)
        return dumped

    def choose(self, samples: Dataset, k: int, seed: int) -> Chosen:
        """Makes documents of the samples that have k demonstrations under both selections."""
        rows = samples.to_list()
        chosen, left_out = fewshot.choose(rows, self._rules, k, seed)
        made = [
            {key: row[key] for key in OF_DOCUMENT}
            | {"templates": list(self._templates)}
            | fewshot.columns(chosen[row["id"]], self._selections)
            for row in rows
            if row["id"] in chosen
        ]
        if self._rules.max_words:
            long = [doc["id"] for doc in made if self._words(doc) > self._rules.max_words]
            made = [doc for doc in made if doc["id"] not in set(long)]
            left_out |= {fewshot.TOO_LONG: long} if long else {}
        if without := sum(not doc.get(f"{SAME_LABELS}_demonstrations", True) for doc in made):
            _log.warning(
                "%s: %d samples have no demonstrations of other concepts with the same labels, and "
                "are in no metric of that control",
                self.config.task,
                without,
            )
        return Chosen(Dataset.from_list(made), left_out)

    def prompts(self, doc: dict[str, Any]) -> list[Prompt]:
        """The sample by each template, after the demonstrations of each selection."""
        return [
            self._prompt(doc, doc[f"{name}_demonstrations"], number)
            for number in range(len(self._templates))
            for name in score.selections_of(doc)
        ]

    def _prompt(self, doc: Mapping[str, Any], shown: Sequence[str], template: int) -> Prompt:
        rows = [self._rows[name] for name in shown]
        own = self._rows[doc["id"]]
        facts = dict.fromkeys(fact for row in [*rows, own] for fact in row["facts"])
        turns = [Turn(framed(row["inputs"][template]), row["answers"][template]) for row in rows]
        turns[0] = Turn(with_facts(facts, turns[0].input), turns[0].answer)
        return Prompt(tuple(turns), framed(own["inputs"][template]))

    def read_chat_answer(self, answer: str) -> str:
        """One line."""
        return in_chat(answer)

    def _words(self, doc: dict[str, Any]) -> int:
        """Distinct words of the longest of all prompts."""
        return max(
            fewshot.distinct_words(
                prompt.input,
                *(text for turn in prompt.demonstrations for text in (turn.input, turn.answer)),
            )
            for prompt in self.prompts(doc)
        )

    def score(self, doc: dict[str, Any], answers: Sequence[Any]) -> list[Row]:
        """The model's scores, and those of stand-ins that copy the demonstrations' answers."""
        rows = score.process_results(doc, answers)
        return [{**row, **self._copied(doc, row)} for row in rows]

    def _copied(self, doc: Mapping[str, Any], row: Row) -> dict[str, float]:
        number = self._templates.index(str(row["template"]))
        shown = doc[f"{row['demonstrations']}_demonstrations"]
        return copying.scores(
            doc["answers"][number], [self._rows[name]["answers"][number] for name in shown]
        )
