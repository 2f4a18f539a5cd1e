from collections.abc import Iterator
from pathlib import Path

import pytest
import server as fake


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fake.Server]:
    """A server with the files of three sources, and an empty cache in tmp_path/cache."""
    with fake.serving(tmp_path, monkeypatch) as running:
        yield running
