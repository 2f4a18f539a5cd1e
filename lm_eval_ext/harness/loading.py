"""Turns a benchmark's loading function into what lm-eval's ``custom_dataset`` calls."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lm_eval_ext.errors import OptionError

if TYPE_CHECKING:
    from datasets import DatasetDict


def loader(
    prefix: str,
) -> Callable[[Callable[..., "DatasetDict"]], Callable[..., "DatasetDict"]]:
    """Decorates a loading function so that it can be named in a task's YAML.

    lm-eval calls it with the task's ``metadata``, overlaid with ``--model_args`` and
    ``--metadata``: far more keys than a benchmark asked for. The decorated function gets the
    ones that it declares as keywords. Its result is kept for the process, because the check
    before the model loads (:mod:`lm_eval_ext.harness.preflight`) and lm-eval itself both ask.

    Args:
        prefix: What the benchmark's own metadata keys start with, such as ``lieder_``. A key
            with this prefix that the function does not declare is a typing error.

    Raises:
        OptionError: When called with an unknown key of this prefix.
    """

    def decorate(function: Callable[..., "DatasetDict"]) -> Callable[..., "DatasetDict"]:
        legal = tuple(inspect.signature(function).parameters)
        kept = functools.lru_cache(maxsize=8)(
            lambda _environment, options: function(**dict(options))
        )

        @functools.wraps(function)
        def dataset(**metadata: Any) -> "DatasetDict":
            unknown = [key for key in metadata if key.startswith(prefix) and key not in legal]
            if unknown:
                raise OptionError(
                    f"unknown metadata key {', '.join(sorted(unknown))}; "
                    f"keys that start with {prefix} are: {', '.join(legal)}"
                )
            options = tuple((key, metadata[key]) for key in legal if key in metadata)
            return kept(_environment(), options)

        return dataset

    return decorate


def _environment() -> tuple[tuple[str, str], ...]:
    """Our environment variables: they say where data come from, so they are part of the key."""
    return tuple(sorted(kv for kv in os.environ.items() if kv[0].startswith("LM_EVAL_EXT_")))
