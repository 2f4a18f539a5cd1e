"""Turns a benchmark's loading function into what lm-eval's ``custom_dataset`` calls."""

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pydantic import ValidationError

from lm_eval_ext.errors import OptionError, first_problem, nearest
from lm_eval_ext.harness import provenance
from lm_eval_ext.lexicon import FRESH, check_seed
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from datasets import DatasetDict

_LIKE = 0.85
"""Similarity (difflib's ratio) from which a key counts as a misspelt one of a benchmark."""


class Loader:
    """A loading function that can be named in a task's YAML; made by :func:`loader`.

    lm-eval calls it with the task's ``metadata``, overlaid with ``--model_args`` and
    ``--metadata``: more keys than a benchmark knows. The function gets its model of options, made
    from those that are the benchmark's. Its result is kept for the process, because the check
    before the model loads (:mod:`lm_eval_ext.harness.preflight`) and lm-eval itself both ask.

    Attributes:
        prefix: What the benchmark's own metadata keys start with, such as ``lieder_``.
        fields: By metadata key the name of the option.
    """

    _of_benchmarks: ClassVar[defaultdict[str, dict[str, str]]] = defaultdict(dict)
    """The fields of all loading functions with a prefix."""

    def __init__(
        self, function: Callable[[Any], "Documents"], prefix: str, options: Callable[..., Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.prefix, self._function, self._model = prefix, function, options
        self.fields = {
            name if name == FRESH else prefix + name: name for name in signature(options).parameters
        }
        self._of_benchmarks[prefix] |= self.fields
        self._kept: dict[str, DatasetDict] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Loader":
        """Itself: lm-eval copies configurations deeply, and a copy would load again."""
        return self

    def options(self, metadata: Mapping[str, Any]) -> Any:
        """The options under this metadata, an instance of the benchmark's model.

        Under a seed for all benchmarks the benchmark's own is None.

        Raises:
            OptionError: An option is not legal, two seeds are given, or a key looks like one of the
                benchmark's and is none of its loading functions' keys.
        """
        legal = self._of_benchmarks[self.prefix]
        refuse_unknown(
            (
                key
                for key in metadata.keys() - legal
                if key.startswith(self.prefix) or get_close_matches(key, legal, cutoff=_LIKE)
            ),
            legal,
        )
        given = {name: metadata[key] for key, name in self.fields.items() if key in metadata}
        if given.get(FRESH) is not None:
            check_seed(given[FRESH])
            if given.get("seed"):  # task files have 0 or none
                raise OptionError(
                    f"{FRESH} and {self.prefix}seed are both given; {FRESH} is the seed of "
                    "all benchmarks: leave one out"
                )
            given["seed"] = None
        try:
            return self._model(**given)
        except ValidationError as error:
            raise OptionError(f"{self.prefix}{first_problem(error)}") from None

    def __call__(self, **metadata: Any) -> "DatasetDict":
        """Loads the documents, or returns what was loaded under the same options.

        Raises:
            LmEvalExtError: As :meth:`options` and the function itself.
        """
        options = self.options(metadata)
        # Our environment variables say where data come from, so they are part of the key.
        places = sorted(one for one in os.environ.items() if one[0].startswith("LM_EVAL_EXT_"))
        key = repr((options, places))
        if key not in self._kept:
            found = self._function(options)
            self._kept[key] = provenance.of_documents(found, self.prefix.rstrip("_"))
        return self._kept[key]


def refuse_unknown(keys: Iterable[str], legal: Iterable[str]) -> None:
    """Raises OptionError if there is such a key; the line has the nearest legal one, and all."""
    for key in sorted(keys):
        raise OptionError(
            f"unknown metadata key {one_line(key, limit=80)}{nearest(key, legal) or ';'} keys of "
            f"the chosen tasks are: {', '.join(legal)}"
        )


Documents: TypeAlias = "provenance.Loaded | Iterable[Mapping[str, Any]]"
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
