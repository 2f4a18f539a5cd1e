"""lm_eval's own table: of each of our tasks the headline first, and at most 16 rows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import Any

from lm_eval_ext.cards import card_of
from lm_eval_ext.results import why
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.show import HEADLINE, WIDTH, first_of, value_and_interval


@contextmanager
def shorter(output_path: str | None) -> Iterator[None]:
    """Makes lm_eval print what to look at first, with intervals instead of standard errors.

    LIEDER has 185 metrics. Where no results are written, what is printed is all that remains of a
    run, so lm_eval's table comes before ours.
    """
    from lm_eval import utils

    original = getattr(utils, "make_table", None)
    if original is None:
        yield
        return

    @wraps(original)
    def make_table(result_dict: Any, column: str = "results", *args: Any, **kwargs: Any) -> str:
        def draw(content: Any) -> str:
            table: str = original(content, column, *args, **kwargs)
            return table

        try:
            ours = any(map(card_of, result_dict[column])) and column == "results"
            text = _tables(ResultsFile(Path(), result_dict), draw, output_path) if ours else ""
        except (AttributeError, KeyError, TypeError, ValueError):  # results of another form
            text = ""
        if text and output_path:
            return text
        return draw(result_dict) + (f"\n{text}" if text else "")

    utils.make_table = make_table
    try:
        yield
    finally:
        utils.make_table = original


class _Placed(str):
    """A key that lm_eval sorts by its place, not by its letters."""

    rank: int

    def __lt__(self, other: Any) -> bool:
        return self.rank < getattr(other, "rank", -1)


def _tables(results: ResultsFile, draw: Any, output_path: str | None) -> str:
    """A table of percentages and one of all other values, as far as there are any, and notes."""
    every = results.content["results"]
    tables: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    better = {task: dict(own) for task, own in results.content["higher_is_better"].items()}
    notes: list[str] = []
    hidden = 0
    for task, values in every.items():
        card = card_of(task)
        if card is None:
            tables[False][task] = values
            continue
        scores = results.scores(task)
        shown = first_of(card, scores)
        headline = card.headline_of(scores)
        hidden += len(scores) - len(shown)
        for rank, metric in enumerate(shown):
            percent = results.is_percent(task, metric)
            name, _, filter_name = _key(values, metric).partition(",")
            marked = f"{HEADLINE} {name}" if metric == headline else name
            better.setdefault(task, {})[marked] = better.get(task, {}).get(name)
            key = _Placed(f"{marked},{filter_name}")
            key.rank = rank
            own = tables[percent].setdefault(task, {"alias": values.get("alias", task)})
            own[key] = " ".join(filter(None, value_and_interval(scores[metric], percent=percent)))
        if scores:
            tables[False].setdefault(task, {"alias": values.get("alias", task)})
        notes += [
            fill(f"{task}: {reason}", WIDTH, subsequent_indent="  ")
            for reason in why.reasons(results, task, shown)
        ]
    texts = []
    for percent, title in ((True, "In percent:\n"), (False, "")):
        if any(len(own) > 1 for own in tables[percent].values()):
            chosen = {"results": tables[percent], "higher_is_better": better}
            texts.append(title + draw({**results.content, **chosen}).rstrip("\n"))
    texts.append(f"{HEADLINE} the task's headline; in brackets the 95 % interval")
    if hidden:
        where = f": lm-eval-ext show --all {output_path}" if output_path else " above"
        texts.append(f"{hidden} more metrics{where}")
    return "\n".join([*texts, *notes]) + "\n"


def _key(values: Mapping[str, Any], metric: str) -> str:
    """A metric's key in lm_eval's results; where there is one filter, its name leaves it out."""
    return next(key for key in values if metric in (key, key.partition(",")[0]))
