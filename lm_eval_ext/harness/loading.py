"""Turns a benchmark's loading function into what lm-eval's ``custom_dataset`` calls."""

import functools
import inspect
import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from pydantic import ValidationError

from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.errors import OptionError, first_problem, nearest
from lm_eval_ext.harness.lm_eval_types import Metadata
from lm_eval_ext.harness.provenance import Provenance, describe_embedded
from lm_eval_ext.lexicon import FRESH, check_seed
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from datasets import DatasetDict

_MISSPELT_SIMILARITY = 0.85
"""Similarity (difflib's ratio) from which a key counts as a misspelt one of a benchmark."""

_ENVIRONMENT_PREFIX = "LM_EVAL_EXT_"

Columns: TypeAlias = Mapping[str, Any]
"""A document as a loading function returns it; all documents have the same columns."""

OptionsT = TypeVar("OptionsT")


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """Everything that a loading function returns about a task.

    Attributes:
        documents: The documents, which have the same columns.
        resources: What scoring or prompts need beside the documents, such as databases or a
            glossary; the task keeps it as ``resources``.
        excluded: The ids of the examples that are not among the documents, by cause; the results
            file lists them.
        provenance: Where the documents come from; None if they are embedded, for example drawn.
            Then they are hashed.
        demonstrations: Documents of the split ``train``, which all prompts may show.
    """

    documents: Iterable[Columns]
    resources: object = None
    excluded: Mapping[str, Collection[str]] = field(default_factory=dict)
    provenance: Provenance | None = None
    demonstrations: Iterable[Columns] = ()


LoadingResult: TypeAlias = "TaskData | Iterable[Columns]"
"""What a loading function returns: all about a task, or just the documents."""


@dataclass(frozen=True)
class LoadedTask:
    """A task's data as the task keeps them.

    Attributes:
        dataset: The documents as lm-eval takes them, split ``test``, with ``train`` if there are
            demonstrations.
        resources: As in :class:`TaskData`.
        excluded: As in :class:`TaskData`.
        provenance: Where the documents come from.
    """

    dataset: "DatasetDict"
    resources: object
    excluded: Mapping[str, Collection[str]]
    provenance: Provenance


class Loader(Generic[OptionsT]):
    """A loading function that can be named in a task's YAML; made by :func:`loader`.

    lm-eval calls it with the task's ``metadata``, overlaid with ``--model_args`` and
    ``--metadata``, which has more keys than a benchmark knows. The loader picks the benchmark's
    keys and passes them on as the function's model of options. The result is kept for the process,
    because the check before the model loads (:mod:`lm_eval_ext.harness.preflight`) and lm-eval
    itself both need it.

    Attributes:
        prefix: The beginning of the benchmark's own metadata keys, such as ``lieder_``.
        fields: The name of the option that each metadata key sets.
    """

    _benchmark_fields: ClassVar[defaultdict[str, dict[str, str]]] = defaultdict(dict)
    """The fields of all loading functions with a prefix."""

    def __init__(
        self,
        function: Callable[[OptionsT], LoadingResult],
        prefix: str,
        options: Callable[..., OptionsT],
    ) -> None:
        functools.update_wrapper(self, function)
        self.prefix = prefix
        self._function = function
        self._options_model = options
        self.fields = {}
        for name in inspect.signature(options).parameters:
            key = name if name == FRESH else prefix + name
            self.fields[key] = name
        self._benchmark_fields[prefix] |= self.fields
        self._kept: dict[str, LoadedTask] = {}

    def __deepcopy__(self, memo: object) -> "Loader[OptionsT]":
        """Return the loader itself: lm-eval copies configurations, and a copy would load again."""
        return self

    def options(self, metadata: Metadata) -> OptionsT:
        """Return the options under this metadata, an instance of the benchmark's model.

        If a seed for all benchmarks is given, the benchmark's own seed is None.

        Raises:
            OptionError: An option is not legal, two seeds are given, or a key looks like one of the
                benchmark's and is none of its loading functions' keys.
        """
        self._refuse_misspelt(metadata)
        values = {name: metadata[key] for key, name in self.fields.items() if key in metadata}
        if values.get(FRESH) is not None:
            check_seed(values[FRESH])
            if values.get("seed"):  # task files have 0 or none
                raise OptionError(
                    f"{FRESH} and {self.prefix}seed are both given; {FRESH} is the seed of "
                    "all benchmarks: leave one out"
                )
            values["seed"] = None
        try:
            return self._options_model(**values)
        except ValidationError as error:
            raise OptionError(f"{self.prefix}{first_problem(error)}") from None

    def _refuse_misspelt(self, metadata: Metadata) -> None:
        legal = self._benchmark_fields[self.prefix]
        suspects = []
        for key in metadata.keys() - legal:
            similar_keys = get_close_matches(key, legal, cutoff=_MISSPELT_SIMILARITY)
            if key.startswith(self.prefix) or similar_keys:
                suspects.append(key)
        refuse_unknown(suspects, legal)

    def load(self, metadata: Metadata) -> LoadedTask:
        """Load a task's data, or return what was loaded under the same options.

        Raises:
            LmEvalExtError: As :meth:`options` and the loading function itself.
        """
        options = self.options(metadata)
        key = repr((options, data_environment()))
        if key not in self._kept:
            result = self._function(options)
            self._kept[key] = _as_loaded(result, self.prefix.rstrip("_"))
        return self._kept[key]

    def __call__(self, **metadata: Any) -> "DatasetDict":
        """Return the documents alone, as lm-eval expects of a ``custom_dataset``.

        Raises:
            LmEvalExtError: As :meth:`load`.
        """
        return self.load(metadata).dataset


