"""The auxiliary models of CP-FT: what each predicts, and for which recipes (paper, section 4).

An auxiliary model answers the three component questions; its answers stand before the question for
the name. The authors' answers its own training recipes, too, so that prompts are cleaner in
training than in the test.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.component_answers import read_answers
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS, AUTHORS, component_prompts
from lm_eval_ext.benchmarks.diner.records import Recipe
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.answers import answers_of, processes

PREDICTIONS = "components.jsonl"
"""In the folder of an auxiliary model: its answers, as lm-eval logs those of a task."""

MOST_TOKENS = 16
"""Of an answer, as in the authors' code."""

Predicted = Mapping[str, Mapping[str, Sequence[str]]]
"""Components by the id of a recipe and their kind."""


def predictions(model: Path, recipes: Sequence[Recipe]) -> Predicted:
    """Asks an auxiliary model about recipes, once: its answers are kept in its folder.

    All processes of a launcher must call it.

    Raises:
        OptionError: The model cannot be loaded, or its folder cannot be written.
    """
    file = model / PREDICTIONS
    if (found := _kept(file, recipes)) is not None:
        return found
    asked = [text for one in recipes for text in component_prompts(one.instruction, AUTHORS)]
    answers = answers_of(model, asked, most=MOST_TOKENS)
    if processes().is_main_process:
        with atomic_text(file) as out:
            for one, place in zip(recipes, range(0, len(answers), len(ASKED_KINDS)), strict=True):
                row = {
                    "doc": {"id": one.id, "instruction": one.instruction},
                    "filtered_resps": answers[place : place + len(ASKED_KINDS)],
                }
                out.write(f"{json.dumps(row, ensure_ascii=False)}\n")
    processes().wait_for_everyone()
    return read_answers(file, recipes)


def _kept(file: Path, recipes: Sequence[Recipe]) -> Predicted | None:
    """Earlier answers, if they are about just these recipes."""
    if not file.is_file():
        return None
    try:
        found = read_answers(file, recipes)
    except (DataError, OptionError):
        return None
    return found if len(found) == len(recipes) else None
