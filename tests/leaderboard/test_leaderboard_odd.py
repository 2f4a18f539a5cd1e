"""Unusual, outdated or hostile results: the page says so, or shows them as text."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.results_files import rows, write_run

from lm_eval_ext.errors import OptionError
from lm_eval_ext.leaderboard.site import Column, build


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


@pytest.mark.parametrize("name", ["samples", "tables"])
def test_a_file_where_a_folder_is_wanted_is_one_line(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(3, 1))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine")
    with pytest.raises(OptionError, match=rf"cannot write .*{name}"):
        build([tmp_path / "one"], tmp_path / "site")


def change(file: Path, **more: dict[str, Any]) -> None:
    content = json.loads(file.read_text())
    for key, value in more.items():
        content[key]["some_task"] = content[key]["some_task"] | value
    file.write_text(json.dumps(content))


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


def test_a_task_name_with_slashes_reads_no_other_folder(tmp_path: Path) -> None:
    file = write_run(tmp_path / "one", "one", "some_task", rows(4, 2))
    file.write_text(file.read_text().replace("some_task", "../two/some_task"))
    (tmp_path / "two").mkdir()
    write_run(tmp_path / "two", "two", "some_task", rows(4, 2))
    build([tmp_path / "one"], tmp_path / "site")
    assert not list((tmp_path / "site").rglob("*.js"))


def test_broken_samples_are_left_aside_and_the_rest_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, name, "some_task", rows(8, 4))
    file = next((tmp_path / "one").glob("samples_*"))
    file.write_text(file.read_text() + "{not json\n")
    page = build([tmp_path], tmp_path / "site").read_text()
    assert page.count('<tr data-model="one">') == 4, "two overviews, the task, models"
    (folder,) = (tmp_path / "site" / "samples").iterdir()
    assert (folder / "answers-0.js").is_file() and not (folder / "answers-1.js").exists()
    assert ":9: not JSON" in caplog.text


def test_the_table_beside_the_page_is_no_formula(tmp_path: Path) -> None:
    for place, name in enumerate(["=1+2", "-2+3", "plain"]):
        write_run(tmp_path / str(place), name, "some_task", rows(12, 4 * place))
    build([tmp_path], tmp_path / "site", with_samples=False)
    lines = list(csv.DictReader((tmp_path / "site" / "tables" / "leaderboard.csv").open()))
    assert [line["model"] for line in lines] == ["'-2+3", "'=1+2", "plain"]
    assert [float(line["value"]) for line in lines] == pytest.approx([4 / 12, 0, 8 / 12])
    assert [line["best"] for line in lines] == ["True", "False", "True"]


@pytest.mark.parametrize(
    ("unit", "value", "place", "text"),
    [("share", 0.8, "80.0", "0.800"), ("percent", 0.8, "0.8", "0.8 %"),
     ("percent", 53.4, "53.4", "53.4 %"), ("share", 1.2, "100.0", "1.200"),
     ("points", 0.0, "50.0", "0.000")],
)  # fmt: skip
def test_scale_and_digits_go_by_the_unit(unit: str, value: float, place: str, text: str) -> None:
    column = Column("", "", "", unit)
    assert (column.place(value), column.number(value)) == (place, text)
