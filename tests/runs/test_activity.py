"""What ``run`` says that an evaluation is doing."""

import pytest

from lm_eval_ext.runs.activity import ActivityReader

BAR = "Running generate_until requests:  25%|##5       | 12/48 [00:00<?, ?it/s]"
STAMP = "2026-11-30:16:30:47 INFO     "


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def activity_after(*lines: str) -> str:
    """Return what is said of an evaluation that has printed these lines."""
    reader = ActivityReader(Clock())
    reader.read(lines[:-1], lines[-1])
    activity, _, time = reader.describe().partition("; ")
    assert time == "0 s since the start"
    return activity


@pytest.mark.parametrize(
    ("line", "activity"),
    [
        pytest.param(BAR, "Running generate_until requests: 12 of 48", id="bar"),
        pytest.param(
            "Reading prompts, 2,048 of 5,199 tokens:   0%|          | 0/48 [02:10<?, ?it/s]",
            "Reading prompts, 2,048 of 5,199 tokens: 0 of 48",
            id="bar of shared prefixes",
        ),
        pytest.param(
            f"{STAMP}[evaluator:239] Initializing hf model, with arguments: {{'a': 1}}",
            "loading the model",
            id="model",
        ),
        pytest.param(
            f"{STAMP}[api.task:312] Building contexts for lieder_mini on rank 0...",
            "building prompts of lieder_mini",
            id="prompts",
        ),
        pytest.param(
            f"{STAMP}[evaluator:589] Running loglikelihood requests",
            "Running loglikelihood requests",
            id="requests",
        ),
    ],
)
def test_bars_and_known_stages_say_what_goes_on(line: str, activity: str) -> None:
    assert activity_after(line) == activity


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="empty"),
        pytest.param("EvaluatorConfig(config='results2/.part-lieder/run.yaml', ...", id="config"),
        pytest.param("|    |    |query|     0|sql_no_query     |↓  |0.0|±  | N/A|", id="table"),
        pytest.param("  warnings.warn(", id="half of a warning"),
        pytest.param("Running generate_until requests:  25%|##5", id="half of a bar"),
        pytest.param(f"{STAMP}[lm_eval_ext.models.prefix.model:329] packed", id="information"),
    ],
)
def test_other_lines_are_not_shown(line: str) -> None:
    assert activity_after(line) == "starting"
    assert activity_after(BAR, line) == "Running generate_until requests: 12 of 48"


def test_a_bar_without_a_description_counts_the_present_stage() -> None:
    stage = f"{STAMP}[api.task:312] Building contexts for lieder_mini on rank 0..."
    bar = "  4%|4         | 2/48 [00:00<00:01, 30it/s]"
    assert activity_after(stage, bar) == "building prompts of lieder_mini: 2 of 48"


def test_a_quiet_evaluation_says_for_how_long() -> None:
    clock = Clock()
    reader = ActivityReader(clock)
    clock.now = 10.0
    reader.read([], BAR)
    for clock.now in (20.0, 60.0):
        reader.read([], BAR)
    assert reader.describe() == (
        "Running generate_until requests: 12 of 48; 60 s since the start; no output for 50 s"
    )
    clock.now = 300.0
    reader.read(["a warning"], BAR)
    assert reader.describe().endswith("; 5 min since the start")
