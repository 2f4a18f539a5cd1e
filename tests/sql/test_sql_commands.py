"""``sql-score`` with test suites, ``sql compare`` and ``sql explain``, on ten predictions."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.databases import written
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.sql import comparing, smallest
from lm_eval_ext.sql.suite import SUITE_VERSION

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql commands")]

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer(id),
  item TEXT NOT NULL, price REAL NOT NULL);
INSERT INTO customer VALUES (1, 'Anna', 'Bern'), (2, 'Ben', 'Basel'), (3, 'Clara', 'Bern'),
  (4, 'David', NULL);
INSERT INTO purchase VALUES (1, 1, 'lamp', 40.0), (2, 1, 'desk', 210.0), (3, 2, 'lamp', 40.0),
  (4, 3, 'chair', 85.5);
"""
WITHOUT_PURCHASE = "SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM purchase)"
BUYERS = "SELECT c.name FROM customer c JOIN purchase p ON p.customer = c.id WHERE item = 'lamp'"
DISTINCT_BUYERS = BUYERS.replace("SELECT", "SELECT DISTINCT", 1)

RIGHT = {
    "count": ("SELECT count(*) FROM customer", "SELECT COUNT(id) FROM customer"),
    "average": ("SELECT avg(price) FROM purchase", "SELECT sum(price) / count(*) FROM purchase"),
    "dearest": (
        "SELECT item FROM purchase ORDER BY price DESC LIMIT 1",
        "SELECT p.item FROM purchase p ORDER BY p.price DESC LIMIT 1",
    ),
}
BY_CHANCE = {
    "distinct": (DISTINCT_BUYERS, BUYERS),
    "city": (WITHOUT_PURCHASE, "SELECT name FROM customer WHERE city IS NULL"),
}
WRONG = {
    "order": (
        "SELECT item FROM purchase WHERE price > 50 ORDER BY price",
        "SELECT item FROM purchase WHERE price > 50 ORDER BY price DESC",
    ),
    "function": (
        "SELECT item FROM purchase WHERE price > 50",
        "SELECT item FROM purchase WHERE over(price)",
    ),
}
ALL = {**RIGHT, **BY_CHANCE, **WRONG}


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def write_predictions(
    path: Path, queries: Mapping[str, Sequence[str]], header: Sequence[str] = ()
) -> Path:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "gold_sql", "predicted_sql", *header])
        table.writerows([name, *texts] for name, texts in queries.items())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database, predictions, and a test suite for their golds."""
    folder = tmp_path_factory.mktemp("shop")
    written(folder / "shop.sqlite", SHOP)
    write_predictions(folder / "ten.csv", ALL)
    run(
        "sql", "score", "--databases", folder / "shop.sqlite", "--predictions", folder / "ten.csv",
        "-o", folder / "out.csv", "--semantics", "strict", "--suite", folder / "suites",
        "--build-suite",
    )  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("names", "original", "suite"),
    [
        pytest.param(RIGHT, "correct", "correct", id="right"),
        pytest.param(BY_CHANCE, "correct", "wrong", id="right-by-chance"),
        pytest.param(["order"], "wrong", "wrong", id="wrong-order"),
        pytest.param(["function"], "prediction_error", "prediction_error", id="no-such-function"),
    ],
)
def test_a_suite_tells_chance_from_right(
    folder: Path, names: Sequence[str], original: str, suite: str
) -> None:
    """A query that is right by chance turns wrong on a named database; right answers stay right."""
    rows = rows_of(folder / "out.csv")
    for name in names:
        row = rows[name]
        assert (row["original_status"], row["status"]) == (original, suite), name
        assert bool(row["reason"]) is (suite != "correct"), name
        on_original = row["deciding_database"] == "original"
        assert on_original is (original == suite != "correct"), name


def test_a_suite_that_was_built_is_read_again(folder: Path, tmp_path: Path) -> None:
    """Without --build-suite the folder gives the same verdicts, and --json has all figures."""
    text = run(
        "sql-score", "--databases", folder, "--predictions",
        write_predictions(tmp_path / "a.csv", {n: (*q, "shop", n[0]) for n, q in ALL.items()},
                          ["db_id", "initial"]),
        "-o", tmp_path / "out.jsonl", "--semantics", "strict", "--suite", folder / "suites",
        "--by", "initial,db_id", "--json",
    )  # fmt: skip
    summary = json.loads(text)
    assert (summary["correct"], summary["original_correct"], summary["rows"]) == (3, 5, 7)
    assert "|suites:strict-v" in summary["signature"]
    assert summary["remarks"] == []
    counts = {group["initial"]: (group["correct"], group["scored"]) for group in summary["by"]}
    assert counts == {"c": (1, 2), "a": (1, 1), "d": (1, 2), "o": (0, 1), "f": (0, 1)}
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == [
        row["status"] for row in rows_of(folder / "out.csv").values()
    ]


def test_a_suite_of_other_golds_is_one_line_and_the_original_judges(
    folder: Path, tmp_path: Path
) -> None:
    """Rows whose gold no suite knows are scored on the original, and counted."""
    queries = {"new": ("SELECT city FROM customer WHERE id = 1", "SELECT 'Bern'"), **RIGHT}
    text = run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions",
        write_predictions(tmp_path / "a.csv", queries), "-o", tmp_path / "out.csv",
        "--semantics", "strict", "--suite", folder / "suites",
    )  # fmt: skip
    words = " ".join(text.split())
    assert "built for other golds: 1 gold of this file (1 row) judged by the original" in words
    row = rows_of(tmp_path / "out.csv")["new"]
    assert (row["status"], row["deciding_database"]) == ("correct", "original")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"version": 0}, "it has version 0, not", id="older-version"),
        pytest.param(None, "suite.json: no suite of databases", id="no-suite-there"),
        pytest.param([], "no suite of databases", id="other-json"),
        pytest.param(
            {
                "version": SUITE_VERSION,
                "key": "",
                "databases": {"small-0": ""},
                "golds": {},
                "seeds": [],
            },
            "small-0.sqlite: this file of the suite is missing",
            id="without-its-databases",
        ),
    ],
)
def test_a_folder_that_is_no_suite_is_one_line(
    folder: Path, tmp_path: Path, content: object, message: str
) -> None:
    """The line says what is wrong with the folder and what builds a suite."""
    suites = tmp_path / "suites"
    suites.mkdir()
    if content is not None:
        (suites / "shop").mkdir()
        (suites / "shop" / "suite.json").write_text(json.dumps(content))
    with pytest.raises(LmEvalExtError, match=message) as error:
        run(
            "sql-score", "--databases", folder / "shop.sqlite", "--predictions",
            folder / "ten.csv", "-o", tmp_path / "out.csv", "--suite", suites,
        )  # fmt: skip
    assert "no suite for any of 1 database" in str(error.value)
    assert "--build-suite builds suites" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "numbers", "heading"),
    [
        pytest.param([], ["6", "7"], "not correct", id="default"),
        pytest.param(
            ["--show-wrong", "1"], ["6"], "not correct, the first 1 of 2 rows", id="one of two"
        ),
        pytest.param(["--show-wrong", "0"], [], "", id="none"),
    ],
)
def test_rows_that_are_not_correct_are_listed_with_their_reasons(
    folder: Path, tmp_path: Path, options: list[str], numbers: list[str], heading: str
) -> None:
    """The numbers are those that sql explain takes; the file has all reasons."""
    text = run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions", folder / "ten.csv",
        "-o", tmp_path / "out.csv", "--semantics", "strict", *options,
    )  # fmt: skip
    _, _, table = text.partition("\n\n")
    assert table.startswith(heading)
    listed = dict(re.findall(r"^(\d+) +\w+ +(.+)$", table, re.MULTILINE))
    assert list(listed) == numbers
    reasons = [row["reason"] for row in rows_of(tmp_path / "out.csv").values()]
    assert {listed[number] for number in numbers} <= set(reasons)


FENCED = "The query counts the rows:\n\n```sql\n{}\n```\nIt is fast."


@pytest.mark.parametrize("extract", [True, False], ids=["extract", "as-they-are"])
def test_answers_in_code_fences(folder: Path, tmp_path: Path, extract: bool) -> None:
    """--extract reads the queries; without it one line says that they are fenced."""
    queries = {name: (gold, FENCED.format(query)) for name, (gold, query) in RIGHT.items()}
    queries["prose"] = (RIGHT["count"][0], "I do not know.")
    text = run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions",
        write_predictions(tmp_path / "a.csv", queries), "-o", tmp_path / "out.csv",
        *(["--extract"] if extract else []),
    )  # fmt: skip
    rows = rows_of(tmp_path / "out.csv")
    statuses = {name: row["status"] for name, row in rows.items()}
    if extract:
        assert statuses == {**dict.fromkeys(RIGHT, "correct"), "prose": "prediction_error"}
        assert rows["prose"]["reason"] == "no query was found in the answer"
        assert {name: rows[name]["extracted_sql"] for name in RIGHT} == {
            name: query for name, (_, query) in RIGHT.items()
        }
    else:
        assert set(statuses.values()) == {"prediction_error"}
    assert ("--extract reads the query" in " ".join(text.split())) is not extract


@pytest.mark.parametrize("extract", [True, False], ids=["extract", "as-they-are"])
def test_a_few_answers_in_code_fences_are_counted(
    folder: Path, tmp_path: Path, extract: bool
) -> None:
    """They fail, which a reader of the accuracy alone would not see."""
    queries = dict(RIGHT)
    queries["fenced"] = (RIGHT["count"][0], FENCED.format(RIGHT["count"][1]))
    text = run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions",
        write_predictions(tmp_path / "a.csv", queries), "-o", tmp_path / "out.csv",
        *(["--extract"] if extract else []),
    )  # fmt: skip
    line = f"predictions with a code fence: 1 of {len(queries)}; --extract reads the query"
    assert (line in " ".join(text.split())) is not extract


@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param("", id="plain"),
        pytest.param("-- count them\n  ", id="line-comment"),
        pytest.param("/* all\nof them */", id="comment"),
    ],
)
def test_queries_bring_no_hint_about_extraction(
    folder: Path, tmp_path: Path, beginning: str
) -> None:
    """A file of queries, with comments before them or not, is scored without a remark."""
    queries = {name: (gold, beginning + query) for name, (gold, query) in RIGHT.items()}
    text = run(
        "sql-score", "--databases", folder / "shop.sqlite", "--predictions",
        write_predictions(tmp_path / "plain.csv", queries), "-o", tmp_path / "out.csv",
    )  # fmt: skip
    assert "--extract" not in text


@pytest.fixture
def two_systems(folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The first is right where both are and on one more; two rows of the second are swapped."""
    first_file = write_predictions(tmp_path / "first.csv", ALL)
    wrong = {name: (gold, "SELECT 0") for name, (gold, _) in RIGHT.items()}
    wrong["count"] = RIGHT["count"]
    wrong["order"] = (WRONG["order"][0], WRONG["order"][0])
    second_file = write_predictions(
        tmp_path / "second.csv", {name: wrong.get(name, ALL[name]) for name in reversed(ALL)}
    )
    return first_file, second_file


