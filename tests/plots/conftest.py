"""Results of two models on embedded tasks, and of a third on one of them."""

from pathlib import Path
from typing import Any

import pytest
from support import logged
from support.made_answers import MadeAnswers

from lm_eval_ext.results.models import Model, read_models

TASKS = ["lieder_mini", "magnifico_mini", "conceptual_mini"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, run_cache: Path) -> Path:
    place = tmp_path_factory.mktemp("plots")
    environment: Any = pytest.MonkeyPatch()
    environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
    for seed, name in enumerate(("alpha", "beta", "gamma")):
        tasks = TASKS if name != "gamma" else TASKS[:1]
        logged.evaluate(place / name, MadeAnswers(seed), tasks,
                        config={"model_args": {"seed": seed}}, name=name)  # fmt: skip
    environment.undo()
    return place


@pytest.fixture(scope="session")
def models(folder: Path) -> list[Model]:
    return read_models([folder])
