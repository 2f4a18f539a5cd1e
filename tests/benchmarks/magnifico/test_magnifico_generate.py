"""Examples made from databases are right, differ from their mutants, and depend on the seed."""

import csv
import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from support.databases import written
from support.generated import built, lexicon_of

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.benchmarks.magnifico.generate import folder, profile
from lm_eval_ext.benchmarks.magnifico.generate.draw import meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.make import SUPPORT_PER_WORD, refusal_reasons
from lm_eval_ext.benchmarks.magnifico.records import NOVEL
from lm_eval_ext.cli import main
from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs.tasks import our_task_manager

pytestmark = pytest.mark.slow

SEED = 8
QUESTIONS = 10


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of examples made from one database, with the database in it."""
    home = tmp_path_factory.mktemp("generated")
    folder.generate(built("shop", home), home / "out", seed=SEED, questions=QUESTIONS)
    return home / "out"


def test_every_question_runs_and_contains_its_word(shop: Path) -> None:
    """All queries have rows, and each form of a meaning has its solved examples."""
    assert sha256_of(shop / folder.EXAMPLES)[:16] == "3c4d596cb252aadb", "what a seed draws stays"
    rows = rows_of(shop)
    with closing(sqlite3.connect(shop / "shop.sqlite")) as connection:
        for row in rows:
            if "STDEV" not in row["query"]:
                assert connection.execute(row["query"]).fetchall(), row["query"]
            assert row["word"] in row["question"]
            assert row["question"] != row["base_question"]
    solved = [row for row in rows if row["support"] == "yes"]
    solved_queries = {row["query"] for row in solved}
    queries_to_ask = {row["query"] for row in rows if row["support"] != "yes"}
    assert len(queries_to_ask) == QUESTIONS
    assert not queries_to_ask & solved_queries
    assert set(Counter(row["word"] for row in solved).values()) == {SUPPORT_PER_WORD}
    assert {row["form"] for row in rows} == set(NOVEL)


def test_the_suite_refuses_every_mutant(shop: Path) -> None:
    """A query that no database tells from its mutant is not passed."""
    golds = sorted({row["query"] for row in rows_of(shop)})
    tied = "SELECT name FROM (SELECT 1 AS name) WHERE 1 < 2"  # no database changes its result
    assert refusal_reasons(shop / "shop.sqlite", golds) == {}
    assert tied in refusal_reasons(shop / "shop.sqlite", [*golds, tied])


def process(database: Path, out: Path, options: str) -> int:
    """Generate in another process; return its exit code."""
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from lm_eval_ext.benchmarks.magnifico.generate import folder;"
        f"folder.generate(*map(Path, sys.argv[1:]), {options})"
    )
    return subprocess.call([sys.executable, "-c", code, database, out])


def test_a_folder_says_how_it_was_made(shop: Path, tmp_path: Path) -> None:
    """Grammar, seed and database are known, unless the examples were changed afterwards."""
    origin = own.generated(shop / folder.EXAMPLES)
    assert origin is not None
    assert origin.startswith(f"grammar-6,seed-{SEED},database-")
    for name in (folder.EXAMPLES, own.GENERATED):
        (tmp_path / name).write_bytes((shop / name).read_bytes())
    with (tmp_path / folder.EXAMPLES).open("a") as lines:
        lines.write("\n")
    assert own.generated(tmp_path / folder.EXAMPLES) is None


class Answers(LM):
    """A model that has the queries of some forms, and a wrong one in the others."""

    def __init__(self, *forms: str) -> None:
        super().__init__()
        self._forms = forms

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        responses = []
        for request in requests:
            if request.doc["form"] in self._forms:
                responses.append(request.doc["query"].removeprefix("SELECT"))
            else:
                responses.append(" 'wrong' FROM customer")
        return responses

    loglikelihood = loglikelihood_rolling = generate_until


def evaluate(shop: Path, model: Any) -> dict[str, Any]:
    """Return the figures of the generated task."""
    task = folder.task_name("shop")
    manager = our_task_manager([str(shop)])
    results = simple_evaluate(model=model, tasks=[task], task_manager=manager, bootstrap_iters=0)
    assert results is not None
    figures: dict[str, Any] = results["results"][task]
    return figures


@pytest.mark.parametrize(
    ("forms", "novel_accuracy", "relative_performance"),
    [(("base", *NOVEL), 1, 100), (("base",), 0, 0)],
    ids=["all right", "only base right"],
)
def test_the_task_file_is_evaluated(
    shop: Path,
    kept_cache: Path,
    forms: tuple[str, ...],
    novel_accuracy: float,
    relative_performance: float,
) -> None:
    """A model that has all queries, or those of base questions, has the figures of that."""
    figures = evaluate(shop, Answers(*forms))
    assert figures["sql_execution_accuracy/base,query"] == 1
    assert figures["sql_execution_accuracy/novel,query"] == novel_accuracy
    assert figures["relative_performance,query"] == relative_performance


def test_two_seeds_share_no_foreign_word(shop: Path) -> None:
    """Each seed invents words of its own."""
    shop_profile = profile.read_profile(shop / "shop.sqlite")

    def foreign_words(seed: int) -> set[str]:
        words = set()
        for meaning in meanings_of(shop_profile, seed).values():
            if "foreign" in meaning.words:
                words.add(meaning.words["foreign"])
        return words

    assert len(foreign_words(1)) > 1
    assert foreign_words(2)
    assert foreign_words(1).isdisjoint(foreign_words(2))


def test_a_lexicon_names_what_says_nothing(tmp_path: Path) -> None:
    """Tables with names that are no words can be asked about with a lexicon only."""
    database = built("clinic", tmp_path)
    assert not profile.read_profile(database).entities
    clinic = profile.read_profile(database, lexicon_of("clinic"))
    assert [entity.plural for entity in clinic.entities.values()] == [
        "patients",
        "doctors",
        "treatments",
    ]
    assert {link.noun for link in clinic.links} == {"patient", "doctor"}


def test_a_mess_has_only_what_can_be_said(tmp_path: Path) -> None:
    """Those of many odd columns are left that a question can name."""
    mess = profile.read_profile(built("mess", tmp_path))
    (orders,) = mess.entities.values()
    assert [field.phrase for field in orders.fields] == [
        "group",
        "date",
        "unit price",
        "city",
        "name",
        "quantity",
    ]
    assert not mess.links


STAFF = """
    CREATE TABLE "group" (
      id INTEGER PRIMARY KEY, "from" TEXT, "order" TEXT, "where" TEXT, size INTEGER);
    CREATE TABLE nurse (
      id INTEGER PRIMARY KEY, name TEXT, ward TEXT, salary INTEGER, hire_date TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
    INSERT INTO "group" SELECT i, char(65 + i % 5) || 'sloby', char(70 + i % 3) || 'rder',
      char(75 + i % 4) || 'here', i * 37 % 41 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16)
    INSERT INTO nurse SELECT i, 'Nurse ' || char(65 + i % 26) || i, char(65 + i % 5) || ' Ward',
      1000 + i * 73 % 900, date('2020-01-01', '+' || (i * 11) || ' days') FROM n;
    CREATE VIEW broken AS SELECT no_such_column FROM nurse;
