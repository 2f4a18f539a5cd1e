"""What four commands print at 80 columns, for every task that ships, from made-up results.

``snapshots`` holds some of it, to be read. To write it anew after a change, and to look at it:
``LM_EVAL_EXT_SNAPSHOTS=write pytest tests/terminal``.
"""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import every_task
import pytest
from lm_eval import utils
from rich.console import Console
from rich.text import Text

from lm_eval_ext.cards import cards
from lm_eval_ext.cli.task_list import lines, matching, task_rows
from lm_eval_ext.compare.command import run
from lm_eval_ext.compare.report import Settings
from lm_eval_ext.errors import OptionError
from lm_eval_ext.results import show
from lm_eval_ext.results.files import find
from lm_eval_ext.results.printed import shorter

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


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three models on every task: by benchmark, then by model."""
    folder = tmp_path_factory.mktemp("every")
    for name, card in cards().items():
        for place, (model, skill) in enumerate(MODELS.items()):
            every_task.write(folder / name / str(place), model, list(card.tasks), skill)
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


def shown(folder: Path, *, every_metric: bool = False) -> Iterator[tuple[str, str]]:
    """What ``show`` prints of each task."""
    (results,) = find(folder)
    for task in results.tasks:
        out = io.StringIO()
        console = Console(file=out, width=WIDTH, color_system=None)
        for part in show.tables(results, every_metric=every_metric, only=[task]):
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
        yield task, out.getvalue()


@pytest.mark.parametrize("benchmark", cards())
def test_show(every: Path, benchmark: str) -> None:
    card = cards()[benchmark]
    for task, text in shown(every / benchmark / "2"):
        check_width(text)
        own = text.partition("for comparison")[0]
        headings, _, first, *_ = own[own.index("\nmetric") + 1 :].splitlines()
        headline = card.headline_of(one["metric"] for one in every_task.metric_list(task))
        assert first.startswith(f"* {headline} ") and "0.0" in first, "the headline comes first"
        assert "[" in first, "and has an interval, though it is 0"
        assert ("percent" in headings) == headline.endswith("relative_performance")
        rows = [line for line in own.splitlines() if line.startswith(("* ", "  "))]
        rows = [line for line in rows if line.rstrip()[-1:] in tuple("]0123456789")]
        assert len(rows) <= show.MOST_ROWS
        assert "small [w_0] model" in text, "its display name, brackets included"
        if task in READ:
            keep(f"show-{task}", text)
    for _, text in shown(every / benchmark / "1", every_metric=True):
        check_width(text)
        assert "with --all" not in text


@pytest.mark.parametrize("benchmark", cards())
def test_lm_evals_own_table(every: Path, benchmark: str) -> None:
    (file,) = (every / benchmark / "2").glob("results_*.json")
    content = json.loads(file.read_text())
    # lm_eval takes long to draw a table, and some tasks differ in their names only.
    different = {
        tuple(one["metric"] for one in config["metric_list"]): task
        for task, config in content["configs"].items()
    }
    with shorter("results"):
        for task in {*different.values(), *READ} & content["results"].keys():
            of_task = {**content, "results": {task: content["results"][task]}}
            table = utils.make_table(of_task)
            rows = [line for line in table.splitlines() if line.startswith("|")]
            rows = [line for line in rows if "Version" not in line and "---" not in line]
            assert "|* " in rows[0] and "[0.0" in rows[0], "the headline comes first"
            assert len(rows) <= show.MOST_ROWS
            if task in READ:
                keep(f"lm_eval-{task}", table)


@pytest.mark.parametrize("benchmark", cards())
def test_compare(every: Path, benchmark: str) -> None:
    folders = sorted((every / benchmark).iterdir())
    text, refused = run(folders, Settings())
    assert not refused
    check_width(text)
    tasks = cards()[benchmark].tasks
    two, _ = run(folders[:2], Settings(metrics=("*",)), tasks=next(iter(tasks)))
    check_width(two)
    # One metric each: models, pairs of them, published results, headings and notes.
    published = sum(len(one.tasks) for one in cards()[benchmark].references)
    assert len(text.splitlines()) < 32 * len(tasks) + published
    for task in READ:
        if task in tasks:
            keep(f"compare-{task}", run(folders, Settings(), tasks=task)[0])


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
