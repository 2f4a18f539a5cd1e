"""Results files as lm-eval writes them: their scores, and the model that they belong to."""

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lm_eval_ext.cards import Card, card_of, cards
from lm_eval_ext.errors import DataError, OptionError, first_problem
from lm_eval_ext.harness import signature
from lm_eval_ext.harness.lm_eval_types import Keys
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
"""The key of a results file with the number of tokens of each task, if they were counted."""

KEYS = "run"
"""The key with the digest of each name that ``run`` was asked for."""

WEIGHTS = "weights"
"""The key with a digest of the model's weights, if ``run`` could see them."""

_NUMBER_ENDINGS = (STDERR, LOW, HIGH)
"""Endings of the metrics that belong to another metric. lm-eval writes a standard error of every
metric, so also of the standard errors that we compute: ``NAME_stderr_stderr``, always N/A."""

_ESTIMATE = TypeAdapter(Estimate)


def finite(value: object) -> float | None:
    """Return a logged score as a number; None if it is no number, infinite or NaN."""
    if isinstance(value, (int, float)) and isfinite(value):
        return float(value)
    return None


class Tokens(NamedTuple):
    """The number of tokens of a task's requests and answers, by the model's tokenizer."""

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
    """One ``results_*.json``: its path and all its content."""

    path: Path
    content: Keys

    @property
    def settings(self) -> Keys:
        """lm-eval's options of the run, such as ``model_args`` and ``limit``."""
        settings: Keys = self.content["config"]
        return settings

    @property
    def model(self) -> str:
        """The model as lm-eval names it, fit for a terminal."""
        return one_line(str(self.content.get("model_name") or self.settings.get("model")))

    @cached_property
    def runs(self) -> "list[Run]":
        """The tasks that have scores, without groups."""
        configs = self.content["configs"]
        return [Run(self, task) for task in self.content["results"] if task in configs]


