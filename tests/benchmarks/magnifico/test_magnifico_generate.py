"""Examples made from databases: they are right, told from near misses, and the same for a seed."""

import csv
import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from support.generated import built, lexicon_of, natural

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.magnifico import load, own
from lm_eval_ext.benchmarks.magnifico.generate import folder, lexicon, profile
from lm_eval_ext.benchmarks.magnifico.generate.make import meanings_of
from lm_eval_ext.benchmarks.magnifico.records import NOVEL
from lm_eval_ext.cli import main
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.runs.tasks import own_manager
from lm_eval_ext.sql.distill.build import check
from lm_eval_ext.sql.distill.shipped import Pack

pytestmark = pytest.mark.slow

SEED, QUESTIONS = 5, 10

DIGEST = "9ad55ff93721470e"
"""Of all that is made of the shop: examples, dialogues, and the rows added."""


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made of one database; the database lies beside it."""
    home = tmp_path_factory.mktemp("generated")
    database = built("shop", home)
    folder.generate(database, home / "out", seed=SEED, questions=QUESTIONS)
    return home / "out"


def test_every_question_runs_and_contains_its_word(shop: Path) -> None:
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
    assert {row["form"] for row in rows} == set(NOVEL)
    assert any("+" in row["interpretation"] for row in rows)


def test_mutants_are_distinguished_and_rewrites_stay_right(shop: Path, tmp_path: Path) -> None:
    home, copy = shop.parent / "shop.sqlite", tmp_path / "copy.sqlite"
    golds = sorted({row["query"] for row in rows_of(shop)})
    Pack.read(shop / "populated.json").apply(sha256_of(home), home, golds, copy)
    for gold in check(copy, home, golds).golds:
        assert gold.rows_before > 0 and gold.rows_after > 0 and gold.near_misses > 0
        assert not gold.open_ties, gold.gold
        assert (gold.empty, gold.error, gold.broken, gold.cut_ties) == (None, None, (), 0)


@pytest.mark.parametrize(
    "options",
    [
        {"magnifico_subset": "all", "magnifico_prompt": "desc"},
        {"magnifico_subset": "all", "magnifico_prompt": "fewshot"},
        {"magnifico_subset": "combinations", "magnifico_prompt": "desc"},
        {"magnifico_subset": "dialogues", "magnifico_prompt": "dialogue",
         "magnifico_position": "mid", "magnifico_forms": "foreign"},
    ],
    ids=["desc", "fewshot", "two-words", "dialogue"],
)  # fmt: skip
def test_the_folder_is_a_task(
    shop: Path, options: dict[str, Any], kept_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"magnifico_databases": str(shop / "shop.sqlite")}
    files["magnifico_file"] = str(shop / folder.EXAMPLES)
    docs = load.dataset(magnifico_corpus="own", **files, **options)["test"]
    assert len(docs) >= 4
    assert not any("{word}" in doc["prompt"] for doc in docs)
    # The rows that were checked are used; none is searched for.
    assert "Searching" not in caplog.text
    assert "not asked" not in caplog.text


def test_a_seed_gives_the_same_bytes(shop: Path) -> None:
    """On every machine: Python's hashes differ from one run of the tests to the next."""
    # The name of the entry has the digest of the database, whose header names SQLite's version.
    (populated,) = json.loads((shop / "populated.json").read_text())["databases"].values()
    talks = [file.read_text(encoding="utf-8") for file in sorted((shop / folder.TALKS).iterdir())]
    parts = [(shop / folder.EXAMPLES).read_text(encoding="utf-8"), *talks, json.dumps(populated)]
    assert hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] == DIGEST


def test_what_was_made_says_how(shop: Path, tmp_path: Path) -> None:
    said = json.loads((shop / own.GENERATED).read_text())
    assert said["examples"] == hashlib.sha256((shop / folder.EXAMPLES).read_bytes()).hexdigest()
    assert set(said["made_with"]) == {"pyspellchecker", "sqlglot", "sqlite"}
    made = own.generated(shop / folder.EXAMPLES)
    assert made is not None and made.startswith(f"grammar-2,seed-{SEED},database-")
    for name in (folder.EXAMPLES, own.GENERATED):
        (tmp_path / name).write_bytes((shop / name).read_bytes())
    with (tmp_path / folder.EXAMPLES).open("a") as lines:
        lines.write("\n")
    assert own.generated(tmp_path / folder.EXAMPLES) is None


class Answers(LM):
    """A model that has the queries of some forms, and answers another example's in the others."""

    def __init__(self, *forms: str) -> None:
        super().__init__()
        self._forms = forms

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        docs = [one.doc for one in requests]
        others = {doc["query"]: next(d["query"] for d in docs if d["query"] != doc["query"])
                  for doc in docs}  # fmt: skip
        return [
            (doc["query"] if doc["form"] in self._forms else others[doc["query"]]).removeprefix(
                "SELECT"
            )
            for doc in docs
        ]

    loglikelihood = loglikelihood_rolling = generate_until


