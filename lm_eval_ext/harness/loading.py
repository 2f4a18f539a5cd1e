"""Turns a benchmark's loading function into what lm-eval's ``custom_dataset`` calls."""

import functools
import inspect
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from lm_eval_ext.errors import OptionError, first_problem
from lm_eval_ext.harness import keys, provenance
from lm_eval_ext.lexicon import fresh

if TYPE_CHECKING:
    from datasets import DatasetDict


class Loader:
    """A loading function that can be named in a task's YAML; made by :func:`loader`.

    lm-eval calls it with the task's ``metadata``, overlaid with ``--model_args`` and
    ``--metadata``: more keys than a benchmark knows. The function gets those of its model of
    options. Its result is kept for the process, because the check before the
    model loads (:mod:`lm_eval_ext.harness.preflight`) and lm-eval itself both ask.

    Attributes:
        prefix: What the benchmark's own metadata keys start with, such as ``lieder_``.
    """

    def __init__(
        self, function: Callable[[Any], "Documents"], prefix: str, options: Callable[..., Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.prefix = prefix
        self._function = function
        self._model = options
        self._defaults = {
            name if name == fresh.KEY else prefix + name: parameter.default
            for name, parameter in inspect.signature(options).parameters.items()
        }
        self._kept: dict[str, DatasetDict] = {}
        keys.declare(prefix, self._defaults)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Loader":
        """Itself: lm-eval copies configurations deeply, and a copy would load again."""
        return self

    @property
    def keys(self) -> Collection[str]:
        """The metadata keys that the function takes."""
        return self._defaults.keys()

    def options(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments under this metadata, defaults included.

        The seed for all benchmarks is among them only where it is given. It then stands for the
        benchmark's own, which is None.

        Raises:
            OptionError: For two seeds or one that is not legal, and for a key that looks like the
                benchmark's and is none of its keys. One that only another of its loading
                functions takes is right: a run may have both.
        """
        keys.check_own(metadata.keys() - self._defaults.keys(), self.prefix)
        found = {name: metadata.get(name, default) for name, default in self._defaults.items()}
        seed = found.pop(fresh.KEY, None)
        if seed is not None:
            own = f"{self.prefix}seed"
            if found.get(own):  # task files have 0 or none
                keys.check_one_seed(metadata, own)
            found |= {own: None} if own in found else {}
            found[fresh.KEY] = fresh.check_seed(seed)
        return found

    def __call__(self, **metadata: Any) -> "DatasetDict":
        """Loads the documents, or returns what was loaded under the same options.

        Raises:
            LmEvalExtError: As :meth:`options` and the function itself.
        """
        options = self.options(metadata)
        # Our environment variables say where data come from, so they are part of the key.
        environment = {k: v for k, v in os.environ.items() if k.startswith("LM_EVAL_EXT_")}
        key = json.dumps([environment, options], sort_keys=True, default=repr)
        if key not in self._kept:
            self._kept[key] = self._load(options)
        return self._kept[key]

    def checked(self, options: Mapping[str, Any]) -> Any:
        """The model of these options, which have the prefix.

        Raises:
            OptionError: One is not legal.
        """
        own = {name.removeprefix(self.prefix): value for name, value in options.items()}
        try:
            return self._model(**own)
        except ValidationError as error:
            raise OptionError(f"{self.prefix}{first_problem(error)}") from None

    def _load(self, options: Mapping[str, Any]) -> "DatasetDict":
        from datasets import DatasetDict

        found = self._function(self.checked(options))
        if isinstance(found, DatasetDict):
            return found
        return provenance.of_documents(found, self.prefix.rstrip("_"))


Documents: TypeAlias = "DatasetDict | provenance.Loaded | Iterable[Mapping[str, Any]]"
"""What a loading function returns: documents, with or without where they are from."""


def loader(
    prefix: str, options: Callable[..., Any]
) -> Callable[[Callable[[Any], Documents]], Loader]:
    """Decorates a loading function; see :class:`Loader`.

    It returns documents as mappings, which have the same keys. Where they are not its own text,
    :class:`~lm_eval_ext.harness.provenance.Loaded` says where they are from.

    The keys are the fields of ``options``, a pydantic model or dataclass, with the prefix before
    their names (but for ``fresh``). The function gets the validated model.
    """
    return lambda function: Loader(function, prefix, options)
