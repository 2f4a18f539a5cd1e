"""A model's earlier answers to the component questions, out of lm-eval's log of that run."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.benchmarks.diner.component_answers import parts
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.left_out import is_logged_stand_in

WANTED = (
    "name the file samples_diner_components_*.jsonl that lm_eval --tasks diner_components "
    "--log_samples wrote"
)


def read(file: Path, recipes: Iterable[Recipe]) -> dict[str, dict[str, str]]:
    """Reads the answers for recipes.

    Args:
        file: The log.
        recipes: Those that are to be asked; answers for others are passed over.

    Returns:
        By id and kind the components as prompts state them, "" for none. Recipes that the log
        has no answers for are not among them.

    Raises:
        OptionError: There is no such file, or it has no answers for any of the recipes.
        DataError: A line is no logged answer, or belongs to another recipe of the same id.
    """
    if not file.is_file():
        raise OptionError(f"diner_components_file: {file} is no file; {WANTED}")
    wanted = {recipe.id: recipe for recipe in recipes}
    found: dict[str, dict[str, str]] = {}
    for place, row in _rows(file):
        doc, responses = _checked(row, place)
        recipe = wanted.get(doc["id"])
        if recipe is None or any(is_logged_stand_in(response) for response in responses):
            continue
        if recipe.instruction != doc.get("instruction"):
            raise DataError(
                f"{place}: {doc['id']} is another recipe there; ask both tasks about the same data"
            )
        found[recipe.id] = {
            kind: "、".join(parts(response))
            for kind, response in zip(ASKED_KINDS, responses, strict=True)
        }
    if not found:
        raise OptionError(
            f"diner_components_file: {file} has no answers about these recipes; {WANTED}, on the "
            "same data"
        )
    return found


def _rows(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        lines = file.open("rb")
    except OSError as error:
        raise OptionError(
            f"diner_components_file: cannot read {file}: {error.strerror}; {WANTED}"
        ) from error
    with lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file}, line {number}"
            try:
                yield place, json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                raise DataError(f"{place}: no JSON; {WANTED}") from None


def _checked(row: Any, place: str) -> tuple[Mapping[str, Any], Sequence[str]]:
    doc = row.get("doc") if isinstance(row, dict) else None
    responses = row.get("filtered_resps") if isinstance(row, dict) else None
    if (
        not isinstance(doc, dict)
        or not isinstance(doc.get("id"), str)
        or not isinstance(responses, list)
        or len(responses) != len(ASKED_KINDS)
        or not all(isinstance(response, str) for response in responses)
    ):
        raise DataError(f"{place}: no answers to the {len(ASKED_KINDS)} questions; {WANTED}")
    return doc, responses
