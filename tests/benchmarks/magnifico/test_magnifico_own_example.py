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
    """Return a copy of the example, with its database."""
    for file in EXAMPLE.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    written(tmp_path / "yard.sqlite", (EXAMPLE / "yard.sql").read_text(encoding="utf-8"))
    return tmp_path


def documents(yard: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the documents about all words and phrases, unless an option names others."""
    options = {"magnifico_subset": "all", **options}
    return list(
        load.dataset(
            magnifico_corpus="own",
            magnifico_databases=str(yard / "yard.sqlite"),
            magnifico_file=str(yard / "yard.tsv"),
            **options,
        )["test"]
    )


def prompts_of(yard: Path, **options: Any) -> dict[str, str]:
    return {doc["id"]: doc["prompt"] for doc in documents(yard, **options)}


def test_the_page_shows_rows_of_the_example() -> None:
    """Each row of the page's table has all cells of a row of the file."""
    rows = (EXAMPLE / "yard.tsv").read_text(encoding="utf-8").splitlines()
    lines = [line for line in PAGE.splitlines() if line.startswith(("| tall", "| old"))]
    assert len(lines) >= 3
    for line in lines:
        shown = [row for row in rows if all(cell in line for cell in row.split("\t"))]
        assert shown, line


def test_words_and_phrases_are_asked_together(yard: Path) -> None:
    """The documents are those of both, with as many forms as the file gives."""
    docs = documents(yard, magnifico_prompt="desc")
    assert Counter((doc["interpretation"], doc["form"]) for doc in docs) == {
        ("tall", "base"): 2,
        ("tall", "plausible"): 2,
        ("tall", "foreign"): 2,
        ("old", "base"): 1,
        ("old", "plausible"): 1,
    }
    assert {doc["category"] for doc in docs} == {"own", "phrase"}


def test_a_phrase_is_described(yard: Path) -> None:
    """The prompt has its meaning, and the whole schema."""
    _, phrase = documents(yard, magnifico_prompt="desc", magnifico_subset="phrases")
    assert "The phrase 'of the old school' refers to being made before 1940." in phrase["prompt"]
    assert "CREATE VIEW spare" in phrase["prompt"]


def test_solved_examples_are_those_of_the_form(yard: Path) -> None:
    """Each form of the question is shown to its own form, once."""
    prompts = prompts_of(yard, magnifico_prompt="fewshot")
    assert "-- Which spare masts are above 30?\nselect name from spare" in prompts["tall/0/base"]
    assert prompts["tall/0/base"].count("select name from spare") == 1
    assert "-- Which spare masts are skalvun?\nselect" in prompts["tall/0/foreign"]


DEFINITION = "We call a mast skalvun"
FIRST_TURN = "What do you keep"
LAST_TURN = "Some of them"


@pytest.mark.parametrize(
    ("position", "turns"),
    [
        ("start", [DEFINITION, FIRST_TURN, LAST_TURN]),
        ("mid", [FIRST_TURN, DEFINITION, LAST_TURN]),
        ("end", [FIRST_TURN, LAST_TURN, DEFINITION]),
    ],
)
def test_the_dialogue_defines_the_word_where_it_should(
    yard: Path, position: str, turns: list[str]
) -> None:
    """The turn with the definition moves; base dialogues always begin with it."""
    docs = documents(
        yard,
        magnifico_subset="dialogues",
        magnifico_prompt="dialogue",
        magnifico_position=position,
    )
    assert Counter(doc["form"] for doc in docs) == {"base": 2, "plausible": 2, "foreign": 2}
    prompts = {doc["id"]: doc["prompt"] for doc in docs}
    offsets = [prompts["tall/0/foreign"].index(turn) for turn in turns]
    assert offsets == sorted(offsets)
    assert prompts["tall/0/base"].startswith("User1: We call a mast concept_word")


@pytest.mark.parametrize("prompt", ["desc", "fewshot"])
def test_fresh_words_replace_foreign_ones_in_any_case(yard: Path, prompt: str) -> None:
    """No prompt has the file's foreign word."""
    file = yard / "yard.tsv"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("masts are skalvun?", "masts are SKALVUN?"), encoding="utf-8")
    for text in prompts_of(yard, magnifico_prompt=prompt, magnifico_seed=3).values():
        assert "skalvun" not in text.lower()


FAILING_ROW = "tall\tlofty\ta height above 30\twhich are lofty?\twhich are?\tselect moss from mast"


def test_a_query_that_fails_is_named_with_its_row_and_reason(
    yard: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Warnings name a row to ask and one to show, and the column that each lacks."""
    file = yard / "yard.tsv"
    shown = FAILING_ROW.replace("which are", "say which are").replace("moss", "fern") + "\t\tyes"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{FAILING_ROW}\n{shown}\n")
    with caplog.at_level(logging.WARNING):
        docs = documents(yard, magnifico_prompt="direct")
    assert len(docs) == 8
    assert "2 of 10 examples cannot be scored" in caplog.text
    name = re.escape(str(file))
    assert re.search(rf"{name}:11: the query fails:.* moss.*is not asked", caplog.text)
    assert re.search(rf"{name}:12: the query fails:.* fern", caplog.text)


def test_where_nothing_can_be_asked_the_row_is_in_the_error(yard: Path) -> None:
    """The error has the cause, the number of examples, and the row."""
    file = yard / "yard.tsv"
    header, *_ = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{header}\n{FAILING_ROW}\n", encoding="utf-8")
    with pytest.raises(
        DataError,
        match=r"gold_error \(no such column: moss\): 2\); .*yard\.tsv:2: the query fails: .*moss",
    ):
        documents(yard)


def test_a_subset_without_rows_is_refused(yard: Path) -> None:
    """The error names the option."""
    file = yard / "yard.tsv"
    header, *_ = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{header}\n{FAILING_ROW}\n", encoding="utf-8")
    with pytest.raises(DataError, match="no rows for magnifico_subset=phrases"):
        documents(yard, magnifico_subset="phrases")


@pytest.fixture
def uneven_yard(yard: Path) -> Path:
    """Return the example without one foreign question."""
    file = yard / "yard.tsv"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(line for line in lines if "How many sk" not in line), "utf-8")
    return yard


def test_forms_with_different_questions_are_named(
    uneven_yard: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says that accuracies of forms are of different questions."""
    with caplog.at_level(logging.WARNING):
        documents(uneven_yard, magnifico_prompt="direct")
    assert "the forms of tall ask different questions" in caplog.text


def test_a_single_form_is_asked_with_its_own_base_questions(
    uneven_yard: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is different then, so there is no warning."""
    with caplog.at_level(logging.WARNING):
        docs = documents(uneven_yard, magnifico_prompt="direct", magnifico_forms="foreign")
    assert "different questions" not in caplog.text
    assert Counter(doc["form"] for doc in docs) == {"base": 1, "foreign": 1}
