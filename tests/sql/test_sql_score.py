"""``sql-score``, through its command function and as a whole."""

import csv
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer
from support.databases import written
from support.small_databases import GOLD, PEOPLE, SLOW, wait_for
from typer.testing import CliRunner

from lm_eval_ext.cli.sql_score import sql_score
from lm_eval_ext.errors import DataError, LmEvalExtError
from lm_eval_ext.sql import Example, Executor, Prediction, Verdict, databases_at
from lm_eval_ext.sql.partial import PartialOutput
from lm_eval_ext.sql.parts import FileContent
from lm_eval_ext.sql.scoring import JudgeOptions, score_file
from lm_eval_ext.sql.values import STATUSES

pytestmark = pytest.mark.slow

ROWS = [
    ("people", GOLD, "SELECT 6", "correct"),
    ("people", GOLD, "SELECT 7", "wrong"),
    ("PEOPLE", GOLD, "DROP TABLE people", "prediction_error"),
    ("people", GOLD, "", "prediction_error"),
    ("people", GOLD, SLOW, "prediction_timeout"),
    ("people", GOLD, "SELECT zeroblob(9999999)", "prediction_too_large"),
    ("people", "SELECT nix", "SELECT 1", "gold_error"),
    ("../people", GOLD, "SELECT 6", "database_missing"),
]
COUNTS = dict.fromkeys(STATUSES, 0) | Counter(status for *_, status in ROWS)
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(sql_score)


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.tsv"
    with path.open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["note", "db_id", "gold_sql", "predicted_sql", "other"])
        table.writerows([f"n{i}", *row[:3], 'a "b"'] for i, row in enumerate(ROWS))
    return path


def run(*arguments: str | Path) -> tuple[str, str]:
    """Run the command; return its output and the line of its error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is None:
        return result.stdout, ""
    if isinstance(result.exception, SystemExit):
        return result.stdout, result.stderr.splitlines()[-2]
    assert isinstance(result.exception, LmEvalExtError), result.output
    return result.stdout, str(result.exception)


def test_rows_come_back_with_their_status(databases: Path, predictions: Path) -> None:
    """Verdicts can be written into the file of predictions, if the user names it."""
    text, error = run(
        "--databases", databases, "--predictions", predictions, "--timeout", "1", "-o", predictions
    )
    assert error == ""
    with predictions.open(newline="") as file:
        head, *rows = csv.reader(file, delimiter="\t")
    assert head == ["note", "db_id", "gold_sql", "predicted_sql", "other", "status", "reason"]
    columns = [[*row[:3], 'a "b"', row[3]] for row in ROWS]
    assert [row[1:6] for row in rows] == columns
    reasons = {row[5]: row[6] for row in rows}
    assert reasons["correct"] == ""
    assert all(reason for status, reason in reasons.items() if status != "correct")
    summary, _, listed_rows = text.partition("\n\n")
    assert listed_rows.startswith("not correct\n")
    lines = [line.strip() for line in summary.splitlines()]
    remedy = lines.pop(2)
    assert remedy.startswith("database_missing: name by --databases a folder that has it")
    assert lines[:3] == [
        "accuracy: 16.67 % (1 of 6 rows scored)",
        "not scored: 2 rows (gold_error 1, database_missing 1)",
        "no interval from 1 database, fewer than 6",
    ]
    assert {line.split()[0]: int(line.split()[1]) for line in lines[3:-2]} == COUNTS
    assert re.fullmatch(r"8 rows in [\d.]+ s", lines[-2])
    assert re.fullmatch(r"signature: reference-v\d\|timeout:1s\|sqlite:3\.[\d.]+", lines[-1])


def test_json_and_a_summary_as_json(databases: Path, predictions: Path) -> None:
    out = predictions.with_suffix(".jsonl")
    text, error = run(
        "--databases", databases, "--predictions", predictions, "-o", out, "--json",
        "--semantics", "strict", "--workers", "1", "--timeout", "1",
    )  # fmt: skip
    assert error == ""
    summary = json.loads(text)
    assert re.match(r"strict-v\d\|timeout:1s\|", summary.pop("signature"))
    assert summary.pop("seconds") > 0
    assert summary == {
        "rows": 8, "scored": 6, "correct": 1, "accuracy": 1 / 6, "counts": COUNTS, "low": None,
        "high": None, "databases": 1, "original_correct": None, "by": [], "remarks": [],
        "judged_before": 0,
    }  # fmt: skip
    statuses_written = [json.loads(line)["status"] for line in out.read_text().splitlines()]
    assert statuses_written == [row[3] for row in ROWS]


def test_no_row_that_can_be_scored(databases: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "a.tsv", tmp_path / "b.tsv"
    path.write_text("db_id\tgold_sql\tpredicted_sql\nnobody\tSELECT 1\tSELECT 1\n")
    text, _ = run("--databases", databases, "--predictions", path, "-o", out, "--json")
    assert json.loads(text)["accuracy"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"--semantics": "fuzzy"}, "unknown semantics 'fuzzy'; choose one of: reference,"),
        ({"--predictions": "{tmp}/p.xls"}, "unknown ending '.xls'; use .csv, .tsv or .jsonl"),
        ({"--suite": "{tmp}/none"}, "--suite {tmp}/none: there is no such folder"),
        ({"--suite": "{tmp}/folder.tsv"}, "no suite for any of 1 database"),
        ({"--by": "ohter"}, "--by ohter: the file has no such column; available are note"),
        ({"--predictions": "{tmp}/none.tsv"}, "cannot read {tmp}/none.tsv: No such file"),
        ({"--predictions": "{tmp}/bad.tsv"}, "bad.tsv, line 1: no column gold_sql, predicted_sql"),
        ({"--predictions": "{tmp}/folder.tsv"}, "cannot read {tmp}/folder.tsv"),
        ({"-o": "{tmp}/out.txt"}, "out.txt: unknown ending '.txt'"),
        ({"-o": "{tmp}/no/out.tsv"}, "the folder {tmp}/no does not exist"),
        ({"-o": "{tmp}/folder.tsv"}, "this is a folder"),
        ({"--databases": "{tmp}/none"}, "databases='{tmp}/none' does not exist; name a SQLite"),
        ({"--databases": "{tmp}/bad.tsv"}, "bad.tsv: neither a SQLite nor a DuckDB database"),
        ({"--timeout": "0"}, "--timeout 0: must be a number above 0"),
        ({"--timeout": "nan"}, "--timeout nan: must be"),
        ({"--workers": "0"}, "Invalid value for '--workers'"),
        ({"--workers": "65"}, "Invalid value for '--workers'"),
        ({"-o": f"{{tmp}}/{'x' * 250}.tsv"}, "x.tsv: File name too long"),
    ],
)
def test_one_line_for_what_is_wrong_and_nothing_written(
    databases: Path, predictions: Path, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    (tmp_path / "bad.tsv").write_text("db_id\n")
    (tmp_path / "folder.tsv").mkdir()
    before = sorted(tmp_path.rglob("*"))
    arguments: dict[str, Any] = {
        "--databases": databases, "--predictions": predictions, "-o": tmp_path / "out.tsv",
        **{name: value.format(tmp=tmp_path) for name, value in options.items()},
    }  # fmt: skip
    text, error = run(*chain.from_iterable(arguments.items()))
    assert text == ""
    assert message.format(tmp=tmp_path) in error
    assert "\n" not in error
    assert sorted(tmp_path.rglob("*")) == before


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from lm_eval_ext.sql.scoring import JudgeOptions, score_file
print("ready", flush=True)
path, databases, out = map(Path, sys.argv[1:])
score_file(path, JudgeOptions(databases, timeout_s=5000), out)
"""


