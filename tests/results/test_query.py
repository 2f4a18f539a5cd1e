"""Which run counts, and questions to samples: facets, units, errors, what is best."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.asking import run_in
from support.results_files import rows as made_rows
from support.results_files import write_run

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import read_models
from lm_eval_ext.results.overview import overview, representatives
from lm_eval_ext.results.query import ScoreQuery, estimates
from lm_eval_ext.results.table import rows


def edit(file: Path, **changes: Any) -> None:
    """Updates parts of a results file."""
    content = json.loads(file.read_text())
    for key, change in changes.items():
        content[key.replace("_", "-") if key == "n_samples" else key].update(change)
    file.write_text(json.dumps(content))


def run_of(
    folder: Path, model: str, date: str, *, version: str, right: int, count: int, limit: Any = None
) -> None:
    file = write_run(folder, model, "cogs_mini_gen", made_rows(count, right), date=date)
    counts = {"original": 200 if limit else count, "effective": count}
    edit(file, versions={"cogs_mini_gen": version}, config={"limit": limit},
         n_samples={"cogs_mini_gen": counts})  # fmt: skip


RUNS: list[tuple[str, list[tuple[str, str, int, int, Any]], float]] = [
    # Day, version, right of documents, limit; and which value counts.
    ("newest version, with fewer documents",
     [("02", "1.1", 100, 200, None), ("01", "2.0", 19, 190, None)], 0.1),
    ("10 is newer than 2",
     [("02", "2.0", 19, 190, None), ("01", "10.0", 38, 190, None)], 0.2),
    ("a trial never hides a whole run",
     [("01", "1.1", 100, 200, None), ("05", "2.0", 5, 5, 5)], 0.5),
    ("newest run",
     [("01", "1.1", 100, 200, None), ("03", "1.1", 20, 200, None), ("05", "2.0", 5, 5, 5)], 0.1),
    ("a limit that takes all is no trial",
     [("01", "1.1", 100, 200, None), ("03", "1.1", 20, 200, 300)], 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("why", "files", "expected"), RUNS)
def test_which_run_counts_whatever_the_order_of_folders(
    tmp_path: Path, why: str, files: list[tuple[str, str, int, int, Any]], expected: float
) -> None:
    """The run with the most documents won, then the first folder's, a trial over a whole run."""
    folders = [tmp_path / str(n) for n in range(len(files))]
    for folder, (day, version, right, count, limit) in zip(folders, files, strict=True):
        date = f"2026-01-{day}T00-00-00"
        run_of(folder, "m", date, version=version, right=right, count=count, limit=limit)
    for paths in ([tmp_path], *permutations(folders)):
        (model,) = read_models(paths, joined=True)
        scores = model.runs["cogs_mini_gen"].scores
        assert scores["exact_match"].value == expected, why


def test_rewritten_samples_are_read_again(tmp_path: Path) -> None:
    run_of(tmp_path, "m", "2026-01-01T00-00-00", version="1.1", right=3, count=4)
    run = run_in(tmp_path, "cogs_mini_gen")
    assert rows(run)["exact_match"].sum() == 3
    run_of(tmp_path, "m", "2026-01-01T00-00-00", version="1.1", right=1, count=4)
    assert rows(run)["exact_match"].sum() == 1


def a_run(tmp_path: Path) -> Run:
    made = [
        {**row, "facets": {"type": "ab"[number % 2], "kind": "lexical"}}
        for number, row in enumerate(made_rows(20, 10))
    ]
    write_run(tmp_path, "m", "cogs_mini_gen", made)
    return run_in(tmp_path, "cogs_mini_gen")