def scores(shop: Path, model: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Accuracies on base and novel questions, and the relative performance."""
    task = folder.task_of("shop")
    manager = own_manager([str(shop)])
    results = simple_evaluate(
        model=model, tasks=[task], task_manager=manager, bootstrap_iters=0, **options
    )
    assert results is not None
    found = results["results"][task]
    names = "execution_accuracy:base", "execution_accuracy:novel", "relative_performance"
    return tuple(found[f"populated/{name},query"] for name in names)  # type: ignore[return-value]


def test_the_task_file_is_evaluated(shop: Path, kept_cache: Path, tiny_models: Path) -> None:
    assert scores(shop, Answers("base", *NOVEL)) == (1, 1, 100)
    assert scores(shop, Answers("base")) == (1, 0, 0)
    tiny = {"pretrained": str(tiny_models / "gpt2"), "device": "cpu"}
    few = {"limit": 4, "gen_kwargs": "max_gen_toks=4"}
    assert scores(shop, "hf", model_args=tiny, **few) == (0, 0, "N/A")


def test_two_seeds_share_no_foreign_word(shop: Path) -> None:
    found = profile.read(shop / "shop.sqlite", lexicon.Lexicon())
    foreign = [
        {one.words["foreign"] for _, one in meanings_of(found, seed) if "foreign" in one.words}
        for seed in (1, 2)
    ]
    assert foreign[0]
    assert not foreign[0] & foreign[1]


def test_a_lexicon_names_what_says_nothing(tmp_path: Path) -> None:
    database = built("clinic", tmp_path)
    assert not profile.read(database, lexicon.Lexicon()).entities
    with closing(profile.open_database(database)) as connection:
        named = lexicon.read(lexicon_of("clinic"), profile.schema_of(connection))
    found = profile.read(database, named)
    assert [one.many for one in found.entities.values()] == ["patients", "doctors", "treatments"]
    assert {link.noun for link in found.links} == {"patient", "doctor"}


def test_a_mess_has_only_what_can_be_said(tmp_path: Path) -> None:
    found = profile.read(built("mess", tmp_path), lexicon.Lexicon())
    (orders,) = found.entities.values()
    assert [field.phrase for field in orders.fields] == [
        "group", "date", "unit price", "city", "name", "quantity",
    ]  # fmt: skip
    assert found.keys == 0


def _bad(kind: str, tmp_path: Path) -> tuple[list[str], str]:
    """The arguments, and what is said."""
    database = tmp_path / "bad.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE customer (name TEXT, income REAL)")
        if kind != "no rows":
            connection.executemany(
                "INSERT INTO customer VALUES (?, ?)", [(f"C {n}", n * n) for n in range(5)]
            )
        connection.commit()
    content = database.read_bytes()
    if kind in {"missing", "a folder"}:
        database.unlink()
    if kind == "a folder":
        database.mkdir()
    files = {"text": b"id,name\n1,Ana\n", "encrypted": content[::-1], "cut off": content[:4096]}
    if kind in files:
        database.write_bytes(files[kind])
    (tmp_path / "words.yaml").write_text("tables: {customer: {columns: {age: age}}}")
    more = {
        "a seed that is no number": ["--seed", "seven"],
        "a column that is not there": ["--lexicon", str(tmp_path / "words.yaml")],
        "no questions": ["--questions", "0"],
    }
    said = {
        "text": "not a SQLite database, or an encrypted one (file is not a database); export it",
        "encrypted": "not a SQLite database, or an encrypted one (file is not a database)",
        "cut off": "damaged or cut off (database disk image is malformed); copy it again",
        "missing": "there is no such file; name a SQLite database",
        "a folder": "this is a folder; name a SQLite database",
        "no rows": "no table has rows; questions are about rows",
        "locked": "cannot be read (database is locked); close the program that writes it",
        "too few": "questions are possible, not 100; use --questions",
        "no questions": "--questions 0: use 1 or more",
        "a seed that is no number": "Invalid value for '--seed'",
        "a column that is not there": "the table 'customer' has no column 'age'",
    }[kind]
    return [str(database), *more.get(kind, [])], said


@pytest.mark.parametrize(
    "kind",
    ["text", "encrypted", "cut off", "missing", "a folder", "no rows", "locked", "too few",
     "no questions", "a seed that is no number", "a column that is not there"],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, said = _bad(kind, tmp_path)
    before = sorted(tmp_path.iterdir())
    words = ["lm-eval-ext", "magnifico", "generate", *arguments, "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", words)
    with closing(sqlite3.connect(tmp_path / "bad.sqlite" if kind == "locked" else ":memory:")) as c:
        c.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == (2 if "seed" in kind else 1)
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = [one for one in err.splitlines() if "questions:" not in one]  # not the progress bar
    assert line.startswith("lm-eval-ext: error: ")
    assert said in line
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_with_files_is_not_overwritten(shop: Path) -> None:
    with pytest.raises(OptionError, match="not an empty folder"):
        folder.generate(shop / "shop.sqlite", shop, seed=1, questions=5)
    with pytest.raises(DataError, match="no such file"):
        folder.generate(shop / "none.sqlite", shop / "x", seed=1, questions=5)


def test_another_engine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 8)
    for source in (tmp_path / "a.duckdb", "postgresql://reader@localhost/shop"):
        with pytest.raises(OptionError, match="questions are made on a SQLite file only"):
            folder.generate(source, tmp_path / "out", seed=1, questions=5)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_questions_of_the_dataset_are_said_alike(real_data: Path) -> None:
    *_, total = natural.compare()
    assert total.asked == 1284
    assert len(total.ours) > 600
    assert total.chrf > 55
    words, theirs = natural.words(total.ours), natural.words(total.theirs)
    assert abs(words - theirs) < 1.5
