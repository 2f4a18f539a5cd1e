"""From a dataset's files to lm-eval's rows: every sample, as input and answer of a template.

Declared files are read as they are, without checks of their format: their checksums are verified
(:mod:`lm_eval_ext.data`). Only WorldTree's archive has no declared checksum.
"""

import csv
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
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
from lm_eval_ext.harness.provenance import Provenance, describe, describe_many
from lm_eval_ext.reading import Exact


class Options(Exact):
    """The options of a task.

    Attributes:
        dataset: Which.
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
        """By name, those that are asked with."""
        return templates_of(self.dataset, self.template)

    @property
    def spacy(self) -> str:
        """The pipeline, or the default."""
        return self.pipeline or "en_core_web_sm"

    @model_validator(mode="after")
    def _labels_recur(self) -> "Options":
        free = [name for name in self.templates if not answers_are_labels(self.dataset, name)]
        if self.control == "labels" and free:
            raise OptionError(
                f"conceptual_control is labels, but the answers of {self.dataset} under the "
                f"template {free[0]} are free texts, which no other sample has; leave it out, or "
                "use glue, or the template letter where there is one"
            )
        return self


@loader(prefix="conceptual_", options=Options)
def dataset(options: Options) -> LoadingResult:
    """All samples of a dataset, in a fixed shuffled order.

    The task makes documents of those that have enough demonstrations, once lm-eval has set
    their number.

    Raises:
        OptionError: spaCy or the pipeline is not installed.
        DataError: The data are unavailable or invalid.
    """
    samples, provenance = _READERS[options.dataset](options)
    main = main_concepts(samples)
    by_id = sorted(samples, key=lambda sample: sample.id)
    # Shuffled, since files group related samples.
    rows = [
        _row(sample, [template(sample) for template in options.templates.values()], main[sample.id])
        for sample in (by_id[place] for place in shuffled(len(by_id), "documents"))
    ]
    return TaskData(documents=rows, provenance=provenance)


def _row(sample: Sample, forms: Sequence[tuple[str, str]], main: str) -> dict[str, Any]:
    """A sample with its input and answer in the form of each template."""
    return {
        "id": sample.id,
        "input": forms[0][0],
        "answer": forms[0][1],
        "inputs": [text for text, _ in forms],
        "answers": [answer for _, answer in forms],
        "concept": main,
        "concepts": sorted(sample.concepts),
        "copy_key": sample.copy_key,
        "facts": list(sample.facts),
        "options": [option._asdict() for option in sample.options],
        "answer_label": sample.answer_label,
    }


def glue(path: Path) -> list[Sample]:
    """The rows of ``diagnostic-full.tsv`` that have a value under Logic, without repeats.

    The concept is the whole value, even if it joins several phenomena. As in the authors' code,
    a row is a repeat if an earlier one has the same Logic and the same bag of premise words.
    """
    found: dict[tuple[str, ...], Sample] = {}
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
                found.setdefault((logic, *sorted(premise.split())), sample)
    return list(found.values())


def hotpotqa(questions: Path, annotations: Path) -> list[Sample]:
    """HotpotQA's questions that R4C annotates, joined by id; a paragraph's title comes first."""
    explained = r4c(annotations)
    return [
        Sample(
            id=row["_id"],
            question=row["question"],
            answer=row["answer"],
            concepts=explained[row["_id"]],
            context="\n".join(
                f"{title}: {''.join(sentences).strip()}" for title, sentences in row["context"]
            ),
        )
        for row in json.loads(questions.read_text(encoding="utf-8"))
        if row["_id"] in explained
    ]


def r4c(annotations: Path) -> dict[str, frozenset[str]]:
    """By question, all pairs "relation object" of R4C's three annotations.

    Some annotators wrote None for both. That pair counts like any other: without it there are
    fewer samples than in the paper (``docs/fidelity.md``).
    """
    return {
        name: frozenset(
            f"{relation} {thing}"
            for derivation in derivations
            for _, _, (_, relation, thing) in derivation
        )
        for name, derivations in json.loads(annotations.read_text(encoding="utf-8")).items()
    }


Read: TypeAlias = tuple[Sequence[Sample], Provenance | None]
"""All samples of a dataset, and where they are from; None if they are embedded."""


def _glue(_: Options) -> Read:
    file = data.require("glue_diagnostics", "diagnostics")
    return glue(file.path), describe([file])


def _openbookqa(options: Options) -> Read:
    # First, so that a missing pipeline is reported before anything is downloaded.
    pipeline = openbookqa.pipeline(options.spacy)
    rebuilt = not data.available("openbookqa") and data.available("openbookqa_rebuilt")
    folder = data.require_all("openbookqa_rebuilt" if rebuilt else "openbookqa")
    files: Sequence[Path | zipfile.Path] = [file.path for file in folder.files]
    if not rebuilt:
        files = [zipfile.Path(folder.files[0].path, name) for name in openbookqa.IN_ARCHIVE]
    samples = openbookqa.read(files, lambda texts: openbookqa.roots(texts, pipeline))
    return samples, describe_many([folder])


def _hotpotqa(_: Options) -> Read:
    part = not data.available("hotpotqa") and data.available("hotpotqa_part")
    folders = [data.require_all("hotpotqa_part" if part else "hotpotqa", ["fullwiki"])]
    folders.append(data.require_all("r4c"))
    return hotpotqa(*(one.files[0].path for one in folders)), describe_many(folders)


def _worldtree(_: Options) -> Read:
    file = worldtree.archive()
    return worldtree.read(file.path), describe([file])


_READERS: Mapping[str, Callable[[Options], Read]] = {
    "glue": _glue,
    "openbookqa": _openbookqa,
    "hotpotqa": _hotpotqa,
    "worldtree": _worldtree,
    "mini": lambda _: (mini.samples(), None),
}
