"""Which run counts, and questions to samples: facets, units, errors, what is best."""

import json
from collections.abc import Callable, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from support.asking import run_in
from support.results_files import answered_rows, write_run

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.overview import overview, representatives
from lm_eval_ext.results.query import ScoreQuery, estimates
from lm_eval_ext.results.table import rows


def edit(file: Path, **changes: Mapping[str, object]) -> None:
    """Update keys of a results file; ``n_samples`` stands for ``n-samples``."""
    content = json.loads(file.read_text())
    for key, change in changes.items():
        name = "n-samples" if key == "n_samples" else key
        content[name].update(change)
    file.write_text(json.dumps(content))


def write_cogs_run(
    folder: Path,
    model: str,
    date: str,
    *,
    version: str,
    right: int,
    count: int,
    limit: int | None = None,
) -> None:
    """Write a run of cogs_mini_gen with so many right answers, of all documents or of some."""
    file = write_run(folder, model, "cogs_mini_gen", answered_rows(count, right), date=date)
    counts = {"original": 200 if limit else count, "effective": count}
    edit(file, versions={"cogs_mini_gen": version}, config={"limit": limit},
         n_samples={"cogs_mini_gen": counts})  # fmt: skip


class WrittenRun(NamedTuple):
    """A run of a case: its day, the task's version, and how many of its documents are right."""

    day: int
    version: str
    right: int
    documents: int
    limit: int | None = None


WHOLE = WrittenRun(day=1, version="1.1", right=100, documents=200)
TRIAL = WrittenRun(day=5, version="2.0", right=5, documents=5, limit=5)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param(
            [WHOLE._replace(day=2), WrittenRun(day=1, version="2.0", right=19, documents=190)],
            0.1,
            id="newest version, with fewer documents",
        ),
        pytest.param(
            [
                WrittenRun(day=2, version="2.0", right=19, documents=190),
                WrittenRun(day=1, version="10.0", right=38, documents=190),
            ],
            0.2,
            id="10 is newer than 2",
        ),
        pytest.param([WHOLE, TRIAL], 0.5, id="a trial never hides a whole run"),
        pytest.param([WHOLE, WHOLE._replace(day=3, right=20), TRIAL], 0.1, id="newest run"),
        pytest.param(
            [WHOLE, WHOLE._replace(day=3, right=20, limit=300)],
            0.1,
            id="a limit that takes all is no trial",
        ),
    ],
)
def test_the_run_that_counts_is_the_same_in_any_order_of_folders(
    tmp_path: Path, runs: list[WrittenRun], expected: float
) -> None:
    folders = []
    for number, run in enumerate(runs):
        folder = tmp_path / str(number)
        write_cogs_run(
            folder, "m", f"2026-01-0{run.day}T00-00-00", version=run.version, right=run.right,
            count=run.documents, limit=run.limit,
        )  # fmt: skip
        folders.append(folder)
    for paths in ([tmp_path], *permutations(folders)):
        (model,) = read_models(paths, joined=True)
        scores = model.runs["cogs_mini_gen"].scores
        assert scores["exact_match"].value == expected, paths


def test_rewritten_samples_are_read_again(tmp_path: Path) -> None:
    write_cogs_run(tmp_path, "m", "2026-01-01T00-00-00", version="1.1", right=3, count=4)
    run = run_in(tmp_path, "cogs_mini_gen")
    assert rows(run)["exact_match"].sum() == 3
    write_cogs_run(tmp_path, "m", "2026-01-01T00-00-00", version="1.1", right=1, count=4)
    assert rows(run)["exact_match"].sum() == 1


def a_run(tmp_path: Path) -> Run:
    samples = [
        {**row, "facets": {"type": "ab"[number % 2], "kind": "lexical"}}
        for number, row in enumerate(answered_rows(20, 10))
    ]
    write_run(tmp_path, "m", "cogs_mini_gen", samples)
    return run_in(tmp_path, "cogs_mini_gen")


