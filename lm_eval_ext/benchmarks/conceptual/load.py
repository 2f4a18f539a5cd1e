"""From a dataset's files to lm-eval's rows: every sample, as input and answer of a template.

Declared files are read as they are, without checks of their format: their checksums are verified
(:mod:`lm_eval_ext.data`). Only WorldTree's archive has no declared checksum.
"""

import csv
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from lm_eval_ext import data
from lm_eval_ext.benchmarks.conceptual import mini, openbookqa, worldtree
from lm_eval_ext.benchmarks.conceptual.prompt import Template, answers_are_labels, templates_of
from lm_eval_ext.benchmarks.conceptual.records import DatasetName, Sample, main_concepts
from lm_eval_ext.errors import OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness.loading import LoadingResult, TaskData, loader
from lm_eval_ext.harness.provenance import Provenance, describe, describe_sources
from lm_eval_ext.reading import Exact


class Options(Exact):
    """The options of a task.

    Attributes:
        dataset: The dataset that the samples are from.
        template: A template's name (:mod:`.prompt`), or ``all``; None: the first.
        pipeline: For ``openbookqa``, the spaCy pipeline that finds roots: its package's name or its
            folder.
        max_words: Maximum number of distinct words of a prompt; 0: no limit.
        control: ``labels`` asks a third time, after demonstrations of other concepts with the
            concept-sharing ones' answers; only where answers are labels.
        min_overlap: For ``worldtree``, the least number of facts in common with a demonstration. 0
            makes disjoint clusters of k + 1, as the authors' code does; their members may have
            nothing in common.
        bootstrap: How the paper's bootstrap draws.
    """

    dataset: DatasetName = "glue"
    template: str | None = None
    pipeline: str | None = None
    max_words: int = Field(0, ge=0)
    control: Literal["none", "labels"] = "none"
    min_overlap: int = Field(1, ge=0)
    bootstrap: Literal["paired", "independent"] = "paired"

    @property
    def templates(self) -> Mapping[str, Template]:
        """The templates that prompts are written with, by name."""
        return templates_of(self.dataset, self.template)

    @property
    def spacy(self) -> str:
        """The name or folder of the pipeline that the option or the default says."""
        return self.pipeline or "en_core_web_sm"

    @model_validator(mode="after")
    def _labels_recur(self) -> "Options":
        for template in self.templates:
            if self.control == "labels" and not answers_are_labels(self.dataset, template):
                raise OptionError(
                    f"conceptual_control is labels, but the answers of {self.dataset} under the "
                    f"template {template} are free texts, which no other sample has; leave it out, "
                    "or use glue, or the template letter where there is one"
                )
        return self


@loader(prefix="conceptual_", options=Options)
def dataset(options: Options) -> LoadingResult:
    """Load all samples of a dataset, in a fixed shuffled order.

    The task makes documents of those that have enough demonstrations, once lm-eval has set
    their number.

    Raises:
        OptionError: spaCy or the pipeline is not installed.
        DataError: The data are unavailable or invalid.
    """
    samples, provenance = _READERS[options.dataset](options)
    templates = list(options.templates.values())
    concepts = main_concepts(samples)
    by_id = sorted(samples, key=attrgetter("id"))
    rows = []
    # Shuffled, since files group related samples.
    for position in shuffled(len(by_id), "documents"):
        sample = by_id[position]
        rows.append(_row(sample, templates, concepts[sample.id]))
    return TaskData(documents=rows, provenance=provenance)


def _row(sample: Sample, templates: Sequence[Template], main_concept: str) -> dict[str, Any]:
    """Return a sample with its input and answer in the form of each template."""
    inputs: list[str] = []
    answers: list[str] = []
    for template in templates:
        text, answer = template(sample)
        inputs.append(text)
        answers.append(answer)
    return {
        "id": sample.id,
        "input": inputs[0],
        "answer": answers[0],
        "inputs": inputs,
        "answers": answers,
        "concept": main_concept,
        "concepts": sorted(sample.concepts),
        "copy_key": sample.copy_key,
        "facts": list(sample.facts),
        "options": [option._asdict() for option in sample.options],
        "answer_label": sample.answer_label,
    }


