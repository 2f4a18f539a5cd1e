"""The page's content: each benchmark's view of its samples, on embedded documents as they are
logged; unusual, outdated or hostile results, which the page reports or shows as text."""

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from support.asking import run_in
from support.page import answers, samples_in
from support.results_files import answered_rows, write_run
from support.tasks import load_task

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.leaderboard.cells import Cell, Column, Table, TableRow
from lm_eval_ext.leaderboard.site import _asset, build
from lm_eval_ext.results.sample_scores import scores_of
from lm_eval_ext.stats.measures import Measure, Unit
from lm_eval_ext.stats.statistics import number

pytestmark = pytest.mark.usefixtures("kept_cache")

MINI = (
    "lieder_mini", "magnifico_mini", "cogs_mini_gen", "cogs_mini_icl_gen",
    "cogs_mini_overestimation", "conceptual_mini", "diner_mini_icl", "slog_mini",
)  # fmt: skip


def documents(name: str) -> list[dict[str, Any]]:
    """Return the first documents as lm-eval logs them: through JSON."""
    docs = load_task(name).test_docs()
    logged: list[dict[str, Any]] = json.loads(json.dumps([docs[number] for number in range(5)]))
    return logged


@pytest.mark.parametrize("name", MINI)
def test_each_benchmark_shows_documents_and_answers(name: str) -> None:
    view = import_module(f"lm_eval_ext.benchmarks.{name.partition('_')[0]}.view")
    docs = documents(name)
    answer = {"lieder_mini": "[-1.5, false]", "magnifico_mini": "SELECT 1"}.get(name, "an answer")
    shown = view.documents(docs, [[]] * len(docs))
    answered = view.answers(docs, [[answer] * 9] * len(docs))
    assert len(shown) == len(answered) == len(docs)
    assert all(document.title and document.gold for document in shown)
    assert len({document.title for document in shown}) > 1
    for view_of_sample in (*shown, *answered):
        for detail in view_of_sample.details:
            assert detail.title
            assert detail.text or detail.table
            assert len({len(row) for row in detail.table}) <= 1


MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) "
    "SELECT i, {} FROM n"
)
MISSING = "; 1 of the gold's missing"
ROW = "VALUES (1, 'x')"


@pytest.mark.parametrize(
    ("gold", "answer", "title", "marked"),
    [
        pytest.param(
            f"{ROW}, (2, NULL)", "VALUES (2.0, NULL), (1, 'x')", "2 rows", (), id="equal rows"
        ),
        pytest.param(
            f"{ROW}, (2, 'y')", f"{ROW}, (2, 'z')", f"2 rows{MISSING}", (1,), id="another row"
        ),
        pytest.param(ROW, f"{ROW}, (1, 'x')", "2 rows", (1,), id="a row too often"),
        pytest.param(
            "VALUES (NULL, 'x')", "VALUES ('', 'x')", f"1 row{MISSING}", (0,), id="null and text"
        ),
        pytest.param("SELECT 0.1 + 0.2", "SELECT 0.3", f"1 row{MISSING}", (0,), id="last bit"),
        pytest.param(
            MANY.format(0),
            MANY.format("i = 60"),
            f"100 rows of which 8 are shown{MISSING}",
            (7,),
            id="many rows, of which those that differ are shown",
        ),
    ],
)
def test_rows_of_the_answer_that_differ_from_the_golds_are_marked(
    gold: str, answer: str, title: str, marked: tuple[int, ...]
) -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    (doc, *_) = documents("magnifico_mini")
    (shown,) = view.answers([{**doc, "query": gold}], [[answer]])
    (part,) = shown.details
    assert part.title == f"What it returns, {title}"
    assert part.marked == marked


def test_the_golds_rows_are_shown_once_beside_those_of_the_answers() -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    (doc, *_) = documents("magnifico_mini")
    (gold,) = view.documents([doc], [[]])[0].details
    assert gold.beside
    queries = ((doc["query"],), ("SELECT nothing FROM nowhere",), ("",))
    same, wrong, empty = view.answers([doc, doc, doc], queries)
    (rows_of_same,) = same.details
    assert gold.table == rows_of_same.table != ()
    (error,) = wrong.details
    assert "nowhere" in error.text
    assert empty.details == ()


