"""MAGNIFICo through plain lm_eval: planted answers, own data."""

import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.asking import value_in_folder
from support.commands import Command
from support.user_data import write_user_data

from lm_eval_ext.benchmarks.magnifico import load

pytestmark = pytest.mark.e2e

WRONG = "COUNT(*) FROM sqlite_master WHERE 1 = 0"


def plant(path: Path, docs: list[dict[str, Any]], answer: Callable[[dict[str, Any]], str]) -> None:
    rows = [{"doc": {"id": doc["id"]}, "response": answer(doc)} for doc in docs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def continuation(doc: dict[str, Any]) -> str:
    """The gold, as a model would go on after SELECT."""
    verb, _, rest = doc["query"].partition(" ")
    assert verb.lower() == "select"
    return f" {rest}"


def half_right(doc: dict[str, Any]) -> str:
    """Right on base and plausible, on every other foreign, and never on adversarial examples."""
    number = int(doc["template"].split("/")[1])
    if doc["form"] == "adversarial" or (doc["form"] == "foreign" and number % 2):
        return WRONG
    return continuation(doc)


def test_planted_answers_have_the_relative_performance_that_arithmetic_says(
    lm_eval: Command, cli: Command, kept_cache: Path, tmp_path: Path
) -> None:
    """The foreign words are those of a seed."""
    mini = {"magnifico_corpus": "mini", "magnifico_prompt": "desc"}
    old = list(load.dataset(**mini)["test"])
    docs = list(load.dataset(**mini, magnifico_seed=5)["test"])
    changed = {a["form"] for a, b in zip(old, docs, strict=True) if a["prompt"] != b["prompt"]}
    assert changed == {"foreign"}
    plant(tmp_path / "answers.jsonl", docs, half_right)
    done = lm_eval("--tasks", "magnifico_mini", "--model", "recorded",
                   "--model_args", f"path={tmp_path / 'answers.jsonl'}",
                   "--metadata", '{"magnifico_seed": 5}')  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    right: dict[str, list[bool]] = defaultdict(list)
    for doc in docs:
        if doc["form"] == "foreign":
            right[doc["interpretation"]].append(half_right(doc) != WRONG)
    shares = [100 * sum(verdicts) / len(verdicts) for verdicts in right.values()]
    value_of = partial(value_in_folder, done.output, "magnifico_mini")
    for database in ("populated", "original"):
        performance = partial(value_of, "relative_performance", database=database)
        foreign = performance(form="foreign")
        assert foreign == pytest.approx(sum(shares) / len(shares))
        assert performance(form="plausible") == 100
        assert performance(form="adversarial") == 0
        assert performance() == pytest.approx((100 + foreign) / 3)
        assert value_of("sql_execution_accuracy/base", database=database) == 1
        assert value_of("sql_failure", database=database) == 0
    signature = cli("show", str(done.output), "--signatures").stdout
    for key in ("|seed:5|", "|semantics:reference-v1|", "|overlap:keep|", "|populated:v"):
        assert key in signature


@pytest.mark.usefixtures("populated")
def test_only_the_populated_copy_sees_some_mistakes(
    lm_eval: Command, real_data: Path, tmp_path: Path
) -> None:
    """No salary above 30000 exists in one of the databases: dropping the rest goes unseen."""
    docs = list(load.dataset(magnifico_forms="plausible")["test"])

    def careless(doc: dict[str, Any]) -> str:
        if doc["interpretation"] != "salary_more_than":
            return continuation(doc)
        return continuation(doc).replace("30000", "30001")

    plant(tmp_path / "answers.jsonl", docs, careless)
    # Of the other interpretations, one example in seven says as much.
    chosen = [
        number
        for number, doc in enumerate(docs)
        if doc["interpretation"] == "salary_more_than" or number % 7 == 0
    ]
    done = lm_eval("--tasks", "magnifico_direct_plausible", "--model", "recorded",
                   "--model_args", f"path={tmp_path / 'answers.jsonl'}",
                   "--samples", json.dumps({"magnifico_direct_plausible": chosen}))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    value_of = partial(value_in_folder, done.output, "magnifico_direct_plausible")
    accuracy = "sql_execution_accuracy/base"
    assert value_of(accuracy, database="original") > value_of(accuracy)
    # One of 18 interpretations is nearly lost; its ratio says little, being wrong on both sides.
    average = "sql_average_accuracy/base"
    assert value_of(average, database="original") == 1
    assert value_of(average) < 0.96
    careless_on = {"interpretation": "salary_more_than", "database": "original"}
    assert value_of("relative_performance", **careless_on) == pytest.approx(100)
    named = done.results()["configs"]["magnifico_direct_plausible"]["metadata"]["not_scorable"]
    assert len(named["database_missing"]) == 42


def test_ones_own_database_needs_a_file_and_no_code(
    lm_eval: Command, kept_cache: Path, tmp_path: Path
) -> None:
    metadata = write_user_data("magnifico_own_desc", tmp_path).metadata
    database = Path(metadata["magnifico_databases"])
    before = database.read_bytes()
    options = {"magnifico_corpus": "own", "magnifico_subset": "all", "magnifico_prompt": "desc"}
    docs = list(load.dataset(**options, **metadata)["test"])
    # Right on the user's rows, wrong where a mast is exactly 30 high.
    plant(tmp_path / "answers.jsonl", docs, lambda doc: continuation(doc).replace("> 30", ">= 30"))
    done = lm_eval("--tasks", "magnifico_own_desc", "--model", "recorded",
                   "--model_args", f"path={tmp_path / 'answers.jsonl'}",
                   "--metadata", json.dumps(metadata))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    value_of = partial(value_in_folder, done.output, "magnifico_own_desc", interpretation="tall")
    novel = "sql_execution_accuracy/novel"
    assert (value_of(novel, database="original"), value_of(novel)) == (1, 0)
    signature = done.results()["configs"]["magnifico_own_desc"]["metadata"]["signature"]
    assert "own examples+own databases" in signature["data"]
    assert str(tmp_path) not in json.dumps(signature)
    assert database.read_bytes() == before
