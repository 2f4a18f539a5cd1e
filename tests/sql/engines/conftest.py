"""What the tests of all engines share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def yard_sql() -> str:
    """The script of the documentation's example, which all engines run."""
    script = Path(__file__).parents[3] / "examples" / "magnifico_own" / "yard.sql"
    return script.read_text(encoding="utf-8")
