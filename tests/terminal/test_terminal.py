"""The output of four commands at 80 columns, for every benchmark, from made-up results.

``snapshots`` holds some of it, to be read. To write it anew after a change, and to look at it:
``LM_EVAL_EXT_SNAPSHOTS=write pytest tests/terminal``.
"""

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

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
"""A task of each benchmark that has published values."""

WITH_SNAPSHOT = ("cogs", "conceptual", "diner", "lieder", "magnifico")
FACETS = {"lieder": "requirement,family", "magnifico": "form"}
"""Facets by which scores of a benchmark are divided."""

DOCUMENTS = 24


def rows(card: Card, rng: random.Random, skill: float) -> Iterator[Row]:
    """Yield, for each of the card's metrics, the rows it needs, with a value of every facet."""
    facets = {facet: f"a {facet}" for facet in card.facets}
    for name in card.metrics:
        question = card.question_of(name)
        measure = question.measure
        facets_of_metric = {facet: values[0] for facet, values in question.filter.items()}
        facets_of_rows = [{}, measure.shared]
        if measure.weights:
            facets_of_rows = [{measure.facet: value} for value in measure.weights]
        for facets_of_row in facets_of_rows:
            numerator, *denominators = measure.value
            values = {numerator: float(rng.random() < skill), **dict.fromkeys(denominators, 1.0)}
            yield {**facets, **facets_of_metric, **facets_of_row, **values}


def write(folder: Path, card: Card, model: str, skill: float) -> None:
    """Write a model's results on a benchmark's task, with all metrics of the card, and samples."""
    task = TASKS[card.name]
    rng = random.Random(model)
    metrics = Metrics({name: card.question_of(name) for name in card.metrics})
    documents = []
    samples = []
    for number in range(DOCUMENTS):
        name = str(number)
        cluster = f"cluster {number % 8}"
        document = Document(name, (cluster,), list(rows(card, rng, skill)))
        documents.append(document)
        columns = {"id": name, **dict.fromkeys(card.item, "x"), card.cluster.column: cluster}
        samples.append(
            {"doc": columns, "rows": document.rows, "metrics": ["rows"], "doc_hash": name}
        )
    figures = {}
    for metric, aggregate in metrics.aggregation().items():
        figures[f"{metric},none"] = aggregate(documents)
    write_files(
        folder,
        model,
        task,
        figures=figures,
        entries=[metric_entry(name, question) for name, question in metrics.questions.items()],
        metadata={"intervals": metrics.intervals(["none"])},
        samples=samples,
        size=DOCUMENTS,
    )
    (folder / "model.yaml").write_text(yaml.safe_dump({"display_name": model}))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three models on a task of each benchmark: by benchmark, then by model."""
    folder = tmp_path_factory.mktemp("results")
    for name, card in cards().items():
        for number, (model, skill) in enumerate(MODELS.items()):
            write(folder / name / str(number), card, model, skill)
    return folder


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def check(text: str, snapshot: str = "") -> None:
    """Assert that lines fit the width, and that all but signatures agree with the snapshot.

    Signatures and commands are to be copied, and so they are not broken.
    """
    stable = [line.rstrip() for line in text.splitlines() if "|docs:" not in line]
    for line in stable:
        assert len(line) <= WIDTH or "lm-eval-ext " in line, line
    if snapshot:
        file = SNAPSHOTS / f"{snapshot}.txt"
        if WRITE:
            file.write_text("\n".join(stable) + "\n", encoding="utf-8")
        assert file.read_text(encoding="utf-8").splitlines() == stable


def show(folders: Sequence[Path], query: ScoreQuery, tasks: Sequence[str] = ()) -> str:
    """Return the output of ``show``."""
    return as_text(tables(read_models(folders, joined=True), query, tasks))


@pytest.mark.parametrize("benchmark", cards())
def test_show_has_the_headline_first_and_every_model(results: Path, benchmark: str) -> None:
    """The headline comes first, and every model has a name."""
    folders = sorted((results / benchmark).iterdir())
    task = TASKS[benchmark]
    text = show(folders, ScoreQuery(), [task])
    check(text, f"show-{task}" if benchmark in WITH_SNAPSHOT else "")
    card = cards()[benchmark]
    headline = card.headline_of(card.metrics)
    _, _, _, metric_line, value_line, *_ = text.splitlines()
    assert metric_line.split()[0] == headline
    assert ("%" in value_line) == headline.startswith("relative_performance")
    for model in MODELS:
        assert model.split()[0] in text


@pytest.mark.parametrize(("benchmark", "facets"), FACETS.items(), ids=FACETS)
def test_show_divides_a_score_by_facets(results: Path, benchmark: str, facets: str) -> None:
    folders = sorted((results / benchmark).iterdir())
    text = show(folders, ScoreQuery(by=facets))
    check(text, f"show-{TASKS[benchmark]}-{facets.replace(',', '-')}")


@pytest.mark.parametrize("benchmark", cards())
def test_compare_fits_a_terminal(results: Path, benchmark: str) -> None:
    folders = sorted((results / benchmark).iterdir())
    task = TASKS[benchmark]
    text, refused = run(folders, ScoreQuery(), tasks=task)
    assert not refused
    text = text.replace(str(results / benchmark), "RESULTS")
    check(text, f"compare-{task}" if benchmark in WITH_SNAPSHOT else "")
    all_metrics = ScoreQuery(metrics=tuple(cards()[benchmark].metrics))
    two_models, _ = run(folders[:2], all_metrics, tasks=task)
    check(two_models)


def test_the_overview_names_every_benchmark(results: Path) -> None:
    folders = []
    for benchmark in cards():
        folders += sorted((results / benchmark).iterdir())
    text = show(folders, ScoreQuery())
    check(text, "show")
    for benchmark in cards():
        assert benchmark in text


def test_the_list_of_tasks_cuts_no_name_off() -> None:
    overview = "\n".join(lines(task_rows(), overview=True))
    check(overview.replace("available", "to fetch "), "tasks")
    assert len(overview.splitlines()) < 60
    text = "\n".join(lines(matching("*")))
    check(text)
    for row in task_rows():
        assert f" {row.task} " in text, "no name is cut off"
    assert "[w_0] to [w_20]" in text


def test_tasks_are_found_by_parts_of_their_names() -> None:
    assert {row.task for row in matching("cogs_mini")} >= {"cogs_mini", "cogs_mini_gen"}
    assert {row.benchmark for row in matching("diner")} == {"diner"}
    assert len(matching("*_mini")) == len(cards())
    with pytest.raises(OptionError, match="did you mean lieder_mini"):
        matching("lieder_mni")