def figures(run: Run, **options: Any) -> Any:
    ((_, question),) = ScoreQuery(**options).questions(run)
    found = estimates(run, question, ScoreQuery(**options).filter)
    return pd.DataFrame({**part, **vars(one)} for part, one in found)


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
def test_what_cannot_be_asked_is_one_line_with_what_can(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as raised:
        figures(a_run(tmp_path), **options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_and_broken_samples_name_the_file(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    (samples,) = tmp_path.glob("samples_*.jsonl")
    text = samples.read_text()
    for broken, said in (
        (text[: len(text) // 2], r"samples_.*jsonl:\d+: not JSON"),
        ('{"filter": "none"}\n', r"samples_.*jsonl:1: not a sample that lm_eval logged"),
        ("", "--log_samples"),
    ):
        samples.write_text(broken)
        if not broken:
            samples.unlink()
        with pytest.raises(DataError, match=said):
            figures(run, by="type")
    assert list(figures(run)["value"]) == [0.5], "lm-eval's own metrics need no samples"


def test_gen_stands_for_cogs_and_a_foreign_task_for_itself(tmp_path: Path) -> None:
    for place, task in enumerate(("cogs_mini_gen", "cogs_unmodified_gen", "arc")):
        for model, right in (("a", 30), ("b", 5)):
            write_run(tmp_path / model, model, task, made_rows(40, right), date=f"2026-01-0{place}")
    models = read_models([tmp_path])
    assert representatives(models) == {"cogs": "cogs_unmodified_gen", "arc": "arc"}
    found = overview(models)
    assert list(found["task"]) == ["cogs_unmodified_gen"] * 2 + ["arc"] * 2
    assert set(found[found["best"]]["model"]) == {"a"}
    assert set(found["title"]) == {"Exact match", "exact_match"}


def test_the_headline_is_not_that_of_the_alphabetically_first_model(tmp_path: Path) -> None:
    """An older file has other metrics; the newer one's model comes later in the alphabet."""
    for model in "ab":
        write_run(tmp_path / model, model, "cogs_mini_gen", made_rows(40, 20))
    (file,) = (tmp_path / "a").glob("results_*")
    entries = json.loads(file.read_text())["results"]["cogs_mini_gen"]
    older = {f"old/{name}": one for name, one in entries.items()}
    edit(file, configs={"cogs_mini_gen": {}}, results={"cogs_mini_gen": older})
    found = overview(read_models([tmp_path]))
    assert list(found["metric"]) == ["exact_match"] * 2
    assert list(found["value"].isna()) == [True, False]
    assert found["why"][0] == "results of an older version, without exact_match"


def test_a_headline_about_a_part_is_tested_too(tmp_path: Path) -> None:
    """Its value was looked for under the measure's name, and nothing was marked."""
    facets = {"metric": "direct", "requirement": "existence", "family": "affirmative_negation"}
    metric = "direct/affirmative_negation"
    for model, right in (("a", 35), ("b", 5)):
        made = [{**row, "facets": facets} for row in made_rows(40, right)]
        write_run(tmp_path / model, model, "lieder_mini", made, metric=metric)
    found = overview(read_models([tmp_path])).set_index("model")
    assert set(found["metric"]) == {metric} and list(found["value"]) == [35 / 40, 5 / 40]
    assert list(found["best"]) == [True, False] and not found["untested"].any()


def test_a_trial_does_not_take_the_documents_from_whole_runs(tmp_path: Path) -> None:
    """Three whole runs are tested on all their documents, and the note names the fourth."""
    for place, model in enumerate("abcd"):
        made = made_rows(40, 30 - 12 * (place % 2))
        file = write_run(
            tmp_path / model, model, "cogs_mini_gen", made[:8] if model == "d" else made
        )
        counts = {"original": 40, "effective": 8 if model == "d" else 40}
        edit(file, n_samples={"cogs_mini_gen": counts}, config={"limit": counts["effective"] % 40})
    found = overview(read_models([tmp_path])).set_index("model")
    assert list(found["untested"]) == ["", "", "", "trials"]
    assert list(found["best"]) == [True, False, True, False]
    assert found["scored"]["d"] == 8
