"""From a dataset's files to lm-eval's rows: every sample, as input and answer of a template."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, model_validator

from lm_eval_ext import data
from lm_eval_ext.benchmarks.conceptual import glue, hotpotqa, mini, openbookqa, worldtree
from lm_eval_ext.benchmarks.conceptual.prompt import Template, answers_are_labels, templates_of
from lm_eval_ext.benchmarks.conceptual.records import DatasetName, Sample, main_concepts
from lm_eval_ext.data import require_all
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.harness.provenance import Loaded, describe, describe_many

if TYPE_CHECKING:
    from datasets import DatasetInfo

DEFAULT_PIPELINE = "en_core_web_sm"

Read: TypeAlias = "tuple[Sequence[Sample], DatasetInfo | None]"
"""All samples of a dataset, and where they are from; None if they are embedded."""


class Options(BaseModel, extra="forbid", frozen=True, strict=True):
    """The options of a task.

    Attributes:
        dataset: Which.
        template: A template's name (:mod:`.prompt`), or ``all``; None: the first.
        pipeline: For ``openbookqa``, the spaCy pipeline that finds roots: its package's name or its
            folder.
        max_words: Maximum number of distinct words of a prompt; 0: no limit.
        control: ``labels`` asks a third time, after demonstrations of other concepts with the
            concept-sharing ones' answers; only where answers are labels.
        min_overlap: For ``worldtree``, the least number of facts in common with a demonstration; 0
            makes clusters (:class:`.fewshot.Rules`).
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
def dataset(options: Options) -> "Loaded | list[dict[str, Any]]":
    """All samples of a dataset, in a fixed shuffled order.

    The task makes documents of those that have enough demonstrations, once lm-eval has set
    their number.

    Raises:
        OptionError: spaCy or the pipeline is not installed.
        DataError: The data are unavailable or invalid.
    """
    samples, info = _READERS[options.dataset](options.pipeline or DEFAULT_PIPELINE)
    main = main_concepts(samples)
    by_id = sorted(samples, key=lambda sample: sample.id)
    if len({sample.id for sample in by_id}) < len(by_id):
        raise DataError(f"conceptual_{options.dataset}: two samples have the same id; rename one")
    # Shuffled, since files group related samples, and --limit takes the first ones.
    rows = [
        _row(sample, [template(sample) for template in options.templates.values()], main[sample.id])
        for sample in (by_id[place] for place in shuffled(len(by_id), "documents"))
    ]
    return Loaded(rows, info) if info else rows


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


def _glue(_: str) -> Read:
    file = data.require("glue_diagnostics", "diagnostics")
    return glue.read(file.path), describe([file])


def _openbookqa(pipeline: str) -> Read:
    # First, so that a missing pipeline is reported before anything is downloaded.
    found = openbookqa.find(pipeline)
    rebuilt = not data.available("openbookqa") and data.available("openbookqa_rebuilt")
    folder = require_all("openbookqa_rebuilt" if rebuilt else "openbookqa")
    paths = [file.path for file in folder.files]
    rows = openbookqa.read_files(paths) if rebuilt else openbookqa.read_archive(*paths)
    samples = openbookqa.samples(rows, lambda texts: openbookqa.roots(texts, found))
    return samples, describe_many([folder])


def _hotpotqa(_: str) -> Read:
    part = not data.available("hotpotqa") and data.available("hotpotqa_part")
    folders = [require_all("hotpotqa_part" if part else "hotpotqa", ["fullwiki"])]
    folders.append(require_all("r4c"))
    return hotpotqa.read(*(one.files[0].path for one in folders)), describe_many(folders)


def _worldtree(_: str) -> Read:
    found = worldtree.get()
    return worldtree.read(found.content), worldtree.describe(found)


_READERS: Mapping[str, Callable[[str], Read]] = {
    "glue": _glue,
    "openbookqa": _openbookqa,
    "hotpotqa": _hotpotqa,
    "worldtree": _worldtree,
    "mini": lambda _: (mini.samples(), None),
}
