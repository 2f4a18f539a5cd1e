"""Fixtures of the tests of training."""

from pathlib import Path

import pytest
from support.tiny_training import WriteRecipe, recipe_writer


@pytest.fixture
def write_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteRecipe:
    """Return a function that writes a recipe which trains on 36 pairs, and returns its path."""
    return recipe_writer(tmp_path, monkeypatch)
