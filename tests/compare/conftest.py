"""Three made-up runs on embedded tasks; two models have the same true accuracy."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.asking import run_in
from support.made_runs import make

from lm_eval_ext.plots.figures import Figure
from lm_eval_ext.results.table import samples_file

TASKS = ("lieder_mini", "cogs_mini_gen", "cogs_mini_id", "cogs_mini_overestimation")
SLOWER = ("diner_mini_name", "conceptual_mini", "magnifico_mini")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, run_cache: Path) -> Path:
    """A folder with the runs ``good``, ``poor`` and ``same`` (as good, on fewer tasks)."""
    folder = tmp_path_factory.mktemp("made")
    all_tasks = (*TASKS, *SLOWER)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        make(folder / "good", all_tasks, seed=1, skill=0.9, name="good")
        make(folder / "poor", all_tasks, seed=2, skill=0.4, name="poor")
        make(folder / "same", TASKS, seed=3, skill=0.9, name="same")
    return folder


@pytest.fixture
def changed(runs: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the run ``good`` whose results and samples a test changes."""

    def change(
        edit_results: Callable[[dict[str, Any]], None] | None = None,
        edit_row: Callable[[int, dict[str, Any]], dict[str, Any] | None] | None = None,
        task: str = "lieder_mini",
    ) -> Path:
        folder = tmp_path / "changed"
        shutil.copytree(runs / "good", folder)
        run = run_in(folder, task)
        path = run.file.path
        if edit_results:
            content = json.loads(path.read_text())
            edit_results(content)
            path.write_text(json.dumps(content))
        if edit_row:
            file = samples_file(run)
            lines = []
            for number, line in enumerate(file.read_text().splitlines()):
                edited = edit_row(number, json.loads(line))
                if edited is not None:
                    lines.append(json.dumps(edited) + "\n")
            file.write_text("".join(lines))
        return folder

    return change


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a page's figures empty: drawing takes ten times as long as all else."""
    monkeypatch.setattr(Figure, "svg", lambda *_, **__: "")
