from collections.abc import Iterator
from pathlib import Path

import many_files
import pytest
from support.upstream import Upstream, serving, without_pause


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A server with the files of the source "toy", and an empty cache in tmp_path/cache."""
    with serving(tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[many_files.Server]:
    """A server with the files of the source "many", and an empty cache in tmp_path/cache."""
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with many_files.serving() as server:
        declared = many_files.write_sources(tmp_path, server.url)
        monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
        monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
        without_pause(monkeypatch)
        yield server
