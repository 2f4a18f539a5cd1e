"""Filters of answers, for the ``filter_list`` of a task's YAML."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter


def register_text_filter(name: str, extract: Callable[[str], str]) -> None:
    """Registers a filter for ``filter_list``, which takes a part out of each answer.

    Args:
        name: In lm-eval's registry.
        extract: Returns "" where the part is not in the answer.
    """

    class TextFilter(Filter):
        def apply(self, resps: Iterable[Sequence[str]], docs: Any) -> list[list[str]]:
            return [[extract(answer) for answer in answers] for answers in resps]

    register_filter(name)(TextFilter)
