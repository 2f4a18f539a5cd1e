"""What ``show`` says beside the values: chance, the headline, and how much was evaluated."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lm_eval_ext.results.grid import text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import tables

REAL_MODELS = Path(__file__).parents[2] / "docs" / "real_models"


def show(*models: str, tasks: Sequence[str] = ()) -> str:
    """Return what ``show`` prints of some of the real models in ``docs``."""
    folders = [REAL_MODELS / model for model in models]
    return text(tables(read_models(folders), ScoreQuery(), tasks))


@pytest.mark.parametrize(
    ("task", "start", "chance"),
    [
        pytest.param("lieder_base", "direct/existence ", "0.500", id="chance"),
        pytest.param("conceptual_glue", "gain_from_concept ", "0.000", id="gain"),
        pytest.param("conceptual_glue", "gain (headline) ", "0.181", id="copies of answers"),
        pytest.param("conceptual_glue", "gain_100x200 ", "0.190", id="copies, the paper's draws"),
        pytest.param("conceptual_glue", "score_100x200_concept ", "0.530", id="score of copies"),
    ],
)
def test_chance_stands_beside_the_value(task: str, start: str, chance: str) -> None:
    shown = show("smollm2-bare", tasks=[task])
    (line,) = [line for line in shown.splitlines() if line.startswith(start)]
    assert line.split()[-1] == chance
    assert "\nchance is " in shown


@pytest.mark.parametrize(
    ("task", "note"),
    [
        pytest.param("lieder_base", "chance is 0.500, the score of guessing", id="chance"),
        pytest.param(
            "conceptual_glue",
            "chance is the score of copy majority (no model), no gain or the score of copy last "
            "(no model)",
            id="gains and copies",
        ),
    ],
)
def test_the_note_on_chance_is_about_the_table(task: str, note: str) -> None:
    """A table without gains and trivial answers speaks of neither."""
    shown = " ".join(show("smollm2-bare", tasks=[task]).split())
    assert f"{note} samples:" in shown


def test_of_several_models_chance_stands_beside_the_metric() -> None:
    lines = show("smollm2-bare", "gemma-bare", tasks=["lieder_base"]).splitlines()
    (headline,) = [line for line in lines if "(headline)" in line]
    assert headline.split() == ["direct", "(headline)", "0.500"]


def test_a_task_whose_card_gives_no_chance_has_no_such_column() -> None:
    assert "chance" not in show("qwen0.5b-bare", tasks=["magnifico_desc"])


def test_the_overview_says_what_chance_is() -> None:
    shown = show("smollm2-bare", "gemma-bare")
    assert "lieder_base: Accuracy (chance 0.500)\n" in shown
    assert "slog_icl: Exact match\n" in shown


def test_only_the_headline_is_marked() -> None:
    shown = show("smollm2-bare", tasks=["magnifico_desc"])
    assert shown.count("(headline)") == 1
    assert "relative_performance (headline)" in shown


def test_a_trial_says_how_many_documents_of_the_task_were_evaluated() -> None:
    trial = show("smollm2-bare", tasks=["conceptual_glue"])
    assert "SmolLM2 135M, bare · 40 documents evaluated / 282 of the task\n" in trial
    whole = show("smollm2-bare", tasks=["lieder_base"])
    assert "SmolLM2 135M, bare · 48 documents\n" in whole
    overview = show("smollm2-bare")
    assert "below trials: documents evaluated / of the task" in overview
