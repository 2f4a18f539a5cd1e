"""Unusual, outdated or hostile results: the page says so, or shows them as text."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.results_files import rows, write_run

from lm_eval_ext.compare.reading import read_models
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.leaderboard import exports, tables
from lm_eval_ext.leaderboard.board import collect
from lm_eval_ext.leaderboard.page import position
from lm_eval_ext.leaderboard.site import build


def test_exports_show_names_as_text(tmp_path: Path) -> None:
    """No formula for a spreadsheet, no mark-up for Markdown, no command for LaTeX."""
    names = ["=1+2", "-2+3", "1e5", "*star|<b>", "[x] \\\\input{y}"]
    for place, name in enumerate(names):
        write_run(tmp_path / str(place), name, "=some_task", rows(4, 4))
    build([tmp_path], tmp_path / "site")
    folder = tmp_path / "site" / "tables"
    cells = [cell for line in csv.reader((folder / "leaderboard.csv").open()) for cell in line]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert {"'=1+2", "'-2+3", "1e5", "'=some_task"} <= set(cells)
    markdown = (folder / "leaderboard.md").read_text().splitlines()
    columns = {line.replace(r"\|", "").count("|") for line in markdown if line.startswith("|")}
    assert columns == {3}
    assert any(line.startswith("| 1e5 |") for line in markdown)
    assert any(line.startswith(r"| \*star\|\<b\> |") for line in markdown)
    tex = (folder / "leaderboard.tex").read_text()
    assert not [line for line in tex.splitlines() if line.startswith(("[", "*"))]
    assert r"{[}x{]} \textbackslash{}\textbackslash{}input\{y\}" in tex


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_markdown_keeps_the_digits_of_values_without_an_interval(value: float) -> None:
    table = tables.Table("t", (tables.Column("c"),), (tables.Row("m", (tables.Cell(value),)),))
    assert f"| m | {value:.3f} |" in exports.markdown(table)


def test_a_page_anew_leaves_nothing_of_the_earlier_one(tmp_path: Path) -> None:
    """Fewer tasks, models and documents; what is not ours stays."""
    for name in ("one", "two"):
        for task in ("a_task", "b_task"):
            write_run(tmp_path / "many" / name / task, name, task, rows(150, 20))
    write_run(tmp_path / "few", "one", "b_task", rows(3, 1))
    site = tmp_path / "site"
    build([tmp_path / "many"], site)
    foreign = [site / "samples" / "00-a_task" / "mine.txt", site / "samples" / "notes.js"]
    for file in foreign:
        file.write_text("mine")
    build([tmp_path / "few"], site)
    build([tmp_path / "few"], tmp_path / "other")
    samples = {
        str(file.relative_to(folder)): file.read_text()
        for folder in (site, tmp_path / "other")
        for file in folder.rglob("*.js")
    }
    there = {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    fresh = {str(f.relative_to(tmp_path / "other")) for f in (tmp_path / "other").rglob("*.*")}
    assert there - fresh == {str(file.relative_to(site)) for file in foreign}
    assert fresh <= there
    assert samples
    build([tmp_path / "few"], site, with_samples=False)
    assert set(site.rglob("*.js")) == {foreign[1]}


def test_a_failed_page_does_not_stay_beside_samples_of_another(tmp_path: Path) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(3, 1))
    build([tmp_path], tmp_path / "site")
    file = next((tmp_path / "one").glob("samples_*"))
    file.write_text(file.read_text() + "{not json\n")
    with pytest.raises(DataError):
        build([tmp_path / "one"], tmp_path / "site")
    assert not (tmp_path / "site" / "index.html").exists()


@pytest.mark.parametrize("name", ["samples", "tables"])
def test_a_file_where_a_folder_is_wanted_is_one_line(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(3, 1))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine")
    with pytest.raises(OptionError, match=rf"cannot write .*{name}"):
        build([tmp_path / "one"], tmp_path / "site")


def test_documents_without_the_columns_of_clusters_get_ranks_by_intervals(tmp_path: Path) -> None:
    for name, right in (("one", 0), ("two", 20)):
        old = [{**row, "doc": {"id": row["doc"]["id"]}} for row in rows(20, right)]
        write_run(tmp_path / name, name, "lieder_mini", old, metric="direct/mean")
    build([tmp_path], tmp_path / "site")
    lines = list(csv.DictReader((tmp_path / "site/tables/leaderboard.csv").open()))
    assert {line["model"]: line["rank"] for line in lines if line["table"] == "All tasks"} == {
        "one": "2", "two": "1",
    }  # fmt: skip


def change(file: Path, **more: dict[str, Any]) -> None:
    content = json.loads(file.read_text())
    for key, value in more.items():
        content[key]["some_task"] = content[key]["some_task"] | value
    file.write_text(json.dumps(content))


def test_less_is_better_is_said_and_ranked_so(tmp_path: Path) -> None:
    for name, right in (("one", 0), ("two", 20)):
        file = write_run(tmp_path / name, name, "some_task", rows(20, right), metric="errors")
        change(file, higher_is_better={"errors": False})
    (task,) = collect(read_models([tmp_path])).tasks
    (column,) = tables.other(task).columns
    assert not column.higher
    build([tmp_path], tmp_path / "site")
    lines = list(csv.DictReader((tmp_path / "site/tables/leaderboard.csv").open()))
    assert {line["model"]: line["rank"] for line in lines} == {"one": "1", "two": "2"}


def test_of_several_filters_each_metric_has_its_own_scores(tmp_path: Path) -> None:
    """The first filter finds nothing, the second everything."""
    for name in ("one", "two"):
        file = write_run(tmp_path / name, name, "some_task", rows(6, 0))
        change(file, results={"exact_match,none": 0.0, "exact_match,loose": 1.0})
        logged = next((tmp_path / name).glob("samples_*"))
        found = [json.loads(line) for line in logged.read_text().splitlines()]
        found += [{**row, "filter": "loose", "exact_match": 1.0} for row in found]
        logged.write_text("".join(json.dumps(row) + "\n" for row in found))
    build([tmp_path], tmp_path / "site")
    answers = next((tmp_path / "site").rglob("answers-0.js")).read_text()
    content = json.loads(answers[answers.index(",") + 1 : answers.rindex(")")])
    assert content["scores"] == [[0.0, 1.0]] * 6
    assert len(content["answers"]) == 6


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_noted(tmp_path: Path, value: float) -> None:
    for name in ("one", "two"):
        file = write_run(tmp_path / name, name, "some_task", rows(4, 2))
    change(file, results={"exact_match,none": value})
    build([tmp_path], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    assert f"not a finite number ({value})" in page
    assert f'data-value="{value}"' not in page


def test_a_number_too_large_for_a_float_is_one_line(tmp_path: Path) -> None:
    file = write_run(tmp_path / "one", "one", "some_task", rows(4, 2))
    logged = next((tmp_path / "one").glob("samples_*"))
    good = logged.read_text()
    logged.write_text(good.replace('"exact_match": 1.0', f'"exact_match": {10**400}', 1))
    with pytest.raises(DataError, match="not a sample"):
        build([tmp_path], tmp_path / "site")
    logged.write_text(good)
    change(file, results={"exact_match,none": 10**400})
    with pytest.raises(DataError, match="not a results file"):
        build([tmp_path], tmp_path / "site")


def test_a_model_that_was_asked_otherwise_shows_its_own_prompt(tmp_path: Path) -> None:
    """Chat templates differ; the prompt of the first model is not that of the others."""
    write_run(tmp_path / "a", "a", "some_task", rows(3, 1))
    write_run(
        tmp_path / "b", "b", "some_task",
        [{**row, "prompt": f"<|user|>{row['prompt']}"} for row in rows(3, 1)],
    )  # fmt: skip
    build([tmp_path], tmp_path / "site")
    (folder,) = (tmp_path / "site" / "samples").iterdir()
    assert "<|user|>" not in (folder / "documents-0.js").read_text()
    assert "<|user|>" not in (folder / "answers-0.js").read_text()
    assert (folder / "answers-1.js").read_text().count("<|user|>") == 3


def test_notes_and_arguments_of_models_can_be_read_without_a_mouse(tmp_path: Path) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(3, 1))
    (tmp_path / "one" / "model.yaml").write_text("display_name: First\nnotes: tuned <b>twice</b>\n")
    build([tmp_path], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    models = page.partition('<section id="models"')[2].partition("</section>")[0]
    assert "First" in models
    assert "tuned &lt;b&gt;twice&lt;/b&gt;" in models
    assert "path" in models


def test_a_loss_is_drawn_left_of_nothing(tmp_path: Path) -> None:
    """Gains can be negative; their dots must not all lie at the start of the axis."""
    file = write_run(tmp_path / "one", "one", "some_task", rows(4, 2))
    change(file, results={"gain,none": -0.5, "even,none": 0.0})
    (task,) = collect(read_models([tmp_path])).tasks
    columns = {column.label: column for column in tables.other(task).columns}
    assert position(-0.5, columns["gain"].ends) == "0.0"
    assert position(0.0, columns["gain"].ends) == "33.3"
    assert position(0.0, columns["even"].ends) == "0.0"


def test_a_task_name_with_slashes_reads_no_other_folder(tmp_path: Path) -> None:
    file = write_run(tmp_path / "one", "one", "some_task", rows(4, 2))
    file.write_text(file.read_text().replace("some_task", "../two/some_task"))
    (tmp_path / "two").mkdir()
    write_run(tmp_path / "two", "two", "some_task", rows(4, 2))
    build([tmp_path / "one"], tmp_path / "site")
    assert not list((tmp_path / "site").rglob("*.js"))
