"""From results to tables: values, published rows, runs that measured something else."""

import csv
import io
import json
from pathlib import Path

import pytest
from support import legal
from support.results_files import DATE, rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cards import cards
from lm_eval_ext.cli import app as cli_app
from lm_eval_ext.compare.reading import read_models
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.leaderboard import exports, tables
from lm_eval_ext.leaderboard.board import collect
from lm_eval_ext.leaderboard.page import money
from lm_eval_ext.leaderboard.site import build


def test_a_run_on_fewer_documents_says_so_and_has_no_rank(tmp_path: Path) -> None:
    for name, count in (("one", 20), ("two", 20), ("short", 5)):
        write_run(tmp_path / name, name, "some_task", rows(count, count // 2))
    results = tmp_path / "short" / f"results_{DATE}.json"
    content = json.loads(results.read_text())
    content["n-samples"]["some_task"]["original"] = 20
    results.write_text(json.dumps(content))
    build([tmp_path], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.count("measured differently from most (5 of 20 documents") == 2
    board = collect(read_models([tmp_path]))
    assert [run.comparable for run in board.tasks[0].runs.values()] == [True, False, True]
    assert board.parts == ["some_task (5 of 20 documents)"] and board.parts[0] in page
    assert collect(read_models([tmp_path / "one"])).parts == []


def test_other_data_are_not_comparable(tmp_path: Path) -> None:
    for name, data in (("one", "a"), ("two", "a"), ("three", "b")):
        write_run(tmp_path / name, name, "some_task", rows(20, 10), data=data)
    runs = collect(read_models([tmp_path])).tasks[0].runs
    assert {label: run.comparable for label, run in runs.items()} == {
        "one": True, "two": True, "three": False,
    }  # fmt: skip


def test_published_rows_and_the_difference_to_the_same_model(tmp_path: Path) -> None:
    """COGS's card has values of "T5-base"; a model of that name gets them beside its own."""
    card = cards()["cogs"]
    reference = next(
        one for one in card.references
        if one.label == "T5-base" and one.tasks == ("cogs_unmodified_gen",)
    )  # fmt: skip
    for name in ("some/T5-base", "another"):
        write_run(tmp_path / name, name, "cogs_unmodified_gen", rows(20, 10),
                  metric="exact_match/all")  # fmt: skip
    found = tables.of_benchmark(card, collect(read_models([tmp_path])).tasks)
    headline = next(table for table in found if table.title.endswith("headline"))
    place = [column.label for column in headline.columns].index("all")
    by_label = {row.label: row for row in headline.rows}
    assert by_label["T5-base"].published
    assert by_label["T5-base"].cells[place].value == reference.figures["all"]
    assert by_label["some/T5-base"].cells[place].published == reference.figures["all"]
    assert by_label["another"].cells[place].published is None
    build([tmp_path], tmp_path / "site")
    difference = 0.5 - reference.figures["all"]
    assert f"{difference:+.3f} to the published" in (tmp_path / "site/index.html").read_text()


def test_exports_hold_the_same_values(tmp_path: Path) -> None:
    for name, right in (("a|b", 5), ("c_d & %", 15)):
        write_run(tmp_path / name[0], name, "some_task", rows(20, right))
    build([tmp_path], tmp_path / "site")
    folder = tmp_path / "site" / "tables"
    lines = list(csv.DictReader(io.StringIO((folder / "leaderboard.csv").read_text())))
    assert legal.check_table((folder / "leaderboard.csv").read_text()) == len(lines)
    overview = {line["model"]: line for line in lines if line["table"] == "All tasks"}
    assert float(overview["a|b"]["value"]) == 0.25
    assert float(overview["c_d & %"]["value"]) == 0.75
    assert {line["rank"] for line in overview.values()} == {"1", "2"}
    assert "0.250 [" in (folder / "leaderboard.md").read_text()
    tex = (folder / "leaderboard.tex").read_text()
    assert r"c\_d \& \%" in tex
    assert r"\toprule" in tex


def test_money() -> None:
    amounts = (0.0, 0.0099, 0.01, 1234.5)
    assert [money(amount) for amount in amounts] == ["0.00", "< 0.01", "0.01", "1,234.50"]


def test_digits() -> None:
    assert exports.cell_text(tables.Cell()) == ""
    assert exports.cell_text(tables.Cell(0.12345, 0.1, 0.2)) == "0.123 [0.100, 0.200]"
    assert exports.cell_text(tables.Cell(84.871)) == "84.9"


def test_a_broken_sample_is_one_line_and_leaves_no_page(tmp_path: Path) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(3, 1))
    file = next((tmp_path / "one").glob("samples_*"))
    file.write_text(file.read_text() + "{not json\n")
    with pytest.raises(DataError, match=rf"{file.name}:4: not JSON"):
        build([tmp_path], tmp_path / "site")
    assert not (tmp_path / "site" / "index.html").exists()


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no results_\*\.json"):
        build([tmp_path], tmp_path / "site")
    done = CliRunner().invoke(
        cli_app.app, ["leaderboard", str(tmp_path), "-o", str(tmp_path / "s")]
    )
    assert done.exit_code != 0


def test_a_task_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    """Names come from results files, which come from anywhere."""
    name = "..__..__x y<b>"
    write_run(tmp_path / "one", "one", name, rows(3, 1))
    build([tmp_path], tmp_path / "site")
    files = list((tmp_path / "site" / "samples").rglob("*.js"))
    assert len(files) == 3
    assert all(file.parent.parent == tmp_path / "site" / "samples" for file in files)


def test_every_figure_of_a_card_names_tasks_of_its_benchmark() -> None:
    for card in cards().values():
        for figure in card.figures:
            named = {*figure.tasks, *(one.split()[0] for one in figure.columns.values())}
            assert named <= set(card.tasks), f"{card.name}: {figure.title}"