def test_two_systems_are_compared_on_the_same_rows(
    folder: Path, tmp_path: Path, two_systems: tuple[Path, Path]
) -> None:
    """Counts, difference and McNemar's p are those of the rows, whatever their order."""
    out = tmp_path / "both.csv"
    text = run(
        "sql", "compare", *two_systems, "--databases", folder / "shop.sqlite", "--semantics",
        "strict", "--json", "-o", out, "--by", "name",
    )  # fmt: skip
    comparison = json.loads(text)
    assert comparison["systems"] == ["first", "second"]
    cells = [comparison[key] for key in ("both_correct", "only_a", "only_b", "both_wrong")]
    assert cells == [3, 2, 1, 1]
    assert comparison["difference"]["value"] == pytest.approx(1 / 7)
    assert comparison["mcnemar_p"] == 1.0
    assert [group["name"] for group in comparison["by"]] == list(ALL)
    rows = rows_of(out)
    assert rows["average"]["status (first)"] == "correct"
    assert rows["average"]["status (second)"] == "wrong"
    assert rows["average"]["reason (second)"]


@pytest.mark.parametrize("step", ["its-own-output", "the-same-file"])
def test_columns_of_a_comparison_are_there_once(folder: Path, tmp_path: Path, step: str) -> None:
    """An output can be compared again, and a file with itself."""
    first_file, second_file = (
        write_predictions(tmp_path / f"{name}.csv", RIGHT) for name in ("a", "b")
    )
    if step == "the-same-file":
        second_file = first_file
    else:
        text = ",".join(["name,gold_sql,predicted_sql", "status (a),reason (b)\n"])
        first_file.write_text(f"{text}count,SELECT 4,SELECT 4,wrong,an earlier reason\n")
        second_file.write_text("name,gold_sql,predicted_sql\ncount,SELECT 4,SELECT 4\n")
    out = tmp_path / "out.csv"
    run("sql", "compare", first_file, second_file, "--databases", folder / "shop.sqlite", "-o", out)
    with out.open(newline="") as file:
        header, row, *_ = csv.reader(file)
    assert len(set(header)) == len(header)
    record = dict(zip(header, row, strict=True))
    statuses = [value for name, value in record.items() if name.startswith("status")]
    assert statuses == ["correct", "correct"]


