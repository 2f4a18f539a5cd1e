"""Filters of responses that a task file can name under ``filter_list``."""

from collections.abc import Callable, Iterable, Sequence

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter


def register_text_filter(name: str, extract: Callable[[str], str]) -> None:
    """Register a filter that takes a part out of each response.

    Args:
        name: Its name in ``filter_list``.
        extract: Returns the part; "" if the response does not have it.
    """

    class TextFilter(Filter):
        def apply(self, resps: Iterable[Sequence[str]], docs: object) -> list[list[str]]:
            return [list(map(extract, responses)) for responses in resps]

    register_filter(name)(TextFilter)
