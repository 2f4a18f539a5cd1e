"""From a dataset's files to lm-eval's rows: every sample, as input and answer of a template."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from lm_eval_ext import data
from lm_eval_ext.benchmarks.conceptual import glue, hotpotqa, hub, mini, openbookqa, worldtree
from lm_eval_ext.benchmarks.conceptual.prompt import answers_are_labels, templates_of
from lm_eval_ext.benchmarks.conceptual.records import DatasetName, Sample, main_concepts
from lm_eval_ext.data import require, require_all
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness import provenance
from lm_eval_ext.harness.loading import loader

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

Origin: TypeAlias = Literal["files", "hub"]
Control: TypeAlias = Literal["none", "labels"]
Draws: TypeAlias = Literal["paired", "independent"]

DEFAULT_PIPELINE = "en_core_web_sm"


@dataclass(frozen=True)
class _Read:
    samples: Sequence[Sample]
    info: "DatasetInfo"


@loader(prefix="conceptual_")
def dataset(  # noqa: PLR0917 (lm-eval gives them by name)
    conceptual_dataset: DatasetName = "glue",
    conceptual_template: str | None = None,
    conceptual_pipeline: str | None = None,
    conceptual_max_words: int = 0,
    conceptual_from: Origin = "files",
    conceptual_control: Control = "none",
    conceptual_min_overlap: int = 1,
    conceptual_bootstrap: Draws = "paired",
) -> "DatasetDict":
    """Loads all samples of a dataset, as the split ``test``, in a fixed shuffled order.

    The task makes documents of those that have enough demonstrations, once lm-eval has set
    their number.

    Args:
        conceptual_dataset: ``glue``, ``openbookqa``, ``hotpotqa``, ``worldtree`` or ``mini``.
        conceptual_template: A template's name (:mod:`.prompt`), or ``all``; None: the first.
        conceptual_pipeline: For ``openbookqa``, the spaCy pipeline that finds roots: its
            package's name or its folder.
        conceptual_max_words: Maximum number of distinct words of a prompt; 0: no limit.
        conceptual_from: ``files``, or for ``openbookqa`` and ``hotpotqa`` the ``hub``.
        conceptual_control: ``labels`` asks a third time, after demonstrations of other concepts
            with the concept-sharing ones' answers; only where answers are labels.
        conceptual_min_overlap: For ``worldtree``, the least number of facts in common with a
            demonstration; 0 makes clusters (:class:`.fewshot.Rules`).
        conceptual_bootstrap: How the paper's bootstrap draws, ``paired`` or ``independent``.

    Raises:
        OptionError: A value is invalid, or spaCy or the pipeline is not installed.
        DataError: The data are unavailable or invalid.
    """
    from datasets import Dataset, DatasetDict

    _one_of("conceptual_dataset", conceptual_dataset, DatasetName)
    _one_of("conceptual_control", conceptual_control, Control)
    _one_of("conceptual_bootstrap", conceptual_bootstrap, Draws)
    _count("conceptual_max_words", conceptual_max_words)
    _count("conceptual_min_overlap", conceptual_min_overlap)
    if not isinstance(conceptual_pipeline, str | None):
        raise OptionError(
            f"conceptual_pipeline is {conceptual_pipeline!r}; name a spaCy pipeline or its folder"
        )
    origins = {"files": _FROM_FILES, "hub": _FROM_HUB}
    readers = origins[conceptual_from] if conceptual_from in get_args(Origin) else {}
    if conceptual_dataset not in readers:
        raise OptionError(
            f"conceptual_from is {conceptual_from!r}, which is not available for "
            f"{conceptual_dataset}; use files, or hub for {' and '.join(_FROM_HUB)}"
        )
    templates = templates_of(conceptual_dataset, conceptual_template)
    free = [name for name in templates if not answers_are_labels(conceptual_dataset, name)]
    if conceptual_control == "labels" and free:
        raise OptionError(
            f"conceptual_control is labels, but the answers of {conceptual_dataset} under the "
            f"template {free[0]} are free texts, which no other sample has; leave it out, or use "
            "glue, or the template letter where there is one"
        )
    read = readers[conceptual_dataset](conceptual_pipeline or DEFAULT_PIPELINE)
    main = main_concepts(read.samples)
    by_id = sorted(read.samples, key=lambda sample: sample.id)
    if len({sample.id for sample in by_id}) < len(by_id):
        raise DataError(
            f"conceptual_{conceptual_dataset}: two samples have the same id; rename one"
        )
    # Shuffled, since files group related samples, and --limit takes the first ones.
    rows = [
        _row(sample, [template(sample) for template in templates.values()], main[sample.id])
        for sample in (by_id[place] for place in shuffled(len(by_id), "documents"))
    ]
    return DatasetDict({"test": Dataset.from_list(rows, info=read.info)})


def _one_of(key: str, value: object, legal: Any) -> None:
    if value not in get_args(legal):
        raise OptionError(f"{key} is {value!r}; use {', '.join(get_args(legal))}")


def _count(key: str, value: object) -> None:
    # --metadata gives values of any type; bool is a subclass of int.
    if type(value) is not int or value < 0:
        raise OptionError(f"{key} is {value!r}; use 0 or more")


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
        "options": [{"label": option.label, "text": option.text} for option in sample.options],
        "answer_label": sample.answer_label,
    }


def _read_glue(_: str) -> _Read:
    file = require("glue_diagnostics", "diagnostics")
    return _Read(glue.read(file.path), provenance.describe([file]))


def _read_openbookqa(pipeline: str) -> _Read:
    # First, so that a missing pipeline is reported before anything is downloaded.
    found = openbookqa.find(pipeline)
    rebuilt = not data.available("openbookqa") and data.available("openbookqa_rebuilt")
    folder = require_all("openbookqa_rebuilt" if rebuilt else "openbookqa")
    paths = [file.path for file in folder.files]
    rows = openbookqa.read_files(paths) if rebuilt else openbookqa.read_archive(*paths)
    samples = openbookqa.samples(rows, lambda texts: openbookqa.roots(texts, found))
    return _Read(samples, provenance.describe_many([folder]))


def _read_hotpotqa(_: str) -> _Read:
    part = not data.available("hotpotqa") and data.available("hotpotqa_part")
    questions = require_all("hotpotqa_part" if part else "hotpotqa", ["fullwiki"])
    annotations = require_all("r4c")
    samples = hotpotqa.read(questions.files[0].path, annotations.files[0].path)
    return _Read(samples, provenance.describe_many([questions, annotations]))


def _read_worldtree(_: str) -> _Read:
    from datasets import DatasetInfo

    found = worldtree.get()
    info = DatasetInfo(
        citation=worldtree.CITATION,
        homepage="http://cognitiveai.org/explanationbank/",
        license="non-commercial, no redistribution (AI2 Mercury)",
        dataset_name="worldtree",
        config_name="V2.1_Feb2020",
        download_checksums={worldtree.NAME: {"checksum": found.sha256}},
    )
    return _Read(worldtree.read(found.content), info)


def _read_mini(_: str) -> _Read:
    return _Read(mini.samples(), provenance.describe_embedded("conceptual_mini", mini.digest()))


def _hub_openbookqa(pipeline: str) -> _Read:
    found = openbookqa.find(pipeline)
    rows = hub.rows(hub.OPENBOOKQA)
    samples = openbookqa.samples(rows, lambda texts: openbookqa.roots(texts, found))
    return _Read(samples, hub.describe(hub.OPENBOOKQA, rows))


def _hub_hotpotqa(_: str) -> _Read:
    annotations = require("r4c", "dev")
    rows = hub.rows(hub.HOTPOTQA)
    as_in_files = ((place, hub.as_in_files(place, row)) for place, row in rows)
    samples = hotpotqa.join(as_in_files, annotations.path)
    return _Read(samples, hub.describe(hub.HOTPOTQA, rows))


_FROM_HUB: Mapping[str, Callable[[str], _Read]] = {
    "openbookqa": _hub_openbookqa,
    "hotpotqa": _hub_hotpotqa,
}
_FROM_FILES: Mapping[str, Callable[[str], _Read]] = {
    "glue": _read_glue,
    "openbookqa": _read_openbookqa,
    "hotpotqa": _read_hotpotqa,
    "worldtree": _read_worldtree,
    "mini": _read_mini,
}