def test_a_comparison_names_the_rows_that_differ(
    folder: Path, two_systems: tuple[Path, Path]
) -> None:
    """The screen lists rows that one system alone has right, and the command that shows one."""
    text = run("sql", "compare", *two_systems, "--databases", folder / "shop.sqlite")
    words = " ".join(text.split())
    assert "only first right: rows 2, 3" in words
    assert "only second right: row 6" in words
    assert "no interval from 1 database, fewer than 6" in words
    command = re.search(r"see one of them: (.*)", text)
    assert command is not None
    assert command[1].endswith(f"--predictions {two_systems[0]} --row 6")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--match", "nmae"], "--match nmae: .* no such column; .*did you mean name?"),
        (["--match", "gold_sql"], "the same gold_sql as an earlier row"),
    ],
)
def test_rows_that_cannot_be_matched(
    folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    """One line names the column."""
    twice = {"a": RIGHT["count"], "b": RIGHT["count"]}
    files = [write_predictions(tmp_path / f"{name}.csv", twice) for name in ("x", "y")]
    with pytest.raises(LmEvalExtError, match=message):
        run("sql", "compare", *files, "--databases", folder / "shop.sqlite", *options)


def test_a_column_that_identifies_rows_is_checked_before_they_are_judged(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in an option costs no time."""
    monkeypatch.setattr(comparing, "judge_rows", None)
    files = [write_predictions(tmp_path / f"{name}.csv", RIGHT) for name in ("x", "y")]
    with pytest.raises(LmEvalExtError, match="--match nmae"):
        run("sql", "compare", *files, "--databases", folder / "shop.sqlite", "--match", "nmae")


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        pytest.param("SELECT 1", "1 row with another database or gold in y", id="other-gold"),
        pytest.param(RIGHT["count"][0], "", id="same-gold"),
    ],
)
def test_rows_of_the_same_name_with_other_golds_are_counted(
    folder: Path, tmp_path: Path, gold: str, expected: str
) -> None:
    """Two systems that are judged by different golds are compared with a remark."""
    files = [
        write_predictions(tmp_path / "x.csv", RIGHT),
        write_predictions(tmp_path / "y.csv", {**RIGHT, "count": (gold, "SELECT 1")}),
    ]
    text = run(
        "sql", "compare", *files, "--databases", folder / "shop.sqlite", "--match", "name", "--json"
    )
    remarks = json.loads(text)["remarks"]
    assert [remark.partition(":")[0] for remark in remarks] == ([expected] if expected else [])


def explained(folder: Path, *options: str | Path) -> dict[str, Any]:
    explanation: dict[str, Any] = json.loads(
        run("sql", "explain", "--databases", folder / "shop.sqlite", *options, "--json")
    )
    return explanation


def test_the_smallest_rows_that_show_a_difference(folder: Path) -> None:
    """A customer without a purchase but with a city is all that is needed."""
    row = list(ALL).index("city") + 1
    explanation = explained(
        folder, "--predictions", folder / "ten.csv", "--row", str(row), "--semantics", "strict",
        "--suite", folder / "suites",
    )  # fmt: skip
    assert (explanation["status"], explanation["original_status"]) == ("wrong", "correct")
    assert explanation["database"].startswith(("small-", "copy"))
    rows_left = explanation["smallest"]
    (table,) = rows_left["tables"]
    assert table["name"] == "customer"
    assert len(table["rows"]) == 1
    results = rows_left["gold_result"]["rows"], rows_left["predicted_result"]["rows"]
    assert sorted(map(len, results)) == [0, 1]


def test_the_search_for_the_smallest_rows_ends_in_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without time all rows are left, which show the difference as well."""
    monkeypatch.setattr(smallest, "MAX_SECONDS", 0.0)
    explanation = explained(
        folder, "--gold", "SELECT name FROM customer", "--predicted", "SELECT 1"
    )
    assert [len(table["rows"]) for table in explanation["smallest"]["tables"]] == [4, 4]


@pytest.mark.parametrize(
    ("gold", "builds_another"),
    [
        pytest.param(RIGHT["count"][0], False, id="gold-of-the-suite"),
        pytest.param("SELECT min(price) FROM purchase", True, id="other-gold"),
    ],
)
def test_an_explanation_replaces_no_suite(folder: Path, gold: str, builds_another: bool) -> None:
    """With --build-suite, too, the suite that the user's folder has stays as it is."""
    suites = folder / "suites"
    before = (suites / "shop" / "suite.json").read_bytes()
    folders = len(list(suites.iterdir()))
    explanation = explained(
        folder, "--gold", gold, "--predicted", gold, "--semantics", "strict", "--suite", suites,
        "--build-suite",
    )  # fmt: skip
    assert explanation["status"] == "correct"
    assert explanation["database"] != "original"
    assert (suites / "shop" / "suite.json").read_bytes() == before
    assert (len(list(suites.iterdir())) > folders) is builds_another


OTHER_GOLD = "SELECT min(price) FROM purchase"


def score_with_suite(folder: Path, database: Path, gold: str, out: Path, *options: str) -> str:
    """Score one row, which repeats its gold, with the suites of a folder."""
    predictions = write_predictions(out.with_suffix(".in.csv"), {"row": (gold, gold)})
    return run(
        "sql-score", "--databases", database, "--predictions", predictions, "-o", out,
        "--semantics", "strict", "--suite", folder / "suites", *options,
    )  # fmt: skip


def test_building_uses_a_suite_that_knows_all_golds(folder: Path, tmp_path: Path) -> None:
    """A file with some of the golds is judged by the suite of all."""
    suite_file = folder / "suites" / "shop" / "suite.json"
    before = suite_file.read_bytes()
    gold = RIGHT["count"][0]
    text = score_with_suite(
        folder, folder / "shop.sqlite", gold, tmp_path / "out.csv", "--build-suite"
    )
    assert "accuracy: 100.00 %" in text
    assert suite_file.read_bytes() == before


def test_building_replaces_no_suite_of_other_golds(folder: Path, tmp_path: Path) -> None:
    """A file with other golds is an error of one line, and the folder stays as it is."""
    suite_file = folder / "suites" / "shop" / "suite.json"
    before = suite_file.read_bytes()
    with pytest.raises(LmEvalExtError, match="does not know 1 gold of this file's 1; building"):
        score_with_suite(
            folder, folder / "shop.sqlite", OTHER_GOLD, tmp_path / "out.csv", "--build-suite"
        )
    assert suite_file.read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--build-suite",)], ids=["read", "build"])
def test_a_suite_of_another_database_with_the_same_name_is_refused(
    folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Its rows were drawn for another schema and other values."""
    namesake = written(tmp_path / "shop.sqlite", SHOP + "DELETE FROM purchase WHERE id = 4;")
    gold = RIGHT["count"][0]
    with pytest.raises(LmEvalExtError, match="built for another database than"):
        score_with_suite(folder, namesake, gold, tmp_path / "out.csv", *options)


def test_json_holds_whatever_a_query_returns(folder: Path) -> None:
    """Infinity, which JSON has no number for, is text; half a surrogate is escaped."""
    explanation = explained(
        folder, "--gold", "SELECT 9e999, -9e999", "--predicted", "SELECT '\ud800'"
    )
    assert explanation["gold_result"]["rows"] == [["inf", "-inf"]]
    assert explanation["predicted"] == "SELECT '\ud800'"


@pytest.mark.parametrize(
    ("predicted", "status", "reason"),
    [
        pytest.param("SELECT 4", "correct", "", id="correct"),
        pytest.param("DROP TABLE customer", "prediction_error", ".", id="error"),
        pytest.param(
            "SELECT name FROM customer", "wrong", "4 rows instead of 1: none right", id="wrong"
        ),
    ],
)
def test_texts_are_explained_without_a_file(
    folder: Path, predicted: str, status: str, reason: str
) -> None:
    """--gold and --predicted give the verdict, and both results."""
    gold = RIGHT["count"][0]
    explanation = explained(folder, "--gold", gold, "--predicted", predicted)
    assert explanation["status"] == status
    assert re.match(reason, explanation["reason"])
    assert explanation["gold_result"]["rows"] == [[4]]
    text = run(
        "sql", "explain", "--databases", folder / "shop.sqlite", "--gold", gold, "--predicted",
        predicted,
    )  # fmt: skip
    assert f"gold: {gold}" in text
    assert status in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--predictions", "{folder}/ten.csv", "--row", "8"], "--row 8: .*ten.csv has 7 rows"),
        (["--predictions", "{folder}/ten.csv", "--row", "0"], "--row 0: .* the first is 1"),
        (["--predictions", "{folder}/ten.csv"], "name --predictions FILE with --row N, or"),
        (["--gold", "SELECT 1"], "name --predictions FILE with --row N, or --gold SQL"),
    ],
)
def test_a_prediction_that_cannot_be_explained_is_one_line(
    folder: Path, options: list[str], message: str
) -> None:
    """The line says what is legal."""
    arguments = [option.format(folder=folder) for option in options]
    with pytest.raises(LmEvalExtError, match=message):
        explained(folder, *arguments)


def test_a_database_that_is_missing_decides_nothing(folder: Path) -> None:
    """The screen says that there is none, and names no rule and no database that decided."""
    text = run(
        "sql", "explain", "--databases", folder, "--db-id", "shoe", "--gold", "SELECT 1",
        "--predicted", "SELECT 1",
    )  # fmt: skip
    assert "database_missing: no database 'shoe'; name by --databases a folder" in text
    assert "by the rule" not in text


def test_predictions_that_cannot_be_scored_do_not_stop_the_rest(
    folder: Path, tmp_path: Path
) -> None:
    """A long prediction, null characters, unknown databases and broken golds have their status."""
    cases = {
        "long": ("SELECT 1", f"SELECT '{'x' * 5_000_000}'", "shop", "prediction_too_large"),
        "null": ("SELECT 1", "SELECT\0 1", "shop", "prediction_error"),
        "empty": ("SELECT 1", "", "shop", "prediction_error"),
        "nowhere": ("SELECT 1", "SELECT 1", "nowhere", "database_missing"),
        "path": ("SELECT 1", "SELECT 1", "../shop", "database_missing"),
        "no id": ("SELECT 1", "SELECT 1", "", "database_missing"),
        "gold": ("SELECT nothing", "SELECT 1", "shop", "gold_error"),
        "right": ("SELECT 1", "SELECT 1", "SHOP", "correct"),
    }
    queries = {name: texts[:3] for name, texts in cases.items()}
    out = tmp_path / "out.csv"
    csv.field_size_limit(10_000_000)
    run(
        "sql-score", "--databases", folder, "--predictions",
        write_predictions(tmp_path / "a.csv", queries, ["db_id"]), "-o", out,
    )  # fmt: skip
    rows = rows_of(out)
    assert {name: row["status"] for name, row in rows.items()} == {
        name: texts[3] for name, texts in cases.items()
    }
    assert [name for name, row in rows.items() if not row["reason"]] == ["right"]
