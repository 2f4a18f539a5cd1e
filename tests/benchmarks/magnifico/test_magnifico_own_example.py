"""The example of the documentation, read, asked with every prompt, and scored."""

import logging
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.databases import written

from lm_eval_ext.benchmarks.magnifico import load
from lm_eval_ext.errors import DataError

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "magnifico_own"
PAGE = (ROOT / "docs" / "benchmarks" / "magnifico.md").read_text(encoding="utf-8")


@pytest.fixture
def yard(tmp_path: Path, kept_cache: Path) -> Path:
    """A copy of the example, with its database."""
    for file in EXAMPLE.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    written(tmp_path / "yard.sqlite", (EXAMPLE / "yard.sql").read_text(encoding="utf-8"))
    return tmp_path


def asked(yard: Path, **options: str) -> list[dict[str, Any]]:
    files = {
        "magnifico_databases": str(yard / "yard.sqlite"),
        "magnifico_file": str(yard / "yard.tsv"),
    }
    options = {"magnifico_subset": "all", **options}
    return list(load.dataset(magnifico_corpus="own", **files, **options)["test"])


def test_the_page_shows_rows_of_the_example() -> None:
    rows = (EXAMPLE / "yard.tsv").read_text(encoding="utf-8").splitlines()
    shown = [line for line in PAGE.splitlines() if line.startswith(("| tall", "| old"))]
    assert len(shown) >= 3
    for line in shown:
        assert any(all(cell in line for cell in row.split("\t")) for row in rows), line


def test_words_and_phrases_are_asked_together(yard: Path) -> None:
    docs = asked(yard, magnifico_prompt="desc")
    assert Counter((doc["interpretation"], doc["form"]) for doc in docs) == {
        ("tall", "base"): 2, ("tall", "plausible"): 2, ("tall", "foreign"): 2,
        ("old", "base"): 1, ("old", "plausible"): 1,
    }  # fmt: skip
    assert {doc["category"] for doc in docs} == {"own", "phrase"}
    (phrase,) = asked(yard, magnifico_prompt="desc", magnifico_subset="phrases")[1:]
    assert "The phrase 'of the old school' refers to being made before 1940." in phrase["prompt"]
    assert "CREATE VIEW spare" in phrase["prompt"]


def test_solved_examples_are_those_of_the_form(yard: Path) -> None:
    by_id = {doc["id"]: doc["prompt"] for doc in asked(yard, magnifico_prompt="fewshot")}
    assert "-- Which spare masts are above 30?\nselect name from spare" in by_id["tall/0/base"]
    assert by_id["tall/0/base"].count("select name from spare") == 1
    assert "-- Which spare masts are skalvun?\nselect" in by_id["tall/0/foreign"]


@pytest.mark.parametrize("position", ["start", "mid", "end"])
def test_the_dialogue_defines_the_word_where_it_should(yard: Path, position: str) -> None:
    options = {"magnifico_subset": "dialogues", "magnifico_prompt": "dialogue"}
    docs = asked(yard, magnifico_position=position, **options)
    assert Counter(doc["form"] for doc in docs) == {"base": 2, "plausible": 2, "foreign": 2}
    by_id = {doc["id"]: doc["prompt"] for doc in docs}
    order = ["We call a mast skalvun", "What do you keep", "Some of them"]
    order.insert({"start": 0, "mid": 1, "end": 2}[position], order.pop(0))
    places = [by_id["tall/0/foreign"].index(turn) for turn in order]
    assert places == sorted(places)
    assert by_id["tall/0/base"].startswith("User1: We call a mast concept_word")


def test_fresh_words_replace_foreign_ones_in_any_case(yard: Path) -> None:
    file = yard / "yard.tsv"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("masts are skalvun?", "masts are SKALVUN?"), encoding="utf-8")
    for kind in ("desc", "fewshot"):
        docs = asked(yard, magnifico_prompt=kind, magnifico_seed=3)  # type: ignore[arg-type]
        assert not any("skalvun" in doc["prompt"].lower() for doc in docs)


def test_a_query_that_fails_is_named_with_its_row_and_reason(
    yard: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = yard / "yard.tsv"
    row = "tall\tlofty\ta height above 30\twhich are lofty?\twhich are?\tselect moss from mast"
    shown = row.replace("which are", "say which are").replace("moss", "fern") + "\t\tyes"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{row}\n{shown}\n")
    with caplog.at_level(logging.WARNING):
        docs = asked(yard, magnifico_prompt="direct")
    assert len(docs) == 8
    assert "2 of 10 examples cannot be scored" in caplog.text
    for said in (r":11: the query fails:.* moss.*is not asked", r":12: the query fails:.* fern"):
        assert re.search(re.escape(str(file)) + said, caplog.text)


def test_where_nothing_can_be_asked_the_row_is_in_the_error(yard: Path) -> None:
    file = yard / "yard.tsv"
    head = file.read_text(encoding="utf-8").splitlines()[0]
    row = "tall\tlofty\thigh\twhich are lofty?\twhich are high?\tselect moss from mast"
    file.write_text(f"{head}\n{row}\n", encoding="utf-8")
    with pytest.raises(
        DataError,
        match=r"gold_error \(no such column: moss\): 2\); .*yard\.tsv:2: the query fails: .*moss",
    ):
        asked(yard)
    with pytest.raises(DataError, match="no rows for magnifico_subset=phrases"):
        asked(yard, magnifico_subset="phrases")


def test_forms_with_different_questions_are_named(
    yard: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = yard / "yard.tsv"
    kept = [
        row for row in file.read_text(encoding="utf-8").splitlines() if "How many sk" not in row
    ]
    file.write_text("\n".join(kept), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        asked(yard, magnifico_prompt="direct")
        assert "the forms of tall ask different questions" in caplog.text
        caplog.clear()
        docs = asked(yard, magnifico_prompt="direct", magnifico_forms="foreign")
    assert "different questions" not in caplog.text
    assert Counter(doc["form"] for doc in docs) == {"base": 1, "foreign": 1}