def data_environment() -> tuple[tuple[str, str], ...]:
    """Return our environment variables, which say where data lie: other data need another key."""
    variables = []
    for name, value in os.environ.items():
        if name.startswith(_ENVIRONMENT_PREFIX):
            variables.append((name, value))
    return tuple(sorted(variables))


def _as_loaded(result: LoadingResult, benchmark: str) -> LoadedTask:
    """Build the splits; documents without a provenance are embedded, and hashed."""
    from datasets import Dataset, DatasetDict

    data = result if isinstance(result, TaskData) else TaskData(documents=result)
    documents = [dict(document) for document in data.documents]
    demonstrations = [dict(document) for document in data.demonstrations]
    provenance = data.provenance
    if provenance is None:
        lines = [
            json.dumps(document, sort_keys=True, ensure_ascii=False)
            for document in documents + demonstrations
        ]
        provenance = describe_embedded(benchmark, sha256_of_text("\n".join(lines)))
    splits = {"test": Dataset.from_list(documents)}
    if demonstrations:
        splits["train"] = Dataset.from_list(demonstrations)
    return LoadedTask(DatasetDict(splits), data.resources, data.excluded, provenance)


def refuse_unknown(keys: Iterable[str], legal: Iterable[str]) -> None:
    """Refuse the first of these metadata keys, in alphabetical order.

    Raises:
        OptionError: There is a key; the line has the nearest legal one, and all legal ones.
    """
    unknown = sorted(keys)
    if unknown:
        key = unknown[0]
        raise OptionError(
            f"unknown metadata key {one_line(key, limit=80)}{nearest(key, legal) or ';'} keys of "
            f"the chosen tasks are: {', '.join(legal)}"
        )


def loader(
    prefix: str, options: Callable[..., OptionsT]
) -> Callable[[Callable[[OptionsT], LoadingResult]], Loader[OptionsT]]:
    """Decorate a loading function; see :class:`Loader`.

    The function returns documents as mappings with the same keys; or :class:`TaskData`, which
    also says where they are from, what was excluded, and which resources scoring needs.

    Args:
        prefix: The beginning of the benchmark's metadata keys.
        options: A pydantic model or dataclass. Its fields, with the prefix before their names (but
            for ``fresh``), are the metadata keys. The function gets the validated model.
    """

    def decorate(function: Callable[[OptionsT], LoadingResult]) -> Loader[OptionsT]:
        return Loader(function, prefix, options)

    return decorate