def test_a_database_of_the_users_with_the_name_of_one_of_ours_shows_no_rows_of_ours() -> None:
    from lm_eval_ext.benchmarks.magnifico import view

    (doc, *_) = documents("magnifico_mini")
    of_ours = doc
    of_user = {**doc, "prompt": "CREATE TABLE keepers (\n  name TEXT\n)\n\n-- Who?\nSELECT"}
    shown_of_ours, shown_of_user = view.documents([of_ours, of_user], [[], []])
    assert shown_of_ours.details
    assert not shown_of_user.details


def test_comparisons_that_failed_come_first_with_both_sides_and_their_difference() -> None:
    """All are right but a singular that is more probable after two goats than after one."""
    from lm_eval_ext.benchmarks.lieder import view

    (doc, *_) = documents("lieder_mini")
    likely = {name: -3.0 - number / 2 for number, name in enumerate(doc["felicitous"])}
    likely |= {"neg_pos_s": -2.0, "pos_neg_s": -3.0, "pos_pos_s": -2.5}
    likely |= {"neg_pos_p": -8.0, "pos_pos_p": -1.0}
    responses = [f"[{likely.get(name, -9.0)}, False]" for name in doc["condition"]]
    shown, broken = view.answers([doc, doc], [responses, ["broken"]])
    assert shown.answer == "14 of 15 comparisons right"
    wrong, right, uncounted = shown.details
    continuation = doc["continuation"][0].strip()
    assert wrong.table == (
        ("should be", "after", "continuation", "log-probability"),
        ("more likely", "A", continuation, "-3.00"),
        ("less likely", "B", continuation, "-2.50"),
        ("wrong", "", "uniqueness+novelty: pos_neg_s-pos_pos_s", "-0.50 nats"),
    )
    assert [len(right.table), len(uncounted.table)] == [1 + 3 * 14, 1 + 3 * 2]
    assert uncounted.title == "2 comparisons of distance, which other scores count"
    (document,) = view.documents([doc], [[]])
    contexts = {detail.title: detail.text for detail in document.details if detail.beside}
    assert contexts["Context A"] == doc["context"][0]
    assert len(contexts) == 4
    assert broken.answer == "(no log-probabilities)"


@pytest.mark.parametrize(
    ("answer", "components"),
    [
        ("烤鸡翅", ["hit", "hit"]),
        ("蒸鸡翅", ["extra", "hit", "missing"]),
        ("烤鸡翅鸡翅", ["hit", "hit"]),
        ("x", []),
    ],
)
def test_components_of_a_name_are_hit_missing_or_extra(answer: str, components: list[str]) -> None:
    from lm_eval_ext.benchmarks.diner import view

    (shown,) = view.answers([{"answer": "烤鸡翅"}], [[answer]])
    part = shown.details[0]
    assert sorted(row[2] for row in part.table[1:]) == components
    assert ("does not parse" in part.text) == (not components)


def test_samples_of_another_version_are_shown_as_text(tmp_path: Path) -> None:
    (row,) = answered_rows(1, 0)
    write_run(
        tmp_path, "one", "lieder_mini", [row | {"doc": {"item": "dog"}}], metric="direct/mean"
    )
    content = samples_in(build([tmp_path], tmp_path / "site"))["lieder_mini"]
    assert content["documents"][0][:3] == ["p0", "", "x"]
    assert answers(content, "one") == ["y"]


def test_a_page_anew_replaces_the_earlier_one(tmp_path: Path) -> None:
    """One file and a CSV; the user's files stay. Samples are spread over all documents."""
    for task in ("a_task", "b_task"):
        write_run(tmp_path / "many" / task, "one", task, answered_rows(150, 20))
    write_run(tmp_path / "few", "one", "b_task", answered_rows(10, 1))
    site = tmp_path / "site"
    build([tmp_path / "many"], site)
    (site / "mine.txt").write_text("mine")
    for most, expected in ((300, {"b_task": "0123456789"}), (4, {"b_task": "0369"}), (0, {})):
        shown = {}
        page = build([tmp_path / "few"], site, samples=most)
        for task, content in samples_in(page).items():
            shown[task] = "".join(document[1] for document in content["documents"])
        assert shown == expected
    assert {file.name for file in site.iterdir()} == {"index.html", "leaderboard.csv", "mine.txt"}
    with pytest.raises(OptionError, match=r"cannot write .*mine.txt"):
        build([tmp_path / "few"], site / "mine.txt")


