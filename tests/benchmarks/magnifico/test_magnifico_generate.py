"""Examples made from databases: right, different from their mutants, the same for a seed."""

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
from lm_eval_ext.benchmarks.magnifico.generate.make import SUPPORT, refused
from lm_eval_ext.benchmarks.magnifico.records import NOVEL
from lm_eval_ext.cli import main
from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs.tasks import our_task_manager

pytestmark = pytest.mark.slow

SEED, QUESTIONS = 8, 10


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made of one database; the database lies beside it."""
    home = tmp_path_factory.mktemp("generated")
    folder.generate(built("shop", home), home / "out", seed=SEED, questions=QUESTIONS)
    return home / "out"


def test_every_question_runs_and_contains_its_word(shop: Path) -> None:
    assert sha256_of(shop / folder.EXAMPLES)[:16] == "3c4d596cb252aadb", "what a seed draws stays"
    rows = rows_of(shop)
    with closing(sqlite3.connect(shop / "shop.sqlite")) as connection:
        for row in rows:
            if "STDEV" not in row["query"]:
                assert connection.execute(row["query"]).fetchall(), row["query"]
            assert row["word"] in row["question"]
            assert row["question"] != row["base_question"]
    asked = {row["query"] for row in rows if row["support"] != "yes"}
    shown = {row["query"] for row in rows if row["support"] == "yes"}
    assert len(asked) == QUESTIONS
    assert not asked & shown
    solved = Counter(row["word"] for row in rows if row["support"] == "yes")
    assert set(solved.values()) == {SUPPORT}
    assert {row["form"] for row in rows} == set(NOVEL)


def test_the_suite_refuses_every_mutant(shop: Path) -> None:
    golds = sorted({row["query"] for row in rows_of(shop)})
    tied = "SELECT name FROM (SELECT 1 AS name) WHERE 1 < 2"  # no database changes its result
    assert refused(shop / "shop.sqlite", golds) == {}
    assert tied in refused(shop / "shop.sqlite", [*golds, tied])


def process(database: Path, out: Path, options: str) -> int:
    """The exit code of a process that generates."""
    code = (
        "import os, signal, sys; from pathlib import Path;"
        "from lm_eval_ext.benchmarks.magnifico.generate import folder;"
        f"folder.generate(*map(Path, sys.argv[1:]), {options})"
    )
    return subprocess.call([sys.executable, "-c", code, database, out])


def test_what_was_made_says_how(shop: Path, tmp_path: Path) -> None:
    made = own.generated(shop / folder.EXAMPLES)
    assert made is not None and made.startswith(f"grammar-6,seed-{SEED},database-")
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
        return [
            one.doc["query"].removeprefix("SELECT")
            if one.doc["form"] in self._forms
            else " 'wrong' FROM customer"
            for one in requests
        ]

    loglikelihood = loglikelihood_rolling = generate_until


def scores(shop: Path, model: Any) -> tuple[Any, Any, Any]:
    """Accuracies on base and novel questions, and the relative performance."""
    task = folder.task_of("shop")
    manager = our_task_manager([str(shop)])
    results = simple_evaluate(model=model, tasks=[task], task_manager=manager, bootstrap_iters=0)
    assert results is not None
    found = results["results"][task]
    names = "sql_execution_accuracy/base", "sql_execution_accuracy/novel", "relative_performance"
    return tuple(found[f"{name},query"] for name in names)  # type: ignore[return-value]


def test_the_task_file_is_evaluated(shop: Path, kept_cache: Path) -> None:
    assert scores(shop, Answers("base", *NOVEL)) == (1, 1, 100)
    assert scores(shop, Answers("base")) == (1, 0, 0)


def test_two_seeds_share_no_foreign_word(shop: Path) -> None:
    found = profile.read(shop / "shop.sqlite")
    first, second = (
        {one.words.get("foreign", f"none {seed}") for one in meanings_of(found, seed).values()}
        for seed in (1, 2)
    )
    assert len(first) > 2
    assert not first & second


def test_a_lexicon_names_what_says_nothing(tmp_path: Path) -> None:
    database = built("clinic", tmp_path)
    assert not profile.read(database).entities
    found = profile.read(database, lexicon_of("clinic"))
    assert [one.many for one in found.entities.values()] == ["patients", "doctors", "treatments"]
    assert {link.noun for link in found.links} == {"patient", "doctor"}


def test_a_mess_has_only_what_can_be_said(tmp_path: Path) -> None:
    found = profile.read(built("mess", tmp_path))
    (orders,) = found.entities.values()
    assert [field.phrase for field in orders.fields] == [
        "group", "date", "unit price", "city", "name", "quantity",
    ]  # fmt: skip
    assert not found.links


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
    found = profile.read(database)
    assert [field.phrase for field in found.entities["group"].fields] == ["size"]
    _, said = folder.generate(database, tmp_path / "out", seed=1, questions=8)
    tiny, joins = said["warnings"]
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


# What is done to the database, more arguments, what is said.
BAD: list[tuple[Callable[[Path], object], str, str]] = [
    (lambda path: path.write_text("id,name\n1,Ana\n"), "", "cannot be read as a SQLite database ("),
    (lambda path: path.write_bytes(path.read_bytes()[:4096]), "", "image is malformed); close the"),
    (lambda path: path.write_bytes(bytes(8) + b"DUCK" + bytes(500)), "", "only SQLite databases"),
    (Path.unlink, "", NO_FILE),
    (lambda path: (path.unlink(), path.mkdir()), "", NO_FILE),
    (lambda path: (path.unlink(), written(path, "CREATE TABLE a (b)")), "", "no table has rows;"),
    (locked, "", "(database is locked); close the program that writes it"),
    (Path.stat, "", "questions are possible, not 100; use --questions"),
    (Path.stat, "--questions 0", "Invalid value for '--questions'"),
    (Path.stat, "--seed -1", "'--seed': Input should be greater than or equal to 0"),
    (Path.stat, "--lexicon {}/none.yaml", "none.yaml: cannot be read (No such file"),
    (Path.stat, "--lexicon {}/words.yaml", "the table 'customer' has no column 'age'"),
    (Path.stat, "-o {}", "exists and is not an empty folder; name a new one"),
]


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> object:
    """Runs ``magnifico generate``; returns its exit code."""
    command = ["lm-eval-ext", "magnifico", "generate", *map(str, words)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(("change", "more", "said"), BAD, ids=[said for _, _, said in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(  # noqa: PLR0917
    change: Callable[[Path], object], more: str, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    database = written(tmp_path / "bad.sqlite", f"CREATE TABLE customer (name, pay REAL);{ROWS}")
    (tmp_path / "words.yaml").write_text("tables: {customer: {columns: {age: age}}}")
    kept = change(database)
    before = sorted(tmp_path.iterdir())
    code = run(monkeypatch, database, "-o", tmp_path / "out", *more.format(tmp_path).split())
    assert code == (2 if "Invalid" in said or "Input" in said else 1)
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = [one for one in err.splitlines() if "questions:" not in one]  # not the progress bar
    assert line.startswith("lm-eval-ext: error: ")
    assert said in line
    assert sorted(tmp_path.iterdir()) == before
    if isinstance(kept, sqlite3.Connection):
        kept.close()


def test_paths_are_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the command that is printed, and in the task file."""
    database, out = built("shop", tmp_path), tmp_path / "it's: #1"
    assert not run(monkeypatch, database, "-o", out, "--questions", 2)
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("Ask them: ")
    words = shlex.split(command)
    assert words[words.index("--include_path") + 1] == str(out)
    text = (out / "magnifico_generated_shop.yaml").read_text().replace("!function", "")
    task = yaml.safe_load(text)["metadata"]
    assert task["magnifico_databases"] == str(out / "shop.sqlite")
    assert task["magnifico_semantics"] == "strict"


def test_the_second_run_into_a_folder_learns_at_its_start(tmp_path: Path) -> None:
    database, out, said = built("shop", tmp_path), tmp_path / "out", list[str]()

    def second(_: int) -> None:
        if not said:
            with pytest.raises(OptionError) as error:
                folder.generate(database, out, seed=2, questions=2)
            said.append(str(error.value))

    folder.generate(database, out, seed=1, questions=2, progress=second)
    assert said == [f"{out}: another run is making this folder; name another one"]
    assert json.loads((out / own.GENERATED).read_text())["seed"] == 1


def test_a_killed_run_leaves_nothing_that_blocks_or_stays(tmp_path: Path) -> None:
    database, out = built("shop", tmp_path), tmp_path / "out"
    left = tmp_path / ".out.0123.part"  # of one that was killed while it wrote
    left.mkdir()
    (left / "examples.tsv").touch()
    kill = "progress=lambda _: os.kill(os.getpid(), signal.SIGKILL)"
    assert process(database, out, f"seed=1, questions=2, {kill}") == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["shop.sqlite"]
    folder.generate(database, out, seed=1, questions=2)
    assert {path.name for path in tmp_path.iterdir()} == {"shop.sqlite", "out"}