"""


def test_poor_schemas_are_warned_of(tmp_path: Path) -> None:
    """The columns from and where are no nouns; too many questions on 16 rows say so.

    A view that does not resolve is no reason to stop.
    """
    database = written(tmp_path / "made.sqlite", STAFF)
    staff = profile.read_profile(database)
    assert [field.phrase for field in staff.entities["group"].fields] == ["size"]
    _, report = folder.generate(database, tmp_path / "out", seed=1, questions=8)
    tiny, joins = report["warnings"]
    assert "questions are on nurse, a table of 16 rows; name more in a lexicon" in tiny
    assert "no foreign keys" in joins
    for row in rows_of(tmp_path / "out"):
        assert " from " not in row["base_question"]


ROWS = "".join(f"INSERT INTO customer VALUES ('C {n}', {n * n});" for n in range(5))
NO_FILE = "there is no such file; name a SQLite database"


def locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def write_text(path: Path) -> None:
    path.write_text("id,name\n1,Ana\n")


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def write_duckdb(path: Path) -> None:
    path.write_bytes(bytes(8) + b"DUCK" + bytes(500))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def empty_tables(path: Path) -> None:
    path.unlink()
    written(path, "CREATE TABLE a (b)")


def leave_as_it_is(path: Path) -> None:
    """Change nothing: the arguments are wrong."""


BAD_DATABASES: list[tuple[Callable[[Path], object], str]] = [
    (write_text, "cannot be read as a SQLite database ("),
    (cut_off, "image is malformed); close the"),
    (write_duckdb, "only SQLite databases"),
    (Path.unlink, NO_FILE),
    (replace_by_folder, NO_FILE),
    (empty_tables, "no table has rows;"),
    (locked, "(database is locked); close the program that writes it"),
]

BAD_ARGUMENTS = [
    ("", "questions are possible, not 100; use --questions"),
    ("--questions 0", "Invalid value for '--questions'"),
    ("--seed -1", "'--seed': Input should be greater than or equal to 0"),
    ("--lexicon {}/none.yaml", "none.yaml: cannot be read (No such file"),
    ("--lexicon {}/words.yaml", "the table 'customer' has no column 'age'"),
    ("-o {}", "exists and is not an empty folder; name a new one"),
]
"""Arguments, with the test's folder in place of the brackets, and what the error says."""


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> object:
    """Run ``magnifico generate``; return its exit code."""
    command = ["lm-eval-ext", "magnifico", "generate", *map(str, words)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        *((change, "", message) for change, message in BAD_DATABASES),
        *((leave_as_it_is, arguments, message) for arguments, message in BAD_ARGUMENTS),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    change: Callable[[Path], object],
    arguments: str,
    message: str,
) -> None:
    """The error names the database or the option, and no file is written."""
    database = written(tmp_path / "bad.sqlite", f"CREATE TABLE customer (name, pay REAL);{ROWS}")
    (tmp_path / "words.yaml").write_text("tables: {customer: {columns: {age: age}}}")
    connection = change(database)
    before = sorted(tmp_path.iterdir())
    options = arguments.format(tmp_path).split()
    code = run(monkeypatch, database, "-o", tmp_path / "out", *options)
    assert code == (2 if "Invalid" in message or "Input" in message else 1)
    out, err = capsys.readouterr()
    assert out == ""
    progress_bar = "questions:"
    (line,) = [line for line in err.splitlines() if progress_bar not in line]
    assert line.startswith("lm-eval-ext: error: ")
    assert message in line
    assert sorted(tmp_path.iterdir()) == before
    if isinstance(connection, sqlite3.Connection):
        connection.close()