class Scorer:
    """Stands in for the executor: it notes the queries, and fails after some rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries: list[str] = []
        self.error: Exception = RuntimeError("a defect")
        self.rows_before_error = 99
        scorer = self

        def score(_: Executor, examples: Iterable[Example], *, semantics: str) -> Iterator[Verdict]:
            return scorer.score(examples, semantics=semantics)

        monkeypatch.setattr(Executor, "score", score)

    def score(self, examples: Iterable[Example], *, semantics: str) -> Iterator[Verdict]:
        assert semantics
        self.queries = []
        for example in examples:
            if len(self.queries) == self.rows_before_error:
                raise self.error
            self.queries.append(example.predicted)
            yield Verdict("wrong")


def statuses(out: Path) -> list[str]:
    return [line.split("\t")[-2] for line in out.read_text().splitlines()[1:]]


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_the_same_command_goes_on_after_any_signal(
    databases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal_name: str
) -> None:
    path, out = tmp_path / "a.tsv", tmp_path / "out.tsv"
    queries = ("SELECT 5", "SELECT 6", SLOW, "SELECT 3 + 3")
    rows = [f"people\t{GOLD}\t{sql}\n" for sql in queries]
    path.write_text("".join(["db_id\tgold_sql\tpredicted_sql\n", *rows]))
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), str(databases), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    wait_for(lambda: any(x.read_text().count("{") == 2 for x in tmp_path.glob("out.tsv.*.part")))
    child.send_signal(getattr(signal, signal_name))
    child.communicate(timeout=300)  # far less than the query's time
    assert child.returncode != 0
    assert len(list(tmp_path.iterdir())) == 2

    scorer = Scorer(monkeypatch)
    score_file(path, JudgeOptions(databases, timeout_s=5000), out)
    assert scorer.queries == [SLOW, "SELECT 3 + 3"]
    assert statuses(out) == ["wrong", "correct", "wrong", "wrong"]
    assert sorted(tmp_path.iterdir()) == [path, out]


class InterruptedScoring:
    """Five rows of which two are judged when an error ends the command."""

    def __init__(self, folder: Path, scorer: Scorer) -> None:
        self.folder = folder
        self.scorer = scorer
        self.predictions = folder / "a.jsonl"
        self.out = folder / "out.tsv"
        self.database = written(folder / "people.sqlite", PEOPLE)
        self.write_rows([str(number) for number in range(5)])

    def write_rows(self, queries: Iterable[str]) -> None:
        """Write a row for each predicted query."""
        lines = []
        for query in queries:
            row = {"db_id": "people", "gold_sql": GOLD, "predicted_sql": query}
            lines.append(json.dumps(row) + "\n")
        self.predictions.write_text("".join(lines))

    def interrupt(self, error: Exception, message: str) -> None:
        """Judge until the error comes, which ends the command with this message."""
        self.scorer.error = error
        self.scorer.rows_before_error = 2
        with pytest.raises(type(error), match=message):
            score_file(self.predictions, JudgeOptions(self.database), self.out)
        assert not self.out.exists()
        self.scorer.rows_before_error = 99

    def partial_output(self) -> Path:
        """Return the file of what is judged."""
        (partial,) = self.folder.glob("*.part")
        return partial

    def rows_judged_anew(self, **options: Any) -> int:
        """Go on until the end; return how many rows are judged now."""
        summary = score_file(self.predictions, JudgeOptions(self.database, **options), self.out)
        assert statuses(self.out) == ["wrong"] * summary.rows
        assert not list(self.folder.glob("*.part"))
        return len(self.scorer.queries)


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InterruptedScoring:
    """A command that a defect has ended."""
    scoring = InterruptedScoring(tmp_path, Scorer(monkeypatch))
    scoring.interrupt(RuntimeError("a defect"), "a defect")
    return scoring


def test_rows_that_were_judged_are_not_judged_again(interrupted: InterruptedScoring) -> None:
    assert interrupted.rows_judged_anew() == 3


def test_a_torn_line_is_judged_again(interrupted: InterruptedScoring) -> None:
    """A system that stops may leave half a line."""
    partial = interrupted.partial_output()
    partial.write_text(partial.read_text().removesuffix("}\n"))
    assert interrupted.rows_judged_anew() == 4


def test_an_error_that_a_user_can_mend_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring = InterruptedScoring(tmp_path, Scorer(monkeypatch))
    message = r"a .*; 2 rows are judged and kept in out\.tsv\..*: the same command goes on"
    scoring.interrupt(DataError("a server that went away"), message)
    assert scoring.rows_judged_anew() == 3


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        pytest.param({"workers": 1}, 3, id="the number of workers"),
        pytest.param({"semantics": "strict"}, 5, id="the rule"),
        pytest.param({"timeout_s": 3}, 5, id="the limit of time"),
    ],
)
def test_statuses_are_kept_under_options_that_change_none(
    interrupted: InterruptedScoring, options: dict[str, Any], rows: int
) -> None:
    assert interrupted.rows_judged_anew(**options) == rows


def test_statuses_are_kept_for_the_same_rows_only(interrupted: InterruptedScoring) -> None:
    interrupted.write_rows(["other"] * 5)
    assert interrupted.rows_judged_anew() == 5


def test_statuses_are_kept_for_the_same_database_only(interrupted: InterruptedScoring) -> None:
    written(interrupted.database, "CREATE TABLE more (a)")
    assert interrupted.rows_judged_anew() == 5


def test_kept_verdicts_have_their_reason_and_database(tmp_path: Path) -> None:
    """A resumed command writes the same columns as one that was not interrupted."""
    database = written(tmp_path / "people.sqlite", PEOPLE)
    predictions = [Prediction("people", GOLD, str(i)) for i in range(3)]
    verdicts = [
        Verdict("wrong", "2 rows \u2028 instead", "strict-v2", "small-3", "correct"),
        Verdict("correct", "", "strict-v2", "copy", "correct"),
    ]
    content = FileContent(predictions)
    partial = PartialOutput(tmp_path / "out.csv", content, databases_at(database), "a signature")
    with partial.appending() as log:
        log.add(2, verdicts[0])
        log.add(0, verdicts[1])
    # Cut off within a line, and within a character.
    partial.path().write_bytes(partial.path().read_bytes() + b'{"row": 1, "status": "wro\xc3')
    with partial.appending() as log:
        log.add(9, verdicts[0])  # of a longer file
    assert partial.verdicts() == {2: verdicts[0], 0: verdicts[1]}
    with_other_signature = PartialOutput(
        tmp_path / "out.csv", content, databases_at(database), "another"
    )
    assert with_other_signature.verdicts() == {}
    with_other_signature.remove()
    assert list(tmp_path.iterdir()) == [database]
