"""lm_eval's own table, without what would make it several times as long."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from lm_eval_ext.harness.names import STDERR


@contextmanager
def without_parts(output_path: str | None) -> Iterator[None]:
    """Makes lm_eval print metrics over all documents only; a line says how many others there are.

    LIEDER has 47 metrics, and 138 more over one sentence family each. Without a folder for
    results the table is all that remains of a run, so it stays whole.
    """
    from lm_eval import utils

    original = getattr(utils, "make_table", None)
    if not output_path or original is None:
        yield
        return

    @wraps(original)
    def make_table(result_dict: Any, column: str = "results", *args: Any, **kwargs: Any) -> str:
        try:
            every = result_dict[column]
            kept = {task: _whole(task, scores) for task, scores in every.items()}
            count = sum(map(_values, every.values())) - sum(map(_values, kept.values()))
            shorter = {**result_dict, column: kept}
        except (AttributeError, KeyError, TypeError):  # an lm-eval with results of another form
            count, shorter = 0, result_dict
        table: str = original(shorter, column, *args, **kwargs)
        if not count:
            return table
        more = f"lm-eval-ext show --all {output_path}"
        return f"{table}{count} more, over a part of the documents each (metric:part): {more}\n"

    utils.make_table = make_table
    try:
        yield
    finally:
        utils.make_table = original


def _whole(task: str, scores: Mapping[str, Any]) -> dict[str, Any]:
    from lm_eval_ext.cards import card_of

    card = card_of(task)
    return {
        key: value
        for key, value in scores.items()
        if not (card and card.whole_and_part(key.partition(",")[0].removesuffix(STDERR))[1])
    }


def _values(scores: Mapping[str, Any]) -> int:
    return sum("," in key and STDERR not in key for key in scores)
