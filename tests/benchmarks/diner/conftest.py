"""Fixtures of DiNeR's tests: real names and the published glossary, read in place."""

import json
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.diner.glossary import Glossary


@pytest.fixture
def published(shared_data: Path) -> Glossary:
    """Return the authors' glossary."""
    return Glossary.read(shared_data / "diner" / "glossary.json")


@pytest.fixture
def thousand_titles(shared_data: Path) -> list[str]:
    """Return the titles of 1,000 real recipes."""
    rows = json.loads((shared_data / "diner" / "xiachufang_1000.json").read_text("utf-8"))
    return [row["conversation"][0]["input"].removesuffix("的做法") for row in rows]


@pytest.fixture
def how_to_cook_titles(shared_data: Path) -> list[str]:
    """Return the titles of 368 more."""
    rows = json.loads((shared_data / "diner" / "howtocook_all_recipes.json").read_text("utf-8"))
    return [row["name"].removesuffix("的做法") for row in rows]


@pytest.fixture
def real_titles(
    shared_data: Path, thousand_titles: list[str], how_to_cook_titles: list[str]
) -> list[str]:
    """Return the titles of all three files, each once, sorted."""
    titles = {*thousand_titles, *how_to_cook_titles}
    base_recipes = (shared_data / "diner" / "base_recipes.txt").read_text("utf-8")
    for line in base_recipes.splitlines():
        titles.update(line.split("\t")[:2])
    return sorted(titles)
