"""The task class of the conceptual benchmark: each sample under both selections."""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.conceptual import fewshot, openbookqa, score
from lm_eval_ext.benchmarks.conceptual.fewshot import SAME_LABELS, SELECTIONS
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.prompt import ALL, framed, with_facts
from lm_eval_ext.benchmarks.conceptual.reader import reader_for
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.fewshot import FewshotTask, Prompt, Turn
from lm_eval_ext.harness.lm_eval_types import Doc
from lm_eval_ext.log import get_logger
from lm_eval_ext.stats.table import Row

_log = get_logger(__name__)

OF_DOCUMENT = ("id", "input", "answer", "concept", "concepts", "answers", "options", "answer_label")
"""Columns of a sample that its document has, too."""

TOO_LONG = "too_long"
"""Why a sample is left out under all selections."""


class ConceptualTask(FewshotTask):
    """Asks each document with random and with concept-sharing demonstrations.

    With a control it asks a third time, and with several templates as often for each.
    """

    options: Options

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Finds the templates and the selections, and has the bootstrap draw as the option says."""
        self._control = self.options.control == "labels"
        self._selections = (*SELECTIONS, SAME_LABELS) if self._control else SELECTIONS
        self._rows = {row["id"]: row for row in self.dataset["test"].to_list()}
        self._templates = list(self.options.templates)
        seeds = {"seeds": score.SEEDS if self.options.bootstrap == "independent" else {}}
        measures = {name: one.model_copy(update=seeds) for name, one in self.card.measures.items()}
        self.card = self.card.model_copy(update={"measures": measures})

    def metrics(self) -> list[str]:
        """Those of the control only where it is asked."""
        return [name for name in self.card.metrics if self._control or name not in score.OF_CONTROL]

    def sign(self, parts: dict[str, str]) -> None:
        """Adds what the options leave open.

        That is the default's template by name, a digest of all inputs and answers, and the version
        of the spaCy pipeline that found the concepts.
        """
        names = "+".join(self._templates)
        parts["template"] = f"best of {names}" if self.options.template == ALL else names
        shown = sorted([row["id"], row["inputs"], row["answers"]] for row in self._rows.values())
        parts["inputs"] = signature.digest(shown)
        if self.options.dataset == "openbookqa":
            parts["pipeline"] = openbookqa.label(openbookqa.pipeline(self.options.spacy))

    def dump_config(self) -> dict[str, Any]:
        """What lm-eval writes into the results file; with a digest of who is shown what."""
        dumped = super().dump_config()
        shown = sorted(
            [doc["id"], *(doc[f"{name}_demonstrations"] for name in self._selections)]
            for doc in self.chosen.documents.to_list()
        )
        dumped["metadata"][signature.METADATA_KEY]["demonstrations"] = signature.digest(shown)
        return dumped

    def choose(
        self, samples: Dataset, k: int, seed: int
    ) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
        """Makes documents of the samples that have k demonstrations under both selections."""
        rows = samples.to_list()
        chosen, excluded = fewshot.choose(rows, self.options, k, seed)
        made: list[dict[str, Any]] = []
        long: list[str] = []
        for row in rows:
            if row["id"] in chosen:
                doc = {key: row[key] for key in OF_DOCUMENT} | {"templates": self._templates}
                doc |= fewshot.columns(chosen[row["id"]], self._selections)
                if 0 < self.options.max_words < self._words(doc):
                    long.append(row["id"])
                else:
                    made.append(doc)
        excluded[TOO_LONG] = long
        if without := sum(not doc.get(f"{SAME_LABELS}_demonstrations", True) for doc in made):
            _log.warning(
                "%s: %d samples have no demonstrations of other concepts with the same labels, and "
                "are in no metric of that control",
                self.config.task,
                without,
            )
        return made, excluded

    def _words(self, doc: dict[str, Any]) -> int:
        """Distinct words of the longest of all prompts, as the paper's limit counts."""
        found = []
        for prompt in self.prompts(doc):
            turns = [f"{turn.input} {turn.answer}" for turn in prompt.demonstrations]
            found.append(len(set(" ".join([*turns, prompt.input]).split())))
        return max(found)

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

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader | None:
        """Return the reader of one question's answers after a template.

        The paper compares whole responses, and so does a run without a template.
        """
        if not self.has_chat_template:
            return None
        options = tuple(Option(**option) for option in doc["options"])
        selections = len(score.selections_of(doc))
        return reader_for(options, self._templates[index // selections])

    def score(self, doc: dict[str, Any], answers: Sequence[Any]) -> list[Row]:
        """The model's scores, and those of stand-ins that copy the demonstrations' answers."""
        return [{**row, **self._copied(doc, row)} for row in score.process_results(doc, answers)]

    def _copied(self, doc: Mapping[str, Any], row: Row) -> dict[str, float]:
        number = self._templates.index(str(row["template"]))
        shown = doc[f"{row['demonstrations']}_demonstrations"]
        answers = [self._rows[name]["answers"][number] for name in shown]
        return score.copied(doc["answers"][number], answers)
