"""Results files as lm-eval writes them: their scores, and which model they are of."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lm_eval_ext.cards import Card, card_of, cards
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.names import (
    BENCHMARK,
    CARD,
    HIGH,
    INTERVALS,
    LOW,
    NONE,
    NOT_SCORABLE,
    STDERR,
)  # fmt: skip
from lm_eval_ext.log import get_logger
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.stats.statistics import Estimate
from lm_eval_ext.text import one_line

_log = get_logger(__name__)


TOKENS = "tokens"
"""The key of a results file with the tokens of each task, if they were counted."""

KEYS = "run"
"""The key with the digest of each name that ``run`` was asked for."""


WEIGHTS = "weights"
"""The key with a digest of the model's weights, if ``run`` could see them."""


_FIGURE = TypeAdapter(Estimate)


def finite(value: Any) -> float | None:
    """A logged score as a number; None if it is no number, infinite or NaN."""
    return float(value) if isinstance(value, (int, float)) and isfinite(value) else None


class Tokens(NamedTuple):
    """Of a task's requests and answers, by the model's tokenizer."""

    input: int
    output: int


class _Content(BaseModel):
    """The keys of a results file that are read, with lm-eval's types; others are let through."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    results: dict[str, dict[str, Any]]
    configs: dict[str, dict[str, Any]] = {}
    versions: dict[str, Any] = {}
    config: dict[str, Any] = {}
    n_samples: dict[str, dict[str, Any]] = Field({}, alias="n-samples")
    n_shot: dict[str, Any] = Field({}, alias="n-shot")


@dataclass(frozen=True, eq=False)
class ResultsFile:
    """One ``results_*.json``: its place and all its content."""

    path: Path
    content: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model as lm-eval names it, fit for a terminal."""
        return one_line(str(self.content.get("model_name") or self.content["config"].get("model")))

    @cached_property
    def runs(self) -> "list[Run]":
        """The tasks that have scores, without groups."""
        tasks = self.content["results"].keys()
        return [Run(self, task) for task in tasks if task in self.content["configs"]]


