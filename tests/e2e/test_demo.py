"""The main steps of `make demo`: a model trained from scratch, evaluated by plain lm_eval."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.cards import cards

pytestmark = pytest.mark.e2e


def test_the_demonstration_model_is_above_chance(
    cli: Callable[..., Any], lm_eval: Callable[..., Any], demonstration_model: Callable[[str], Path]
) -> None:
    model = demonstration_model("lieder")
    done = lm_eval(
        "--tasks", "lieder_mini", "--model", "hf", "--device", "cpu", "--batch_size", "32",
        "--model_args", f"pretrained={model}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    scores = done.results()["results"]["lieder_mini"]
    chance = cards()["lieder"].chance
    assert chance is not None
    for metric in ("direct", "relative"):
        for requirement in ("existence", "plurality"):
            assert scores[f"{metric}/{requirement},none"] > chance + 0.3, (metric, requirement)
        assert scores[f"{metric}/mean,none"] < 1, "a model that is always right shows nothing"
    again = cli("demo-model", "--out", str(model), cold=True)
    assert again.returncode == 0, again.stderr[-2000:]
    assert "already holds this model" in again.stdout
    assert "training" not in again.stderr, "a second run does not train"
