"""The registry of benchmarks names what is there, and nothing else."""

import pytest

from lm_eval_ext.cards import cards
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.registry import BENCHMARKS, Benchmark, recipe_files
from lm_eval_ext.runs.tasks import our_task_manager
from lm_eval_ext.task_folder import tasks_folder
from lm_eval_ext.training.recipe import read_recipe


def test_every_task_file_and_package_is_registered() -> None:
    """A benchmark that is forgotten here would have no card, no figures and no view."""
    from pathlib import Path

    import lm_eval_ext.benchmarks

    (folder,) = lm_eval_ext.benchmarks.__path__
    packages = {file.parent.name for file in Path(folder).glob("*/__init__.py")}
    task_files = {file.stem for file in Path(tasks_folder()).glob("*.yaml")}
    assert set(BENCHMARKS) == packages == task_files == set(cards())
    assert list(BENCHMARKS) == sorted(BENCHMARKS)


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)
def test_its_parts_are_where_it_says(benchmark: Benchmark) -> None:
    """No part is declared that is missing, and none is there that is not declared."""
    assert benchmark.figures_file.is_file()
    assert benchmark.has_view == (benchmark.folder / "view.py").is_file()
    assert benchmark.has_recipes == any((benchmark.folder / "recipes").glob("*.yaml"))
    assert benchmark.has_recordings == (benchmark.folder / "recordings.py").is_file()
    recordings = benchmark.recordings()
    if recordings is not None:
        assert callable(recordings.convert)
    view = benchmark.view()
    if view is not None:
        assert callable(view.documents)
        assert callable(view.answers)


def test_recipes_have_names_of_their_own() -> None:
    """A recipe that two folders have would hide one of them."""
    names = ["demo", "demo_short"]
    for benchmark in BENCHMARKS.values():
        names += [file.stem for file in (benchmark.folder / "recipes").glob("*.yaml")]
    assert sorted(recipe_files()) == sorted(names)
    assert read_recipe("demo")


@pytest.mark.parametrize("name", ["lieder_mini", "cogs_mini_id", "slog_mini"])
def test_the_loading_function_has_the_benchmarks_prefix(name: str) -> None:
    """A task file without a card finds the card by the loading function's prefix."""
    task = our_task_manager().load([name])["tasks"][name]
    loader = task.config.custom_dataset
    assert isinstance(loader, Loader)
    assert loader.prefix.rstrip("_") in BENCHMARKS
