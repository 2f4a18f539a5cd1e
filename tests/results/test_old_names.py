"""Every name that a metric had before scores became a table, and the question that gives it.

``docs/old_names.csv`` lists them. ``fixtures/old_figures`` holds what the metrics of version 0.x
were, value and interval, for answers that are made again here or recorded in shared data.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.made_answers import MadeAnswers
from support.old_names import question_behind

from lm_eval_ext.cards import cards
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import estimate, split_question

ROOT = Path(__file__).resolve().parents[2]
FIGURES = json.loads(
    gzip.decompress((ROOT / "tests" / "fixtures" / "old_figures.json.gz").read_bytes())
)
"""By run, by metric: value, low, high; of MAGNIFICo also verdicts, and documents that are gone."""

CONCEPT_HAD_TO_HAVE = 10
"""Samples, or its old metrics were N/A. Now each concept has a figure, with its interval."""


def recorded(run: str, task: str) -> Any:
    """Answer the documents of a run again; return lm-eval's results."""
    from lm_eval.evaluator import simple_evaluate

    from lm_eval_ext.runs.tasks import our_task_manager

    group, _, name = run.partition("/")
    metadata = {"conceptual_template": "all"} if group == "templates" else {}
    options: dict[str, Any] = {"model": MadeAnswers(int(name[-1]) if name[-1].isdigit() else 0)}
    if group == "lieder":
        file = (
            Path(os.environ["LM_EVAL_EXT_DATA"]) / "lieder" / "recorded" / f"{name}.responses.jsonl"
        )
        options = {"model": "recorded", "model_args": {"path": str(file)}}
    if group == "templates":
        trial = json.loads((ROOT / "tests" / "fixtures" / "old_trial.json").read_text())
        options["samples"] = {task: trial}  # those that --limit 120 took then
    return simple_evaluate(
        tasks=[task], task_manager=our_task_manager(metadata=metadata), metadata=metadata,
        bootstrap_iters=0, log_samples=True, **options,
    )  # fmt: skip


STATUSES = {
    "c": "correct",
    "w": "wrong",
    "e": "prediction_error",
    "t": "prediction_timeout",
    "l": "prediction_too_large",
}
"""Verdicts by their letter in the figures' file."""


def rows_of(run: str, task: str) -> Any:
    """Return the long table of a run; that of MAGNIFICo has the recorded verdicts."""
    from support.tasks import load_task

    from lm_eval_ext.benchmarks.magnifico import score
    from lm_eval_ext.results.files import ResultsFile, Run
    from lm_eval_ext.results.table import rows
    from lm_eval_ext.stats.table import frame

    if "verdicts" not in FIGURES[run]:
        content = recorded(run, task)
        logged = []
        for sample in content["samples"][task]:
            arguments = {}
            for number, request in enumerate(sample["arguments"]):
                arguments[number] = dict(enumerate(request))
            logged.append(("", {**sample, "arguments": arguments}))
        with patch("lm_eval_ext.results.table.samples", lambda *_: logged):
            return rows(Run(ResultsFile(Path(), content), task))
    verdicts = FIGURES[run]["verdicts"]
    documents = []
    for doc in FIGURES[run].get("documents") or load_task(task).dataset["test"]:
        name = doc["id"]
        if name not in verdicts:
            continue
        codes = verdicts[name]
        statuses: dict[str, Any] = {}
        for database, code in zip(score.DATABASES, codes, strict=False):
            statuses[database] = STATUSES[code]
        scored = score.rows(doc, statuses, query_found=codes[2] == "q")
        documents.append((name, name, (doc["db_id"].casefold(),), scored))
    return frame(documents)


@pytest.mark.parametrize("run", [run for run in FIGURES if "_icl_" not in run])
def test_every_old_metric_is_a_question_with_the_same_value_and_interval(
    run: str, request: pytest.FixtureRequest
) -> None:
    """COGS in context asks other prompts since 1.3; its names are those of the other COGS runs."""
    if not run.startswith("mini/"):
        request.getfixturevalue("real_data")
    task = FIGURES[run]["task"]
    table = rows_of(run, task)
    facets = {name: set(table[name].dropna()) for name in table if table[name].dtype == object}
    benchmark = task.partition("_")[0]
    wrong = []
    metrics = FIGURES[run]["metrics"].items()
    step = 1 if os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1" else max(1, len(metrics) // 20)
    # Each run takes other metrics, so that the runs of one task together have more of its names.
    start = list(FIGURES).index(run) % step
    for old, expected in list(metrics)[start::step]:
        if old.startswith("is_best@"):
            best_template(table, old.removeprefix("is_best@"), expected[0])
            continue
        score = estimate(table, question_behind(benchmark, old, facets))
        if benchmark == "conceptual" and ":" in old and expected[0] is None:
            assert score.documents < CONCEPT_HAD_TO_HAVE, old
            continue
        values = (score.value, score.low, score.high)
        if values != pytest.approx(tuple(expected), rel=1e-9, abs=1e-12):
            wrong.append((old, values, expected))
    assert not wrong, f"{len(wrong)}: {wrong[:12]}"


def best_template(table: Any, template: str, is_best: float) -> None:
    """Assert that the template has the best score of all exactly if it is the best."""
    measure = cards()["conceptual"].question_of("score/concept").measure
    by_template = Question(measure, {"demonstrations": ("concept",)}, ("template",))
    values = {}
    for facets, question in split_question(table, by_template):
        values[facets["template"]] = estimate(table, question).value
    best = max(value for value in values.values() if value is not None)
    assert (values[template] == best) == bool(is_best)
