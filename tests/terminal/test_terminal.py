"""What four commands print at 80 columns, for every task that ships, from made-up results.

``snapshots`` holds some of it, to be read. To write it anew after a change, and to look at it:
``LM_EVAL_EXT_SNAPSHOTS=write pytest tests/terminal``.
"""

import os
from pathlib import Path
from typing import Any

import every_task
import pytest

from lm_eval_ext.cards import cards
from lm_eval_ext.cli.task_list import lines, matching, task_rows
from lm_eval_ext.compare.command import run
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.ask import Asked
from lm_eval_ext.results.grid import text as as_text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.show import tables

pytestmark = pytest.mark.slow

WIDTH = 80
WRITE = os.environ.get("LM_EVAL_EXT_SNAPSHOTS") == "write"
SNAPSHOTS = Path(__file__).parent / "snapshots"
MODELS = {
    "Qwen2.5-72B-Instruct, long prompts": 0.9,
    "Llama-3.3-70B": 0.7,
    "small [w_0] model": 0.0,
}
READ = (
    "lieder_two", "cogs_overestimation_tokens", "conceptual_glue", "magnifico_dialogue",
    "diner_name_tmcd",
)  # fmt: skip
"""One task of each benchmark, whose output is kept."""


def chosen(benchmark: str) -> list[str]:
    """Tasks with other metrics than all before, the representative, those whose output is kept."""
    tasks = sorted(cards()[benchmark].tasks, key=len, reverse=True)
    alike: dict[tuple[str, ...], str] = {}
    for task in tasks:
        alike.setdefault(tuple(every_task.metric_list(task)), task)
    named = {*alike.values(), *READ, *cards()[benchmark].representative}
    return [task for task in cards()[benchmark].tasks if task in named]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three models on the tasks of :func:`chosen`: by benchmark, then by model."""
    folder = tmp_path_factory.mktemp("every")
    for name in cards():
        for place, (model, skill) in enumerate(MODELS.items()):
            every_task.write(folder / name / str(place), model, chosen(name), skill)
    return folder


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def is_signature(line: str) -> bool:
    """Signatures stay on one line, to be copied."""
    return "|docs:" in line


def check_width(text: str) -> None:
    wide = [line for line in text.splitlines() if len(line) > WIDTH and not is_signature(line)]
    assert not wide


def keep(name: str, text: str) -> None:
    """Compares with what is kept; signatures depend on versions."""
    file = SNAPSHOTS / f"{name}.txt"
    stable = "\n".join(line.rstrip() for line in text.splitlines() if not is_signature(line))
    if WRITE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(stable + "\n", encoding="utf-8")
    assert file.read_text(encoding="utf-8") == stable + "\n"


def shown(*folders: Path, tasks: Any = (), **asked: Any) -> str:
    found = tables(read_models(folders, joined=True), Asked(**asked), tasks)
    return as_text(found)


@pytest.mark.parametrize("benchmark", cards())
def test_show(every: Path, benchmark: str) -> None:
    folders = sorted((every / benchmark).iterdir())
    for task in chosen(benchmark):
        text = shown(*folders, tasks=[task])
        check_width(text)
        headline = cards()[benchmark].headline_of(every_task.metric_list(task))
        _, _, _, first, value, *_ = text.splitlines()
        assert first.startswith(f"{headline} "), "the headline comes first"
        assert ("%" in value) == headline.startswith("relative_performance")
        for model in MODELS:
            assert model.split()[0] in text
        if task in READ:
            keep(f"show-{task}", text)


def test_the_overview(every: Path) -> None:
    """Three models on five benchmarks."""
    folders = [every / benchmark / str(place) for benchmark in cards() for place in range(3)]
    text = shown(*folders)
    check_width(text)
    for benchmark in cards():
        assert benchmark in text
    assert len(text.splitlines()) < 60
    keep("show", text)


@pytest.mark.parametrize(
    ("task", "by"), [("lieder_two", "requirement,family"), ("magnifico_dialogue", "form")]
)
def test_parts(every: Path, task: str, by: str) -> None:
    folders = [every / task.partition("_")[0] / str(place) for place in range(3)]
    text = shown(*folders, tasks=[task], by=by)
    check_width(text)
    keep(f"show-{task}-{by.replace(',', '-')}", text)


@pytest.mark.parametrize("benchmark", cards())
def test_compare(every: Path, benchmark: str) -> None:
    folders = sorted((every / benchmark).iterdir())
    text, refused = run(folders, Asked(), tasks="*")
    assert not refused
    check_width(text)
    tasks = chosen(benchmark)
    first = tasks[0]
    every_metric = tuple(every_task.metric_list(first))
    two, _ = run(folders[:2], Asked(metrics=every_metric), tasks=first)
    check_width(two)
    published = sum(len(one.tasks) for one in cards()[benchmark].references)
    assert len(text.splitlines()) < 32 * len(tasks) + published
    for task in READ:
        if task in tasks:
            keep(f"compare-{task}", run(folders, Asked(), tasks=task)[0])


def test_tasks() -> None:
    overview, all_of_them = "\n".join(lines(task_rows(), overview=True)), matching("*")
    keep("tasks", overview.replace("available", "to fetch "))
    assert len(overview.splitlines()) < 60
    text = "\n".join(lines(all_of_them))
    check_width(text)
    assert all(f" {row.task} " in text for row in task_rows()), "no name is cut off"
    assert "[w_0] to [w_20]" in text
    assert {row.task for row in matching("cogs_mini")} >= {"cogs_mini", "cogs_mini_gen"}
    assert {row.benchmark for row in matching("diner")} == {"diner"}
    assert len(matching("*_mini")) == len(cards())
    with pytest.raises(OptionError, match="did you mean lieder_mini"):
        matching("lieder_mni")
