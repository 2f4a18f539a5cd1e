"""Samples of a difference: which of them are wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.sample_report import SampleQuery, samples_report

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