@dataclass(frozen=True, eq=False)
class Run:
    """What a results file has of one task."""

    file: ResultsFile
    task: str

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """Scores by metric; where a task has several filters, ``metric,filter``."""
        values = {
            name: value
            for name, value in self.file.content["results"][self.task].items()
            if "," in name
            and not name.partition(",")[0].endswith((STDERR, LOW, HIGH))
            and (isinstance(value, (int, float)) or value == NONE)
        }
        filters = {name.partition(",")[2] for name in values}
        return {
            one_line(name.partition(",")[0] if len(filters) == 1 else name): self._score(name)
            for name in values
        }

    def _score(self, name: str) -> Estimate:
        """A metric's figure, with the interval that the task noted beside it.

        Tasks that aren't ours have noted none, nor have results of ours of older versions, whose
        intervals were too narrow.
        """
        entries = self.file.content["results"][self.task]
        value, stderr = map(
            finite, (entries[name], entries.get(name.replace(",", f"{STDERR},", 1)))
        )
        noted = self._metadata.get(INTERVALS, {}).get(name, {})
        return _FIGURE.validate_python({"value": value, "stderr": stderr, **noted})

    @property
    def config(self) -> Mapping[str, Any]:
        """Of the task, as lm-eval wrote it."""
        config: Mapping[str, Any] = self.file.content["configs"][self.task]
        return config

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return self.config.get("metadata") or {}

    @cached_property
    def card(self) -> Card | None:
        """The card that the metrics are from; also of users' own and generated tasks.

        Raises:
            DataError: The file has a card of its own, which is malformed.
        """
        own = self._metadata.get(CARD)
        if own:
            return _own_card(json.dumps(own))
        return card_of(self.task) or cards().get(str(self._metadata.get(BENCHMARK)))

    @property
    def is_current(self) -> bool:
        """Whether the metrics are those of the card, and not of an older version."""
        return BENCHMARK in self._metadata

    def title(self, metric: str) -> str:
        """A metric in words, where the card has any."""
        return self.card.title_of(metric) if self.card else metric

    @cached_property
    def headline(self) -> str:
        """The metric that stands for the task: the card's, or the first; "" if there is none."""
        own = self.card.headline_of(self.scores) if self.card and self.is_current else ""
        return own or next(iter(self.scores), "")

    @property
    def is_unscored(self) -> bool:
        """Whether the responses were not scored (``--predict_only``)."""
        return bool(self.scores) and all(name.startswith("bypass") for name in self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether all documents were asked: without ``--limit``, or with one that took all."""
        settings = self.file.content["config"]
        scored, total = self.documents
        return scored == total or not (settings.get("limit") or settings.get("samples"))

    @property
    def documents(self) -> tuple[int, int]:
        """The number of documents that were scored, and that the task has."""
        counts = self.file.content["n-samples"].get(self.task, {})
        return int(counts.get("effective", 0)), int(counts.get("original", 0))

    @property
    def tokens(self) -> Tokens | None:
        """What the task takes, if that was counted."""
        try:
            found = self.file.content[TOKENS][self.task]
            return Tokens(int(found["input"]), int(found["output"]))
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def not_scorable(self) -> dict[str, list[str]]:
        """By cause, the ids of examples that could not be scored and are in no metric."""
        named = self._metadata.get(NOT_SCORABLE) or {}
        return {
            one_line(str(cause)): [one_line(str(i)) for i in ids] for cause, ids in named.items()
        }

    @cached_property
    def signature(self) -> str:
        """What was asked and how it was scored, in one line."""
        return signature.result_signature(self.file.content, self.task)


@cache
def _own_card(content: str) -> Card:
    try:
        return Card.model_validate_json(content)
    except ValidationError as error:
        raise DataError(f"the card in a results file: {first_problem(error)}") from None


_DATED = re.compile(r".+_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(\.\d+)?\.json")
"""The name of a results file of ``--output_path FOLDER/NAME.json``: lm-eval adds the time."""

_RELATIVE_MODEL = re.compile(r"\.{1,2}__.+")
"""The folder that lm-eval makes for a model whose path starts with ``./`` or ``../``."""


def _result_files(path: Path) -> list[Path]:
    """Return the results files at a path that was given as ``--output_path``, the oldest first.

    Raises:
        OptionError: There is no such folder or file.
    """
    if path.is_file():
        return [path]
    if path.is_dir():
        folder, stem = path, ""
    elif path.suffix == ".json" and path.parent.is_dir():
        folder, stem = path.parent, path.stem
    else:
        raise OptionError(f"no such folder or file: {path}")
    files = []
    for file in folder.rglob("*.json"):
        folders = file.relative_to(folder).parts[:-1]
        if any(name.startswith(".") and not _RELATIVE_MODEL.fullmatch(name) for name in folders):
            continue
        is_named = _DATED.fullmatch(file.name) is not None
        if stem:
            is_result = is_named and not folders and file.name.startswith(f"{stem}_")
        else:
            is_result = is_named or file.name.startswith("results_")
        if is_result and not file.name.startswith("."):
            files.append(file)
    # Names end with the time at which the file was written.
    return sorted(files, key=lambda file: (file.name.rpartition("_")[2], str(file)))


def find(path: Path, *, unlearned: bool = False) -> list[ResultsFile]:
    """Reads a results file, or all in a folder, the oldest first.

    Hidden folders are skipped, since results that are still being written are there, but not those
    that lm-eval names after a model with a relative path. A file in a folder that cannot be read is
    left out, with a warning.

    Args:
        path: A file or a folder, or what was given as ``--output_path FOLDER/NAME.json``.
        unlearned: Also of models that did not learn what they were trained on, as their model
            files say. What they answer shows nothing about what their task asks.

    Raises:
        OptionError: If there is none.
        DataError: If no file can be used.
    """
    found, problems = [], []
    for file in _result_files(path):
        try:
            one = _read(file)
        except DataError as error:
            problems.append(str(error))
            continue
        why = model_file(one).get(UNLEARNED)
        if why is None or unlearned:
            found.append(one)
        else:
            problems.append(f"{label(one)} did not learn: {one_line(str(why), limit=200)}")
    if not found and problems:
        raise DataError(problems[0])
    if not found:
        raise OptionError(
            f"no results_*.json under {path}; lm_eval writes them with --output_path {path}"
        )
    for problem in dict.fromkeys(problems):
        _log.warning("left out: %s", problem)
    return found


def _read(file: Path) -> ResultsFile:
    try:
        content = _Content.model_validate_json(file.read_bytes()).model_dump(by_alias=True)
        results = ResultsFile(file, content)
        for run in results.runs:
            _ = run.signature, run.documents, run.scores, run.card, run.not_scorable
    except (
        OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        why = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise DataError(
            f"{file}: not a results file of lm-eval ({one_line(why, limit=200)})"
        ) from None
    return results


WHERE_NOT_WHAT = frozenset(
    ("base_url", "num_concurrent", "max_retries", "timeout", "device",
     "device_map_option", "parallelize", "max_memory_per_gpu", "max_cpu_memory", "offload_folder",
     "batch_size", "max_batch_size", "gpu_memory_utilization", "tensor_parallel_size",
     "data_parallel_size", "trust_remote_code")
)  # fmt: skip
"""Model arguments that say where and how fast a model runs, not which model it is."""


def identity(settings: Mapping[str, Any]) -> str:
    """Which model it is, as JSON: its type and the arguments that say which.

    ``settings`` are lm-eval's options, or the ``config`` of a results file.
    """
    arguments = arguments_of(settings)
    kept = {key: value for key, value in arguments.items() if key not in WHERE_NOT_WHAT}
    return json.dumps([settings.get("model"), kept], sort_keys=True, default=str)


def arguments_of(settings: Mapping[str, Any], key: str = "model_args") -> dict[str, Any]:
    """An option that may be given as a mapping or as ``key=value,...`` text, as a mapping."""
    found = settings.get(key) or {}
    if not isinstance(found, str):
        return dict(found)
    from lm_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(found))


def metadata_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What lm-eval passes to tasks as metadata: model arguments and ``--metadata``."""
    return arguments_of(settings) | arguments_of(settings, "metadata")


MODEL_FILE = "model.yaml"
"""Beside results of ``lm-eval-ext run``: the YAML file of the model that they are of."""

UNLEARNED = "did_not_learn"
"""A key of the model file: why training did not reach its gates (docs/training.md)."""

_LEVELS = 2
"""It lies beside a results file, or above the folder that lm-eval makes for each model."""


def model_file_path(results: ResultsFile) -> Path | None:
    """The model file of these results, or None if there is none."""
    beside = (folder / MODEL_FILE for folder in results.path.resolve().parents[:_LEVELS])
    return next(filter(Path.is_file, beside), None)


def model_file(results: ResultsFile) -> dict[str, Any]:
    """The content of the model file; {} if there is none, or it cannot be read."""
    file = model_file_path(results)
    try:
        return read_yaml(file, TypeAdapter(dict[str, Any])) if file else {}
    except DataError:
        return {}


def label(results: ResultsFile) -> str:
    """Return the model's name, fit for one line.

    It is the one in the model's file; or for results of ``run`` the name of their folder; or
    lm-eval's name, of a path its last part.
    """
    name = model_file(results).get("display_name")
    if not name and KEYS in results.content:
        name = results.path.resolve().parent.name
    if not name:
        name = results.model
        if name.startswith(("/", "./", "../", "~")):
            name = Path(name).name or name
    return one_line(str(name))
