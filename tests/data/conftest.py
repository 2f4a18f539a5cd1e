from collections.abc import Iterator
from pathlib import Path

import pytest
from support.upstream import Upstream, serving


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A server with the files of the source "toy", and an empty cache in tmp_path/cache."""
    with serving(tmp_path, monkeypatch) as server:
        yield server