def test_answers_and_scores_come_out_as_they_went_in(tmp_path: Path) -> None:
    """Right, wrong and missing answers, scores between 0 and 1, another prompt."""
    write_run(tmp_path / "a", "a", "some_task", answered_rows(5, 2))
    changed_rows = [
        {**row, "answer": "né", "score": row["score"] / 3, "prompt": f"<|user|>{row['prompt']}"}
        for row in answered_rows(4, 3)
    ]
    file = write_run(tmp_path / "b", "b", "some_task", changed_rows)
    file.write_text(file.read_text().replace('"original": 4', '"original": 5'))
    (logged,) = (tmp_path / "b").glob("samples_*")
    logged.write_text(logged.read_text().replace('"exact_match": 0.0', '"exact_match": null'))
    (content,) = samples_in(build([tmp_path], tmp_path / "site")).values()
    a, b = content["models"].values()
    assert answers(content, "a") == ["x", "x", "y", "y", "y"]
    assert answers(content, "b") == ["né"] * 4 + [None]
    assert b["scores"] == [[0.333, 0.333, 0.333, None, None]]
    assert "<|user|>" not in json.dumps([content["documents"], a])
    *prompts, missing = b["parts"]
    assert [parts[0]["text"] for parts in prompts if parts] == [
        f"<|user|>p{number}" for number in range(4)
    ]
    assert missing is None


def test_a_task_name_with_slashes_reads_no_other_folder(tmp_path: Path) -> None:
    file = write_run(tmp_path / "one", "one", "some_task", answered_rows(4, 2))
    file.write_text(file.read_text().replace("some_task", "../two/some_task"))
    (tmp_path / "two").mkdir()
    write_run(tmp_path / "two", "two", "some_task", answered_rows(4, 2))
    assert samples_in(build([tmp_path / "one"], tmp_path / "site")) == {}


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        pytest.param("{not json", ":9: not JSON", id="no JSON"),
        pytest.param('{"doc_id": 8}', ":9: not a sample", id="no sample"),
        pytest.param(
            '{"filter": "none", "doc_hash": "", "metrics": [], "doc": {}, "arguments": {}, '
            '"target": "", "filtered_resps": null}',
            ":9: not a sample that lm_eval logged (TypeError: 'NoneType' object is not iterable)",
            id="no responses",
        ),
    ],
)
def test_broken_samples_are_left_aside_and_the_rest_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, warning: str
) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, name, "some_task", answered_rows(8, 4))
    file = next((tmp_path / "one").glob("samples_*"))
    file.write_text(f"{file.read_text()}{line}\n")
    page = build([tmp_path], tmp_path / "site")
    assert page.read_text().count('<tr data-model="one">') == 2, "the overview, and the models"
    assert samples_in(page)["some_task"]["models"].keys() == {"two"}
    assert warning in caplog.text


def test_the_table_beside_the_page_is_no_formula(tmp_path: Path) -> None:
    for name, right in (("=1+2", 0), ("-2+3", 4), ("plain", 8)):
        write_run(tmp_path / str(right), name, "some_task", answered_rows(12, right))
    build([tmp_path], tmp_path / "site", samples=0)
    lines = list(csv.DictReader((tmp_path / "site" / "leaderboard.csv").open()))
    assert [line["model"] for line in lines] == ["'-2+3", "'=1+2", "plain"]
    assert [float(line["value"]) for line in lines] == pytest.approx([4 / 12, 0, 8 / 12])
    assert [line["best"] for line in lines] == ["False", "False", "True"]