def glue(path: Path) -> list[Sample]:
    """Return the rows of ``diagnostic-full.tsv`` that have a value under Logic, without repeats.

    The concept is the whole value, even if it joins several phenomena. As in the authors' code,
    a row is a repeat if an earlier one has the same Logic and the same bag of premise words.
    """
    samples: dict[tuple[str, ...], Sample] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            logic, premise = row["Logic"], row["Premise"]
            if logic:
                sample = Sample(
                    id=f"glue-{rows.line_num:04d}",
                    question=row["Hypothesis"],
                    answer=row["Label"],
                    concepts=frozenset([logic]),
                    context=premise,
                    premise=True,
                )
                samples.setdefault((logic, *sorted(premise.split())), sample)
    return list(samples.values())


def hotpotqa(questions: Path, annotations: Path) -> list[Sample]:
    """Return HotpotQA's questions that R4C annotates; a paragraph's title comes first."""
    concepts = r4c(annotations)
    samples = []
    for row in json.loads(questions.read_text(encoding="utf-8")):
        if row["_id"] not in concepts:
            continue
        paragraphs = []
        for title, sentences in row["context"]:
            text = "".join(sentences).strip()
            paragraphs.append(f"{title}: {text}")
        sample = Sample(
            id=row["_id"],
            question=row["question"],
            answer=row["answer"],
            concepts=concepts[row["_id"]],
            context="\n".join(paragraphs),
        )
        samples.append(sample)
    return samples


def r4c(annotations: Path) -> dict[str, frozenset[str]]:
    """Return, by question, all pairs "relation object" of R4C's three annotations.

    Some annotators wrote None for both. That pair counts like any other: without it there are
    fewer samples than in the paper (``docs/fidelity.md``).
    """
    concepts: dict[str, frozenset[str]] = {}
    content = json.loads(annotations.read_text(encoding="utf-8"))
    for question, derivations in content.items():
        pairs = set()
        for derivation in derivations:
            for _, _, (_, relation, object_) in derivation:
                pairs.add(f"{relation} {object_}")
        concepts[question] = frozenset(pairs)
    return concepts


Loaded: TypeAlias = tuple[Sequence[Sample], Provenance | None]
"""All samples of a dataset, and where they are from; None if they are embedded."""


def _glue(_: Options) -> Loaded:
    file = data.require("glue_diagnostics", "diagnostics")
    return glue(file.path), describe([file])


def _openbookqa(options: Options) -> Loaded:
    # First, so that a missing pipeline is reported before anything is downloaded.
    pipeline = openbookqa.pipeline(options.spacy)
    files: Sequence[Path | zipfile.Path]
    if _is_substitute("openbookqa", "openbookqa_rebuilt"):
        folder = data.require_all("openbookqa_rebuilt")
        files = [file.path for file in folder.files]
    else:
        folder = data.require_all("openbookqa")
        archive = folder.files[0].path
        files = [zipfile.Path(archive, name) for name in openbookqa.IN_ARCHIVE]
    samples = openbookqa.read(files, partial(openbookqa.roots, nlp=pipeline))
    return samples, describe_sources([folder])


def _hotpotqa(_: Options) -> Loaded:
    source = "hotpotqa"
    if _is_substitute(source, "hotpotqa_part"):
        source = "hotpotqa_part"
    questions = data.require_all(source, ["fullwiki"])
    annotations = data.require_all("r4c")
    samples = hotpotqa(questions.files[0].path, annotations.files[0].path)
    return samples, describe_sources([questions, annotations])


def _is_substitute(source: str, substitute: str) -> bool:
    """Return whether a substitute is at hand, and the published source is not."""
    return not data.available(source) and data.available(substitute)


def _worldtree(_: Options) -> Loaded:
    file = worldtree.archive()
    return worldtree.read(file.path), describe([file])


def _mini(_: Options) -> Loaded:
    return mini.samples(), None


_READERS: Mapping[str, Callable[[Options], Loaded]] = {
    "glue": _glue,
    "openbookqa": _openbookqa,
    "hotpotqa": _hotpotqa,
    "worldtree": _worldtree,
    "mini": _mini,
}
