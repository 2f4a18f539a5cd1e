"""What four commands print at 80 columns, for every benchmark, from made-up results.

``snapshots`` holds some of it, to be read. To write it anew after a change, and to look at it:
``LM_EVAL_EXT_SNAPSHOTS=write pytest tests/terminal``.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.results_files import write_files

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.cli.task_list import lines, matching, task_rows
from lm_eval_ext.compare.command import run
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.metrics import Document, Metrics, metric_entry
from lm_eval_ext.results.grid import text as as_text
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.query import ScoreQuery
from lm_eval_ext.results.show import tables
from lm_eval_ext.stats.table import Row

pytestmark = pytest.mark.slow

WIDTH = 80
WRITE = os.environ.get("LM_EVAL_EXT_SNAPSHOTS") == "write"
SNAPSHOTS = Path(__file__).parent / "snapshots"
MODELS = {
    "Qwen2.5-72B-Instruct, long prompts": 0.9,
    "Llama-3.3-70B": 0.7,
    "small [w_0] model": 0.0,
}
TASKS = {
    "cogs": "cogs_overestimation_tokens",
    "conceptual": "conceptual_glue",
    "diner": "diner_name_tmcd",
    "discourse_entities": "discourse_entities_single",
    "lieder": "lieder_two",
    "magnifico": "magnifico_dialogue",
    "slog": "slog_test",
}
"""Of each benchmark one that has published values."""

KEPT = ("cogs", "conceptual", "diner", "lieder", "magnifico")
PARTS = {"lieder": "requirement,family", "magnifico": "form"}


def rows(card: Card, drawn: random.Random, skill: float) -> Iterator[Row]:
    """For each of the card's metrics the rows that it needs, with a value of every facet."""
    facets = {facet: f"a {facet}" for facet in card.facets}
    for name in card.metrics:
        question = card.question_of(name)
        measure = question.measure
        own = {**facets, **{facet: values[0] for facet, values in question.filter.items()}}
        weighted = [{measure.facet: value} for value in measure.weights]
        for more in weighted or [{}, measure.shared]:
            first, *others = measure.value
            right = float(drawn.random() < skill)
            yield {**own, **more, first: right, **dict.fromkeys(others, 1.0)}


def write(folder: Path, card: Card, model: str, skill: float) -> None:
    """A model's results on a benchmark's task, with all metrics of the card, and samples."""
    task, drawn = TASKS[card.name], random.Random(model)
    metrics = Metrics({name: card.question_of(name) for name in card.metrics})
    scored = [
        Document(str(number), (f"cluster {number % 8}",), list(rows(card, drawn, skill)))
        for number in range(24)
    ]
    samples = [
        {"doc": {"id": one.id, **dict.fromkeys(card.item, "x"), card.cluster.column: cluster},
         "rows": one.rows, "metrics": ["rows"], "doc_hash": one.id}
        for one in scored
        for cluster in one.clusters
    ]  # fmt: skip
    write_files(
        folder, model, task,
        figures={f"{name},none": value(scored) for name, value in metrics.aggregation().items()},
        entries=[metric_entry(*named) for named in metrics.questions.items()],
        metadata={"intervals": metrics.intervals(["none"])}, samples=samples,
        size=24,
    )  # fmt: skip
    (folder / "model.yaml").write_text(yaml.safe_dump({"display_name": model}))


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three models on a task of each benchmark: by benchmark, then by model."""
    folder = tmp_path_factory.mktemp("every")
    for name, card in cards().items():
        for place, (model, skill) in enumerate(MODELS.items()):
            write(folder / name / str(place), card, model, skill)
    return folder


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def check(text: str, keep: str = "") -> None:
    """No line is too wide but signatures, which are to be copied; the rest is what is kept."""
    stable = [line.rstrip() for line in text.splitlines() if "|docs:" not in line]
    assert not [line for line in stable if len(line) > WIDTH]
    if keep:
        file = SNAPSHOTS / f"{keep}.txt"
        if WRITE:
            file.write_text("\n".join(stable) + "\n", encoding="utf-8")
        assert file.read_text(encoding="utf-8").splitlines() == stable


def shown(*folders: Path, **asked: Any) -> str:
    return as_text(tables(read_models(folders, joined=True), ScoreQuery(**asked), ()))


@pytest.mark.parametrize("benchmark", cards())
def test_show_and_compare(every: Path, benchmark: str) -> None:
    folders, kept = sorted((every / benchmark).iterdir()), benchmark in KEPT
    task = TASKS[benchmark]
    text = as_text(tables(read_models(folders, joined=True), ScoreQuery(), [task]))
    check(text, f"show-{task}" * kept)
    headline = cards()[benchmark].headline_of(cards()[benchmark].metrics)
    _, _, _, first, value, *_ = text.splitlines()
    assert first.split()[0] == headline, "the headline comes first"
    assert ("%" in value) == headline.startswith("relative_performance")
    assert all(model.split()[0] in text for model in MODELS)
    if parts := PARTS.get(benchmark):
        check(shown(*folders, by=parts), f"show-{task}-{parts.replace(',', '-')}")
    text, refused = run(folders, ScoreQuery(), tasks=task)
    assert not refused
    check(text, f"compare-{task}" * kept)
    check(run(folders[:2], ScoreQuery(metrics=tuple(cards()[benchmark].metrics)), tasks=task)[0])


def test_the_overview(every: Path) -> None:
    text = shown(*(every / benchmark / str(place) for benchmark in cards() for place in range(3)))
    check(text, "show")
    assert all(benchmark in text for benchmark in cards())


def test_tasks() -> None:
    overview, all_of_them = "\n".join(lines(task_rows(), overview=True)), matching("*")
    check(overview.replace("available", "to fetch "), "tasks")
    assert len(overview.splitlines()) < 60
    text = "\n".join(lines(all_of_them))
    check(text)
    assert all(f" {row.task} " in text for row in task_rows()), "no name is cut off"
    assert "[w_0] to [w_20]" in text
    assert {row.task for row in matching("cogs_mini")} >= {"cogs_mini", "cogs_mini_gen"}
    assert {row.benchmark for row in matching("diner")} == {"diner"}
    assert len(matching("*_mini")) == len(cards())
    with pytest.raises(OptionError, match="did you mean lieder_mini"):
        matching("lieder_mni")
