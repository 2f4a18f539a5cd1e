"""Whether two runs are of the same model."""

import json
from collections.abc import Mapping
from typing import Any

WHERE_NOT_WHAT = frozenset(
    ("base_url", "num_concurrent", "max_retries", "timeout", "device", "device_map_option",
     "parallelize", "max_memory_per_gpu", "max_cpu_memory", "offload_folder", "batch_size",
     "max_batch_size", "gpu_memory_utilization", "tensor_parallel_size", "data_parallel_size",
     "trust_remote_code")
)  # fmt: skip
"""Arguments of models that say where and how fast they run, not which they are."""


def identity(settings: Mapping[str, Any]) -> str:
    """What a model is: its type, and those of its arguments that say which it is.

    Args:
        settings: lm-eval's options, or the ``config`` of a results file.
    """
    arguments = arguments_of(settings)
    kept = {key: value for key, value in arguments.items() if key not in WHERE_NOT_WHAT}
    return json.dumps([settings.get("model"), kept], sort_keys=True, default=str)


def arguments_of(settings: Mapping[str, Any], key: str = "model_args") -> dict[str, Any]:
    """Arguments as a mapping, which a file may give as ``key=value`` text."""
    found = settings.get(key) or {}
    if not isinstance(found, str):
        return dict(found)
    from lm_eval.utils import simple_parse_args_string

    return dict(simple_parse_args_string(found))


def metadata_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What lm-eval hands to tasks as metadata: the model's arguments, and what is named so."""
    return arguments_of(settings) | arguments_of(settings, "metadata")
