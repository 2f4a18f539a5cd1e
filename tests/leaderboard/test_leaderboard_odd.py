"""Unusual, outdated or hostile results: the page says so, or shows them as text."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.page import answers, samples_in
from support.results_files import rows, write_run

from lm_eval_ext.errors import OptionError
from lm_eval_ext.leaderboard.samples import scores_of
from lm_eval_ext.leaderboard.site import Column, build
from lm_eval_ext.results.files import find
from lm_eval_ext.stats.measures import Measure


def test_a_page_anew_replaces_the_earlier_one(tmp_path: Path) -> None:
    """One file and a CSV; what is not ours stays."""
    for task in ("a_task", "b_task"):
        write_run(tmp_path / "many" / task, "one", task, rows(150, 20))
    write_run(tmp_path / "few", "one", "b_task", rows(3, 1))
    site = tmp_path / "site"
    build([tmp_path / "many"], site)
    (site / "mine.txt").write_text("mine")
    page = build([tmp_path / "few"], site)
    assert {file.name for file in site.iterdir()} == {"index.html", "leaderboard.csv", "mine.txt"}
    assert samples_in(page).keys() == {"b_task"}
    assert samples_in(build([tmp_path / "few"], site, samples=0)) == {}
    with pytest.raises(OptionError, match=r"cannot write .*mine.txt"):
        build([tmp_path / "few"], site / "mine.txt")


@pytest.mark.parametrize(("most", "step"), [(4, 3), (10, 1), (300, 1)])
def test_samples_are_spread_over_all(tmp_path: Path, most: int, step: int) -> None:
    write_run(tmp_path / "one", "one", "some_task", rows(10, 5))
    (content,) = samples_in(build([tmp_path], tmp_path / "site", samples=most)).values()
    shown = [document[1] for document in content["documents"]]
    assert shown == list(map(str, range(0, 10, step)))


def test_answers_and_scores_come_out_as_they_went_in(tmp_path: Path) -> None:
    """The right answer, others, one that is missing, scores between 0 and 1, another prompt."""
    write_run(tmp_path / "a", "a", "some_task", rows(5, 2))
    other = [
        {**row, "answer": "né", "score": row["score"] / 3, "prompt": f"<|user|>{row['prompt']}"}
        for row in rows(4, 3)
    ]
    file = write_run(tmp_path / "b", "b", "some_task", other)
    file.write_text(
        file.read_text().replace('"original": 4, "effective": 4', '"original": 5, "effective": 5')
    )
    (logged,) = (tmp_path / "b").glob("samples_*")
    logged.write_text(logged.read_text().replace('"exact_match": 0.0', '"exact_match": null'))
    (content,) = samples_in(build([tmp_path], tmp_path / "site")).values()
    a, b = content["models"].values()
    assert answers(content, "a") == ["x", "x", "y", "y", "y"]
    assert answers(content, "b") == ["né"] * 4 + [None]
    assert b["scores"] == [[0.333, 0.333, 0.333, None, None]]
    assert "<|user|>" not in json.dumps([content["documents"], a])
    assert [one and one[0]["text"] for one in b["parts"]] == [f"<|user|>p{n}" for n in range(4)] + [
        None
    ]


def test_a_task_name_with_slashes_reads_no_other_folder(tmp_path: Path) -> None:
    file = write_run(tmp_path / "one", "one", "some_task", rows(4, 2))
    file.write_text(file.read_text().replace("some_task", "../two/some_task"))
    (tmp_path / "two").mkdir()
    write_run(tmp_path / "two", "two", "some_task", rows(4, 2))
    assert samples_in(build([tmp_path / "one"], tmp_path / "site")) == {}


@pytest.mark.parametrize(
    ("line", "said"), [("{not json", ":9: not JSON"), ('{"doc_id": 8}', ":9: not a sample")]
)
def test_broken_samples_are_left_aside_and_the_rest_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, said: str
) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, name, "some_task", rows(8, 4))
    file = next((tmp_path / "one").glob("samples_*"))
    file.write_text(f"{file.read_text()}{line}\n")
    page = build([tmp_path], tmp_path / "site")
    assert page.read_text().count('<tr data-model="one">') == 2, "the overview, and the models"
    assert samples_in(page)["some_task"]["models"].keys() == {"two"}
    assert said in caplog.text


def test_the_table_beside_the_page_is_no_formula(tmp_path: Path) -> None:
    for place, name in enumerate(["=1+2", "-2+3", "plain"]):
        write_run(tmp_path / str(place), name, "some_task", rows(12, 4 * place))
    build([tmp_path], tmp_path / "site", samples=0)
    lines = list(csv.DictReader((tmp_path / "site" / "leaderboard.csv").open()))
    assert [line["model"] for line in lines] == ["'-2+3", "'=1+2", "plain"]
    assert [float(line["value"]) for line in lines] == pytest.approx([4 / 12, 0, 8 / 12])
    assert [line["best"] for line in lines] == ["True", "False", "True"]


@pytest.mark.parametrize(
    ("unit", "value", "place", "text"),
    [("percent", 0.8, "0.8", "0.8"), ("share", 1.2, "100", "1.200"),
     ("share", -0.5, "0", "\N{MINUS SIGN}0.500")],
)  # fmt: skip
def test_scale_and_digits_go_by_the_unit(unit: Any, value: float, place: str, text: str) -> None:
    column = Column("", "", "", "", Measure(title="", value=("v",), unit=unit))
    assert (column.place(value), column.number(value)) == (place, text)


def test_a_score_is_named_for_what_it_is_of_a_sample(tmp_path: Path) -> None:
    """Relative performance is a ratio of means: of a sample there is execution accuracy."""
    scored = [
        {**row, "facets": {"database": "populated", "form": "foreign", "interpretation": "i"},
         "doc": {**row["doc"], "db_id": "d"}}
        for row in rows(8, 4)
    ]  # fmt: skip
    more = {"relative_performance/foreign,none": 50.0, "sql_no_query,none": 0.0}
    write_run(tmp_path, "one", "magnifico_mini", scored, metric="relative_performance", more=more)
    (run,) = find(tmp_path)
    told = [(one.metrics[0], one.title, one.kind) for one in scores_of(run, "magnifico_mini")]
    assert told == [
        ("relative_performance", "Execution accuracy", "more"),
        ("relative_performance/foreign", "Execution accuracy, foreign", "more"),
        ("sql_no_query", "Answers without a query", "less"),
    ]
