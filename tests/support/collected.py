"""Which files pytest found tests in."""

from pathlib import Path

import pytest

COLLECTED = pytest.StashKey[set[Path]]()
"""Of the session, before any test is left out."""
