"""``sql-score`` in parts: together they give the file of the undivided command, to the byte."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import typer
from support.databases import written
from support.small_databases import GOLD, PEOPLE, SLOW, wait_for
from typer.testing import CliRunner

from lm_eval_ext.cli.sql_options import read_query
from lm_eval_ext.cli.sql_score import sql_score
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.runs.run import Reporter
from lm_eval_ext.runs.sql_parts import PartsWork, submit_parts, with_absolute_paths
from lm_eval_ext.sql import Executor, suite_choice
from lm_eval_ext.sql.part_scoring import plan_parts, score_part
from lm_eval_ext.sql.parts import Part, parse_part
from lm_eval_ext.sql.predictions import read_predictions
from lm_eval_ext.sql.scoring import JudgeOptions, score_file
from lm_eval_ext.sql.suite import populate_all
from lm_eval_ext.sql.suite_choice import SuiteSource

pytestmark = pytest.mark.slow

GOLDS = (GOLD, "SELECT name FROM people ORDER BY id", "SELECT kind FROM pets", "SELECT max(age)")
QUERIES = ("SELECT 6", "SELECT kind FROM pets ORDER BY kind", "SELECT 'a\nb'", "nonsense", "")
PARTS = 3


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return written(tmp_path / "people.sqlite", PEOPLE)


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """Every gold with every query, some cells with line breaks and quotation marks."""
    path = tmp_path / "predictions.csv"
    rows = ["note,db_id,gold_sql,predicted_sql"]
    for query in QUERIES:
        for gold in GOLDS:
            rows.append(f'"a ""note""",people,{gold},"{query}"')
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def judged_queries(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Lets no query run any more; the function returns those that would have."""
    queries: list[str] = []

    def refuse() -> list[str]:
        def score(_: Executor, examples: Any, **__: Any) -> Any:
            queries.extend(example.predicted for example in examples)
            if queries:
                raise AssertionError("a query is judged anew")
            return iter(())

        monkeypatch.setattr(Executor, "score", score)
        return queries

    return refuse


def test_all_rows_are_in_one_part_and_those_of_a_gold_together(
    database: Path, predictions: Path, tmp_path: Path
) -> None:
    options = JudgeOptions(database, workers=1)
    parts_of_gold: dict[str, set[int]] = {gold: set() for gold in GOLDS}
    judged_rows = []
    rows = read_predictions(predictions)
    for number in range(1, PARTS + 1):
        score_part(predictions, options, tmp_path / "out.csv", Part(number, PARTS))
        (part_file,) = tmp_path.glob(f"out.csv.*.{number}-of-{PARTS}.part")
        for line in part_file.read_text().splitlines():
            if line:
                row = json.loads(line)["row"]
                judged_rows.append(row)
                parts_of_gold[rows[row].prediction.gold].add(number)
    assert sorted(judged_rows) == list(range(len(rows)))
    assert [len(parts) for parts in parts_of_gold.values()] == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["plain", "with a suite", "read from answers"])
def test_the_parts_together_are_the_undivided_file_to_the_byte(
    database: Path, predictions: Path, tmp_path: Path, judged_queries: Any, kind: str
) -> None:
    suite = None
    if kind == "with a suite":
        suite = SuiteSource(tmp_path / "suites", build=True)
    options = JudgeOptions(
        database,
        semantics="strict",
        suite=suite,
        workers=1,
        read_query=read_query if kind == "read from answers" else None,
    )
    undivided, divided = tmp_path / "undivided.csv", tmp_path / "divided.csv"
    score_file(predictions, options, undivided)
    for number in (3, 1, 2):
        score_part(predictions, options, divided, Part(number, PARTS))
    assert not divided.exists()
    queries = judged_queries()
    summary = score_file(predictions, options, divided)
    assert queries == [], "the parts' verdicts are taken"
    assert divided.read_bytes() == undivided.read_bytes()
    assert summary.rows == len(QUERIES) * len(GOLDS)
    assert not list(tmp_path.glob("*.part"))


def test_a_part_that_nobody_judged_is_judged_at_the_end(
    database: Path, predictions: Path, tmp_path: Path
) -> None:
    options = JudgeOptions(database, workers=1)
    score_file(predictions, options, tmp_path / "undivided.csv")
    score_part(predictions, options, tmp_path / "out.csv", Part(2, PARTS))
    plan = plan_parts(predictions, options, tmp_path / "out.csv", PARTS)
    assert plan.missing == [Part(1, PARTS), Part(3, PARTS)]
    assert (plan.judged, plan.rows) == (len(QUERIES), len(QUERIES) * len(GOLDS))
    score_file(predictions, options, tmp_path / "out.csv")
    undivided = (tmp_path / "undivided.csv").read_bytes()
    assert (tmp_path / "out.csv").read_bytes() == undivided


SCRIPT = """
import sys
from pathlib import Path
from lm_eval_ext.sql.part_scoring import score_part
from lm_eval_ext.sql.parts import Part
from lm_eval_ext.sql.scoring import JudgeOptions
path, databases, out = map(Path, sys.argv[1:])
score_part(path, JudgeOptions(databases, timeout_s=5000, workers=1), out, Part(1, 2))
"""


def test_a_killed_part_is_repeated_alone_and_what_is_judged_is_kept(
    database: Path, tmp_path: Path, judged_queries: Any
) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    rows = []
    for query in ("SELECT 5", "SELECT 6", SLOW, "SELECT 3 + 3"):
        for gold in GOLDS[:2]:
            rows.append({"db_id": "people", "gold_sql": gold, "predicted_sql": query})
    rows[5]["predicted_sql"] = "SELECT 7"  # of the second part
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = JudgeOptions(database, timeout_s=5000, workers=1)
    score_part(path, options, out, Part(2, 2))
    (finished,) = tmp_path.glob("out.jsonl.*.2-of-2.part")
    finished_content = finished.read_bytes()

    child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), str(database), str(out)])
    killed = finished.with_name(finished.name.replace("2-of-2", "1-of-2"))
    wait_for(lambda: killed.exists() and killed.read_text().count("{") == 2)
    child.kill()
    child.wait()
    assert plan_parts(path, options, out, 2).missing == [Part(1, 2)]

    queries = judged_queries()
    with pytest.raises(AssertionError):
        score_part(path, options, out, Part(1, 2))
    assert queries == [SLOW, "SELECT 3 + 3"]
    queries.clear()
    assert finished.read_bytes() == finished_content
    summary = score_part(path, options, out, Part(2, 2))
    assert (summary.rows, summary.judged_before) == (4, 4)


def test_parts_that_begin_at_once_build_a_suite_once(
    database: Path, predictions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would replace the suite of the other while that judges on it."""
    built: list[str] = []

    def populate_and_note(jobs: Any, *arguments: Any, **options: Any) -> Any:
        built.extend(jobs)
        return populate_all(jobs, *arguments, **options)

    monkeypatch.setattr(suite_choice, "populate_all", populate_and_note)
    source = SuiteSource(tmp_path / "suites", build=True)
    options = JudgeOptions(database, semantics="strict", suite=source, workers=1)
    with ThreadPoolExecutor(PARTS) as pool:
        parts = [Part(number, PARTS) for number in range(1, PARTS + 1)]
        summaries = [
            pool.submit(score_part, predictions, options, tmp_path / "out.csv", part)
            for part in parts
        ]
    rows = [summary.result().rows for summary in summaries]
    assert sum(rows) == len(QUERIES) * len(GOLDS)
    assert built == ["people"]


def test_a_machine_with_other_verdicts_says_so(
    database: Path, predictions: Path, tmp_path: Path
) -> None:
    """Such as one with another SQLite; its part would be judged again and again."""
    options = JudgeOptions(database, workers=1)
    out = tmp_path / "out.csv"
    digest = plan_parts(predictions, options, out, PARTS).digest
    changed = JudgeOptions(database, workers=1, semantics="strict")
    with pytest.raises(DataError, match=r"part 1 of 3: rows, databases or signature .* strict-v2"):
        score_part(predictions, changed, out, Part(1, PARTS), expected_digest=digest)
    assert not list(tmp_path.glob("*.part"))


def test_databases_may_be_named_in_two_ways(
    database: Path, predictions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs get absolute paths."""
    monkeypatch.chdir(tmp_path)
    relative = JudgeOptions(database.name, suite=SuiteSource(Path("suites")))
    absolute = with_absolute_paths(relative)
    assert absolute.databases == database
    assert absolute.suite == SuiteSource(tmp_path / "suites")
    url = "postgresql://reader@localhost/yard"
    assert with_absolute_paths(JudgeOptions(url)).databases == url
    digests = set()
    for name in (database.name, str(database)):
        plan = plan_parts(predictions, JudgeOptions(name, workers=1), tmp_path / "out.csv", 1)
        digests.add(plan.digest)
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["3/16", "1/1", "10000/10000"])
def test_a_part_has_its_number_and_their_count(name: str) -> None:
    part = parse_part(name)
    assert name == f"{part.number}/{part.count}"


@pytest.mark.parametrize("name", ["", "3", "0/4", "5/4", "3/", "a/b", "1/10001", "-1/4"])
def test_a_name_of_no_part_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"--part {name}: "):
        parse_part(name)


app = typer.Typer(pretty_exceptions_enable=False)
app.command()(sql_score)


def run(database: Path, predictions: Path, out: Path, *options: str) -> str:
    """Run the command; return what it prints, or its error."""
    words = ["--databases", database, "--predictions", predictions, "-o", out, *options]
    result = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(result.exception, LmEvalExtError):
        return f"error: {result.exception}"
    assert result.exception is None, result.output
    return result.stdout


def test_the_command_without_a_part_puts_parts_together(
    database: Path, predictions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    text = run(database, predictions, out, "--part", "1/3")
    assert text.startswith("part 1 of 3: 10 rows judged in ")
    summary = json.loads(run(database, predictions, out, "--part", "1/3", "--json"))
    assert summary.pop("seconds") >= 0
    assert summary == {"part": 1, "parts": 3, "rows": 10, "judged_before": 10}
    text = run(database, predictions, out)
    assert text.startswith("accuracy: ")
    assert "20 rows: 10 in " in text
    assert ", the others by earlier commands" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--parts", "4"), "--parts and --resources need --executor slurm; for one part: --part"),
        (("--resources", "{}"), "--parts and --resources need --executor slurm"),
        (("--part", "1/2", "--executor", "slurm"), "--part judges here; --executor slurm takes"),
        (("--part", "half"), "--part half: write K/N"),
        (("--executor", "slurm", "--resources", "time=3"), "--resources time=3: no JSON object"),
    ],
)
def test_options_that_do_not_go_together(
    database: Path, predictions: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert run(database, predictions, tmp_path / "out.csv", *options).startswith(
        f"error: {message}"
    )


def test_slurm_is_asked_before_anything_is_judged(
    database: Path, predictions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = JudgeOptions(database, workers=1)
    work = PartsWork(predictions, options, tmp_path / "out.csv", 2, {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OptionError, match="there is no squeue here; run this where"):
        submit_parts(work, Reporter(print, print))