@pytest.mark.parametrize(
    ("unit", "value", "position", "text"),
    [("percent", 0.8, "0.8", "0.8"), ("share", 1.2, "100", "1.200"),
     ("share", -0.5, "0", "\N{MINUS SIGN}0.500")],
)  # fmt: skip
def test_scale_and_digits_go_by_the_unit(
    unit: Unit, value: float, position: str, text: str
) -> None:
    column = Column("", "", "", "", Measure(title="", value=("v",), unit=unit))
    macros: Any = Environment().from_string(_asset("macros.html")).make_module({"text_of": number})
    assert macros.place(column, value) == position
    assert macros.number(column, value) == text


def test_a_score_has_the_name_that_fits_a_sample(tmp_path: Path) -> None:
    """Relative performance is a ratio of means: of a sample there is execution accuracy."""
    scored = [
        {**row, "facets": {"database": "populated", "form": "foreign", "interpretation": "i"},
         "doc": {**row["doc"], "db_id": "d"}}
        for row in answered_rows(8, 4)
    ]  # fmt: skip
    further_figures = {"relative_performance/foreign,none": 50.0, "sql_no_query,none": 0.0}
    write_run(
        tmp_path,
        "one",
        "magnifico_mini",
        scored,
        metric="relative_performance",
        further_figures=further_figures,
    )
    run = run_in(tmp_path, "magnifico_mini")
    scores = [(score.metrics[0], score.title, score.kind) for score in scores_of(run)]
    assert scores == [
        ("relative_performance", "Execution accuracy", "more"),
        ("relative_performance/foreign", "Execution accuracy, foreign", "more"),
        ("sql_no_query", "Answers without a query", "less"),
    ]


def test_notes_name_a_model_once_for_each_reason() -> None:
    """A model with the same reason in several columns stands there once, with these columns."""
    measure = cards()["lieder"].question_of("direct").measure
    columns = [Column(task, "direct", task, "Accuracy", measure) for task in ("one", "two")]
    trial = Cell(why="not tested: trials")
    table_rows = [
        TableRow("small", [trial, trial]),
        TableRow("large", [trial, Cell(0.5)]),
        TableRow("small, too", [trial, trial]),
        TableRow("other", [Cell(0.5), Cell(0.5)]),
    ]
    table = Table("overview", "Models", columns, table_rows, remarks=["published one: humans 0.9"])
    assert table.notes == [
        "small; small, too (one, two); large (one): not tested: trials",
        "published one: humans 0.9",
    ]


def test_one_reason_for_all_values_that_could_not_be_tested_stands_beside_the_mark() -> None:
    """Where no model has samples, the legend says so, though some cells are empty."""
    measure = cards()["lieder"].question_of("direct").measure
    columns = [Column(task, "direct", task, "Accuracy", measure) for task in ("one", "two")]
    untested = Cell(0.5, standing="untested", why="not tested: no samples")
    table_rows = [
        TableRow("small", [untested, Cell(is_missing=True)]),
        TableRow("large", [untested, Cell(why="N/A")]),
    ]
    table = Table("overview", "Models", columns, table_rows)
    assert table.explained == ["? could not be tested", "not tested: no samples"]
    assert table.notes == ["large (two): N/A"]


def test_a_benchmark_and_a_task_of_one_name_are_named_once() -> None:
    """A user's benchmark ``quiz`` with a task ``quiz`` is no "Quiz quiz"."""
    card = cards()["lieder"].model_copy(update={"title": "My quiz: questions", "tasks": {}})
    assert card.headings_of_task("my_quiz") == ["My quiz"]
    assert card.headings_of_task("quiz_long") == ["My quiz", "quiz_long"]


def test_a_note_about_all_cells_names_no_model() -> None:
    """A reason that holds for every cell needs no names."""
    measure = cards()["lieder"].question_of("direct").measure
    columns = [Column(task, "direct", task, "Accuracy", measure) for task in ("one", "two")]
    trial = Cell(why="not tested: trials")
    table_rows = [TableRow("small", [trial, trial]), TableRow("large", [trial, trial])]
    assert Table("overview", "Models", columns, table_rows).notes == ["not tested: trials"]