def test_paths_are_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder with marks in its name stands right in the command that is printed, and in YAML."""
    database = built("shop", tmp_path)
    out = tmp_path / "it's: #1"
    assert not run(monkeypatch, database, "-o", out, "--questions", 2)
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("Ask them: ")
    words = shlex.split(command)
    assert words[words.index("--include_path") + 1] == str(out)
    text = (out / "magnifico_generated_shop.yaml").read_text().replace("!function", "")
    task = yaml.safe_load(text)["metadata"]
    assert task["magnifico_databases"] == str(out / "shop.sqlite")
    assert task["magnifico_semantics"] == "strict"


def test_the_second_run_into_a_folder_learns_at_its_start(tmp_path: Path) -> None:
    """It is refused while the first works, which is not disturbed."""
    database = built("shop", tmp_path)
    out = tmp_path / "out"
    errors: list[str] = []

    def start_second_run(_: int) -> None:
        if not errors:
            with pytest.raises(OptionError) as error:
                folder.generate(database, out, seed=2, questions=2)
            errors.append(str(error.value))

    folder.generate(database, out, seed=1, questions=2, progress=start_second_run)
    assert errors == [f"{out}: another run is making this folder; name another one"]
    assert json.loads((out / own.GENERATED).read_text())["seed"] == 1


def test_a_killed_run_leaves_nothing_that_blocks_or_stays(tmp_path: Path) -> None:
    """Neither does one that was killed earlier, while it wrote."""
    database = built("shop", tmp_path)
    out = tmp_path / "out"
    unfinished = tmp_path / ".out.0123.part"
    unfinished.mkdir()
    (unfinished / "examples.tsv").touch()
    kill = "progress=lambda _: os.kill(os.getpid(), signal.SIGKILL)"
    assert process(database, out, f"seed=1, questions=2, {kill}") == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["shop.sqlite"]
    folder.generate(database, out, seed=1, questions=2)
    assert {path.name for path in tmp_path.iterdir()} == {"shop.sqlite", "out"}
