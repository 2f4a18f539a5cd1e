"""Results of three models on LIEDER's experiment 1, made up."""

from pathlib import Path

import pytest
from plots_names import OF_DOUBT, OTHER, TASK, TESTED
from support.results_files import rows, write_run

from lm_eval_ext.compare.reading import Model, read_models

RIGHT = {"alpha": 15, "beta": 13, "gamma": 2}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alpha and beta cannot be told apart on TESTED, gamma is worse; the others have no samples."""
    place = tmp_path_factory.mktemp("plots")
    for name, right in RIGHT.items():
        more = {
            f"{OTHER},none": right / 20,
            f"{OTHER}_ci95_low,none": 0.05,
            f"{OTHER}_ci95_high,none": 0.95,
        }
        if name == "alpha":
            more[f"{OF_DOUBT},none"] = 0.25
        write_run(place / name, name, TASK, rows(16, right), metric=TESTED, more=more)
    return place


@pytest.fixture(scope="session")
def models(folder: Path) -> list[Model]:
    return read_models([folder])