@dataclass(frozen=True, eq=False)
class Run:
    """The results of one task in a results file."""

    file: ResultsFile
    task: str

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """Scores by metric; where a task has several filters, by ``metric,filter``."""
        keys = [key for key, value in self._entries.items() if _is_score(key, value)]
        filters = {key.partition(",")[2] for key in keys}
        scores = {}
        for key in keys:
            name = key.partition(",")[0] if len(filters) == 1 else key
            scores[one_line(name)] = self._estimate(key)
        return scores

    @property
    def _entries(self) -> Keys:
        """The task's metrics by ``metric,filter``, as lm-eval wrote them."""
        entries: Keys = self.file.content["results"][self.task]
        return entries

    def _estimate(self, key: str) -> Estimate:
        """Return a metric's value, with the interval that the task noted beside it.

        There is none for tasks that aren't ours, nor for our results of older versions, whose
        intervals were too narrow.
        """
        stderr_key = key.replace(",", f"{STDERR},", 1)
        fields = {
            "value": finite(self._entries[key]),
            "stderr": finite(self._entries.get(stderr_key)),
        }
        interval = self._metadata.get(INTERVALS, {}).get(key, {})
        return _ESTIMATE.validate_python({**fields, **interval})

    @property
    def config(self) -> Keys:
        """The task's configuration, as lm-eval wrote it."""
        config: Keys = self.file.content["configs"][self.task]
        return config

    @property
    def _metadata(self) -> Keys:
        return self.config.get("metadata") or {}

    @cached_property
    def card(self) -> Card | None:
        """The card that the metrics are from; also of users' own and generated tasks.

        Raises:
            DataError: The file has a card of its own, which is malformed.
        """
        card_in_file = self._metadata.get(CARD)
        if card_in_file:
            return _parse_card(json.dumps(card_in_file))
        return card_of(self.task) or cards().get(str(self._metadata.get(BENCHMARK)))

    @property
    def is_current(self) -> bool:
        """Whether the metrics are those of the card, and not of an older version."""
        return BENCHMARK in self._metadata

    def title(self, metric: str) -> str:
        """Return a metric in words, where the card has any."""
        return self.card.title_of(metric) if self.card else metric

    @cached_property
    def headline(self) -> str:
        """The metric that stands for the task: the card's, or the first; "" if there is none."""
        headline = ""
        if self.card and self.is_current:
            headline = self.card.headline_of(self.scores)
        return headline or next(iter(self.scores), "")

    @property
    def is_unscored(self) -> bool:
        """Whether the responses were not scored (``--predict_only``)."""
        return bool(self.scores) and all(name.startswith("bypass") for name in self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether all documents were asked: without ``--limit``, or with one that took all."""
        settings = self.file.settings
        scored, total = self.documents
        return scored == total or not (settings.get("limit") or settings.get("samples"))

    @property
    def documents(self) -> tuple[int, int]:
        """The number of documents that were scored, and that the task has."""
        counts = self.file.content["n-samples"].get(self.task, {})
        return int(counts.get("effective", 0)), int(counts.get("original", 0))

    @property
    def tokens(self) -> Tokens | None:
        """The tokens that the task takes; None if they were not counted."""
        try:
            counts = self.file.content[TOKENS][self.task]
            return Tokens(int(counts["input"]), int(counts["output"]))
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def excluded(self) -> dict[str, list[str]]:
        """The ids of the examples that could not be scored and are in no metric, by cause."""
        excluded = {}
        for cause, ids in (self._metadata.get(NOT_SCORABLE) or {}).items():
            excluded[one_line(str(cause))] = [one_line(str(id_)) for id_ in ids]
        return excluded

    @cached_property
    def signature(self) -> str:
        """One line that says what was asked, and how it was scored."""
        return signature.result_signature(self.file.content, self.task)


def _is_score(key: str, value: object) -> bool:
    """Return whether an entry of a task's results is the score of a metric."""
    metric, comma, _ = key.partition(",")
    if not comma or metric.endswith(_NUMBER_ENDINGS):
        return False
    return isinstance(value, (int, float)) or value == NONE


@cache
def _parse_card(content: str) -> Card:
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


def read_results(path: Path, *, include_failed_training: bool = False) -> list[ResultsFile]:
    """Read a results file, or all in a folder, the oldest first.

    Hidden folders are skipped, since results that are still being written are there, but not those
    that lm-eval names after a model with a relative path. A file in a folder that cannot be read is
    left out, with a warning.

    Args:
        path: A file or a folder, or what was given as ``--output_path FOLDER/NAME.json``.
        include_failed_training: Also read results of models that did not learn what they were
            trained on, as their model files say. Their answers show nothing about the task.

    Raises:
        OptionError: There are no results.
        DataError: No file can be used.
    """
    files: list[ResultsFile] = []
    problems: list[str] = []
    for file in _result_files(path):
        try:
            results = _read(file)
        except DataError as error:
            problems.append(str(error))
            continue
        reason = model_file(results).get(FAILED_TRAINING)
        if reason is None or include_failed_training:
            files.append(results)
        else:
            problems.append(f"{label(results)} did not learn: {one_line(str(reason), limit=200)}")
    if not files and problems:
        raise DataError(problems[0])
    if not files:
        raise OptionError(
            f"no results_*.json under {path}; lm_eval writes them with --output_path {path}"
        )
    for problem in dict.fromkeys(problems):
        _log.warning("left out: %s", problem)
    return files


def _read(file: Path) -> ResultsFile:
    try:
        content = _Content.model_validate_json(file.read_bytes()).model_dump(by_alias=True)
        results = ResultsFile(file, content)
        for run in results.runs:
            # Everything is read here once, so that a malformed file is refused as a whole.
            _ = run.signature, run.documents, run.scores, run.card, run.excluded
    except (
        OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError
    ) as error:  # fmt: skip
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise DataError(
            f"{file}: not a results file of lm-eval ({one_line(problem, limit=200)})"
        ) from None
    return results


EXECUTION_ARGUMENTS = frozenset(
    ("base_url", "num_concurrent", "max_retries", "timeout", "device",
     "device_map_option", "parallelize", "max_memory_per_gpu", "max_cpu_memory", "offload_folder",
     "batch_size", "max_batch_size", "gpu_memory_utilization", "tensor_parallel_size",
     "data_parallel_size", "trust_remote_code")
)  # fmt: skip
"""Model arguments that say where and how fast a model runs, not which model it is."""


def identity(settings: Keys) -> str:
    """Return JSON that identifies a model: its type and the arguments that tell it from others.

    Args:
        settings: lm-eval's options, or the ``config`` of a results file.
    """
    arguments = identifying_arguments(settings)
    return json.dumps([settings.get("model"), arguments], sort_keys=True, default=str)


def identifying_arguments(settings: Keys) -> dict[str, Any]:
    """Return the model arguments that tell a model from others."""
    identifying = {}
    for name, value in arguments_of(settings).items():
        if name not in EXECUTION_ARGUMENTS:
            identifying[name] = value
    return identifying


def arguments_of(settings: Keys, option: str = "model_args") -> dict[str, Any]:
    """Return an option that may be a mapping or text, ``key=value,...``, as a mapping."""
    arguments = settings.get(option) or {}
    if not isinstance(arguments, str):
        return dict(arguments)
    from lm_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(arguments))


def metadata_of(settings: Keys) -> dict[str, Any]:
    """Return what lm-eval passes to tasks as metadata: model arguments and ``--metadata``."""
    return arguments_of(settings) | arguments_of(settings, "metadata")


MODEL_FILE = "model.yaml"
"""The name of the model's YAML file that ``lm-eval-ext run`` puts beside its results."""

FAILED_TRAINING = "did_not_learn"
"""A key of the model file: why training did not reach its gates (docs/training.md)."""

_MODEL_FILE_LEVELS = 2
"""The model file is beside a results file, or above the folder that lm-eval makes for a model."""


def model_file_path(results: ResultsFile) -> Path | None:
    """Return the model file of these results, or None if there is none."""
    for folder in results.path.resolve().parents[:_MODEL_FILE_LEVELS]:
        file = folder / MODEL_FILE
        if file.is_file():
            return file
    return None


def model_file(results: ResultsFile) -> dict[str, Any]:
    """Return the content of the model file; {} if there is none, or it cannot be read."""
    file = model_file_path(results)
    if file is None:
        return {}
    try:
        return read_yaml(file, TypeAdapter(dict[str, Any]))
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
