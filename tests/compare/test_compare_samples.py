"""Samples of a difference, and of a comparison within a task: which score is behind them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.sample_report import samples_report
from lm_eval_ext.results.sample_scores import Kind, SampleScore
from lm_eval_ext.results.shown_samples import SampleQuery

TASK = "conceptual_mini"


def answer_wrongly(_number: int, sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample whose answers are wrong, with any demonstrations."""
    rows = []
    for row in sample["rows"]:
        scores = {name: 0.0 for name, value in row.items() if isinstance(value, float)}
        rows.append({**row, **scores})
    return {**sample, "rows": rows}


def test_where_all_answers_are_wrong_no_gain_is_lost_and_another_metric_is_named(
    changed: Callable[..., Path],
) -> None:
    models = read_models([changed(edit_row=answer_wrongly, task=TASK)])
    with pytest.raises(OptionError) as error:
        samples_report(models, TASK, SampleQuery(is_wrong=True))
    message = str(error.value)
    assert message.startswith(f"no sample of {TASK} is like this: --wrong; this score is a diff")
    assert message.endswith("--metric score/concept --wrong shows wrong answers")
    query = SampleQuery(query=ScoreQuery(("score/concept",)), is_wrong=True)
    assert ": wrong" in samples_report(models, TASK, query)


def test_conditions_that_the_headline_cannot_have_choose_the_score_behind_it(runs: Path) -> None:
    """Relative performance compares novel words with existing ones, so one kind alone has none."""
    models = read_models([runs / "good"])
    query = SampleQuery(query=ScoreQuery(where=("word=novel",)), limit=0)
    shown = samples_report(models, "magnifico_mini", query)
    heading, _, samples = shown.partition("\n── 1 · ")
    assert heading.startswith("magnifico_mini · Execution accuracy, novel words\n")
    remark = "score: --metric sql_execution_accuracy, because relative_performance has no value"
    assert remark in " ".join(heading.split())
    assert "/base ─" not in samples
    assert "not scored" not in samples


def test_a_metric_that_the_user_named_is_not_replaced(runs: Path) -> None:
    models = read_models([runs / "good"])
    query = SampleQuery(query=ScoreQuery(("relative_performance",), where=("word=novel",)))
    with pytest.raises(OptionError, match="name another --metric"):
        samples_report(models, "magnifico_mini", query)


def test_an_unknown_value_of_a_facet_is_still_named(runs: Path) -> None:
    models = read_models([runs / "good"])
    query = SampleQuery(query=ScoreQuery(where=("word=old",)))
    with pytest.raises(OptionError, match="no word old; available: base, novel"):
        samples_report(models, "magnifico_mini", query)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param("", "no gain, both answers are empty", id="both-empty"),
        pytest.param("a lamp", "no gain, the answers are the same", id="both-the-same"),
    ],
)
def test_answers_that_make_no_difference_are_not_called_partly_right(
    changed: Callable[..., Path], answer: str, words: str
) -> None:
    def answer_so(number: int, sample: dict[str, Any]) -> dict[str, Any]:
        answered = answer_wrongly(number, sample)
        return {**answered, "filtered_resps": [answer] * len(sample["filtered_resps"])}

    models = read_models([changed(edit_row=answer_so, task=TASK)])
    shown = samples_report(models, TASK, SampleQuery(limit=1))
    assert f" 0.000: {words}" in " ".join(shown.split())
    assert "partly" not in shown


@pytest.mark.parametrize(
    ("kind", "value", "outcome"),
    [
        ("gain", 0.5, "won"),
        ("gain", -0.5, "lost"),
        ("gain", 0.0, "no gain"),
        ("loss", -0.5, "won"),
        ("loss", 0.5, "lost"),
        ("loss", 0.0, "no difference"),
    ],
)
def test_a_difference_is_won_or_lost_or_none(kind: Kind, value: float, outcome: str) -> None:
    score = SampleScore(["gain"], "Gain", kind)
    assert score.outcome(value) == outcome
    assert score.is_wrong(value) == (outcome == "lost")
