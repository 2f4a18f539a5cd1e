"""The task class of the conceptual benchmark: each sample under both selections."""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from lm_eval_ext.answers.reader import AnswerReader
from lm_eval_ext.benchmarks.conceptual import demonstrations, openbookqa, score
from lm_eval_ext.benchmarks.conceptual.answers import reader_for
from lm_eval_ext.benchmarks.conceptual.demonstrations import SAME_LABELS, SELECTIONS
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.prompt import ALL, framed, with_facts
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.exclusions import report_exclusion
from lm_eval_ext.harness.fewshot import FewshotTask, Prompt, Turn
from lm_eval_ext.harness.lm_eval_types import Doc
from lm_eval_ext.stats.table import Row

DOCUMENT_COLUMNS = (
    "id",
    "input",
    "answer",
    "concept",
    "concepts",
    "answers",
    "options",
    "answer_label",
)
"""Columns of a sample that its document has, too."""

TOO_LONG = "too_long"
"""Why a sample is left out under all selections."""


class ConceptualTask(FewshotTask):
    """A task that shows each document random and concept-sharing demonstrations.

    With a control, each document has a third prompt; with several templates, so many for each.
    """

    options: Options

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Find the templates and the selections; have the bootstrap draw as the option says."""
        self._has_control = self.options.control == "labels"
        self._selections: tuple[str, ...] = SELECTIONS
        if self._has_control:
            self._selections = (*SELECTIONS, SAME_LABELS)
        self._rows = {row["id"]: row for row in self.dataset["test"].to_list()}
        self._templates = list(self.options.templates)
        seeds = score.SEEDS if self.options.bootstrap == "independent" else {}
        measures = {}
        for name, measure in self.card.measures.items():
            measures[name] = measure.model_copy(update={"seeds": seeds})
        self.card = self.card.model_copy(update={"measures": measures})

    def metrics(self) -> list[str]:
        """Return the card's metrics; those of the control only where it is part of the task."""
        if self._has_control:
            return list(self.card.metrics)
        return [name for name in self.card.metrics if name not in score.CONTROL_METRICS]

    def sign(self, parts: dict[str, str]) -> None:
        """Add what the options leave open to the signature.

        These are the template's name where the default is used, a digest of all inputs and answers,
        and the version of the spaCy pipeline that found the concepts.
        """
        parts["template"] = "+".join(self._templates)
        if self.options.template == ALL:
            parts["template"] = f"best of {parts['template']}"
        texts = sorted([row["id"], row["inputs"], row["answers"]] for row in self._rows.values())
        parts["inputs"] = signature.digest(texts)
        if self.options.dataset == "openbookqa":
            parts["pipeline"] = openbookqa.label(openbookqa.pipeline(self.options.spacy))

    def dump_config(self) -> dict[str, Any]:
        """Return what lm-eval writes into the results file, with a digest of the demonstrations."""
        dumped = super().dump_config()
        columns = ["id", *(f"{name}_demonstrations" for name in self._selections)]
        demonstration_ids = []
        for doc in self.chosen.documents.to_list():
            demonstration_ids.append([doc[column] for column in columns])
        digest = signature.digest(sorted(demonstration_ids))
        dumped["metadata"][signature.METADATA_KEY]["demonstrations"] = digest
        return dumped

    def choose(self, samples: Dataset, k: int, seed: int) -> tuple[list[Doc], dict[str, list[str]]]:
        """Make documents of the samples that have k demonstrations under both selections."""
        rows = samples.to_list()
        chosen, excluded = demonstrations.choose(rows, self.options, k, seed)
        docs: list[Doc] = []
        too_long: list[str] = []
        for row in rows:
            if row["id"] not in chosen:
                continue
            doc = {column: row[column] for column in DOCUMENT_COLUMNS}
            doc["templates"] = self._templates
            doc |= demonstrations.columns(chosen[row["id"]], self._selections)
            if 0 < self.options.max_words < self._count_words(doc):
                too_long.append(row["id"])
            else:
                docs.append(doc)
        excluded[TOO_LONG] = too_long
        if self._has_control:
            self._warn_of_missing_controls(docs)
        return docs, excluded

    def _warn_of_missing_controls(self, docs: Sequence[Doc]) -> None:
        without_control = [doc for doc in docs if not doc[f"{SAME_LABELS}_demonstrations"]]
        if without_control:
            report_exclusion(
                f"{self.config.task}: {len(without_control)} samples have no demonstrations of "
                "other concepts with the same labels, and are in no metric of that control"
            )

    def _count_words(self, doc: Doc) -> int:
        """Return the distinct words of the longest of all prompts, as the paper's limit counts."""
        counts = []
        for prompt in self.prompts(doc):
            words = set(prompt.input.split())
            for turn in prompt.demonstrations:
                words.update(turn.input.split(), turn.answer.split())
            counts.append(len(words))
        return max(counts)

    def prompts(self, doc: Doc) -> list[Prompt]:
        """Return the sample by each template, after the demonstrations of each selection."""
        prompts = []
        for template in range(len(self._templates)):
            for selection in score.selections_of(doc):
                prompts.append(self._prompt(doc, doc[f"{selection}_demonstrations"], template))
        return prompts

    def _prompt(self, doc: Doc, demonstration_ids: Sequence[str], template: int) -> Prompt:
        sample = self._rows[doc["id"]]
        facts: list[str] = []
        turns: list[Turn] = []
        for name in demonstration_ids:
            row = self._rows[name]
            facts.extend(row["facts"])
            turns.append(Turn(framed(row["inputs"][template]), row["answers"][template]))
        facts.extend(sample["facts"])
        distinct_facts = dict.fromkeys(facts)
        turns[0] = Turn(with_facts(distinct_facts, turns[0].input), turns[0].answer)
        return Prompt(tuple(turns), framed(sample["inputs"][template]))

    def answer_reader(self, doc: Doc, index: int) -> AnswerReader | None:
        """Return the reader of one question's answers after a template.

        The paper compares whole responses, and so does a run without a template.
        """
        if not self.has_chat_template:
            return None
        options = tuple(Option(**option) for option in doc["options"])
        selections = len(score.selections_of(doc))
        return reader_for(options, self._templates[index // selections])

    def score(self, doc: Doc, answers: Sequence[Any]) -> list[Row]:
        """Return the model's scores, with those of stand-ins that copy demonstrations' answers."""
        return [{**row, **self._copied(doc, row)} for row in score.process_results(doc, answers)]

    def _copied(self, doc: Doc, row: Row) -> dict[str, float]:
        template = self._templates.index(str(row["template"]))
        demonstration_ids = doc[f"{row['demonstrations']}_demonstrations"]
        answers = [self._rows[name]["answers"][template] for name in demonstration_ids]
        return score.copied(doc["answers"][template], answers)