def figures(run: Run, **options: Any) -> Any:
    query = ScoreQuery(**options)
    ((_, question),) = query.questions(run)
    scores = estimates(run, question, query.filter)
    return pd.DataFrame({**facets, **vars(score)} for facets, score in scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "tpye"}, "cogs has no facet tpye; available: type, kind, substitution"),
        ({"where": ("type",)}, "--where type: give each facet once, as FACET=VALUE"),
        ({"where": ("type=a,kind=lexical",)}, "--where type=a,kind=lexical: give each facet once"),
        ({"where": ("type=a", "type=b")}, "--where type=b: give each facet once"),
        ({"where": ("type=c",)}, "cogs_mini_gen: no type c; available: a, b"),
        ({"where": ("type=a,c",)}, "cogs_mini_gen: no type c; available: a, b"),
        (
            {"where": ("kind=lexical",), "metrics": ("exact_match/lexical",)},
            "exact_match/lexical is about one kind already; give --metric exact_match",
        ),
        ({"by": "substitution"}, "cogs_mini_gen: its samples have no substitution"),
        ({"metrics": ("difference",)}, "cogs_mini_gen: its samples have no substitution"),
        ({"metrics": ("f1",)}, "cogs_mini_gen has no metric f1; available: difference, equivalent"),
        ({"value": "length"}, "no values length; available: exact_match"),
    ],
)
def test_a_query_without_answer_is_one_line_with_legal_values(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as raised:
        figures(a_run(tmp_path), **options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_value_that_an_error_lists_can_be_typed(tmp_path: Path) -> None:
    """The card knows few values of a facet, and a shell does not take all of their signs."""
    samples = []
    for number, row in enumerate(answered_rows(20, 10)):
        category = "north>south" if number < 10 else "east, west=both"
        samples.append({**row, "facets": {"type": category, "kind": "lexical"}})
    write_run(tmp_path, "m", "cogs_mini_gen", samples)
    run = run_in(tmp_path, "cogs_mini_gen")
    with pytest.raises(OptionError) as raised:
        figures(run, where=("type=south",))
    listed = str(raised.value).rpartition("available: ")[2].split(", ")
    assert listed == ["east- west-both", "north-south"]
    values = [figures(run, where=(f"type={value}",))["value"].item() for value in listed]
    assert values == [0.0, 1.0]


def cut_in_half(samples: Path) -> None:
    text = samples.read_text()
    samples.write_text(text[: len(text) // 2])


def replace_by_no_sample(samples: Path) -> None:
    samples.write_text('{"filter": "none"}\n')


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(cut_in_half, r"samples_.*jsonl:\d+: not JSON", id="no JSON"),
        pytest.param(
            replace_by_no_sample,
            r"samples_.*jsonl:1: not a sample that lm_eval logged",
            id="no sample",
        ),
        pytest.param(Path.unlink, "--log_samples", id="no file"),
    ],
)
def test_missing_and_broken_samples_name_the_file(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    run = a_run(tmp_path)
    (samples,) = tmp_path.glob("samples_*.jsonl")
    damage(samples)
    with pytest.raises(DataError, match=message):
        figures(run, by="type")
    assert list(figures(run)["value"]) == [0.5], "lm-eval's own metrics need no samples"


def test_gen_stands_for_cogs_and_a_foreign_task_for_itself(tmp_path: Path) -> None:
    for day, task in enumerate(("cogs_mini_gen", "cogs_unmodified_gen", "arc"), start=1):
        for model, right in (("a", 30), ("b", 5)):
            write_run(
                tmp_path / model, model, task, answered_rows(40, right), date=f"2026-01-0{day}"
            )
    models = read_models([tmp_path])
    assert representatives(models) == {"cogs": "cogs_unmodified_gen", "arc": "arc"}
    scores = overview(models)
    assert list(scores["task"]) == ["cogs_unmodified_gen", "cogs_unmodified_gen", "arc", "arc"]
    assert set(scores[scores["best"]]["model"]) == {"a"}
    assert set(scores["title"]) == {"Exact match", "exact_match"}


def test_the_headline_is_not_that_of_the_alphabetically_first_model(tmp_path: Path) -> None:
    """An older file has other metrics; the newer one's model comes later in the alphabet."""
    for model in "ab":
        write_run(tmp_path / model, model, "cogs_mini_gen", answered_rows(40, 20))
    (file,) = (tmp_path / "a").glob("results_*")
    entries = json.loads(file.read_text())["results"]["cogs_mini_gen"]
    older = {f"old/{name}": value for name, value in entries.items()}
    edit(file, configs={"cogs_mini_gen": {}}, results={"cogs_mini_gen": older})
    scores = overview(read_models([tmp_path]))
    assert list(scores["metric"]) == ["exact_match", "exact_match"]
    assert list(scores["value"].isna()) == [True, False]
    assert scores["why"][0] == "results of an older version, without exact_match"


def test_a_headline_about_a_part_is_tested_too(tmp_path: Path) -> None:
    """Its value is read under the metric's name, not the measure's."""
    facets = {"metric": "direct", "requirement": "existence", "family": "affirmative_negation"}
    metric = "direct/affirmative_negation"
    for model, right in (("a", 35), ("b", 5)):
        samples = [{**row, "facets": facets} for row in answered_rows(40, right)]
        write_run(tmp_path / model, model, "lieder_mini", samples, metric=metric)
    scores = overview(read_models([tmp_path])).set_index("model")
    assert set(scores["metric"]) == {metric}
    assert list(scores["value"]) == [35 / 40, 5 / 40]
    assert list(scores["best"]) == [True, False]
    assert not scores["untested"].any()


def test_a_trial_does_not_take_the_documents_from_whole_runs(tmp_path: Path) -> None:
    """Three whole runs are tested on all their documents, and the note names the fourth."""
    for model, right in (("a", 30), ("b", 18), ("c", 30)):
        write_run(tmp_path / model, model, "cogs_mini_gen", answered_rows(40, right))
    file = write_run(tmp_path / "d", "d", "cogs_mini_gen", answered_rows(40, 18)[:8])
    counts = {"original": 40, "effective": 8}
    edit(file, n_samples={"cogs_mini_gen": counts}, config={"limit": 8})
    scores = overview(read_models([tmp_path])).set_index("model")
    assert list(scores["untested"]) == ["", "", "", "trials"]
    assert list(scores["best"]) == [True, False, True, False]
    assert scores["scored"]["d"] == 8
