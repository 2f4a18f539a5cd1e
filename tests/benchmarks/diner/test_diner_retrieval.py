"""The BM25 index: equal to a plain-Python library's, cached, and rebuilt if damaged."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import diner_own

from lm_eval_ext.benchmarks.diner import retrieval
from lm_eval_ext.errors import DataError

pytestmark = pytest.mark.slow


def corpus(size: int, seed: int = 0) -> list[str]:
    """Recipes of our own steps; some occur twice."""
    rng = np.random.default_rng(seed)
    return [
        "，".join(rng.choice(diner_own.STEPS, size=rng.integers(1, 9))) + "。" for _ in range(size)
    ]


@pytest.fixture(scope="module", autouse=True)
def _one_dictionary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """jieba's dictionary is read once for the module."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("jieba")))
        retrieval.words_of("土豆")
        yield


def test_words_are_words() -> None:
    assert retrieval.words_of("把土豆切成丝，放入锅中。 180度烤20分钟！") == [
        "把", "土豆", "切成", "丝", "放入", "锅中", "180", "度", "烤", "20", "分钟",
    ]  # fmt: skip
    assert retrieval.words_of("，。！ \n") == []
    assert retrieval.words_of("Oven") == ["oven"]


def test_jieba_prints_nothing_and_keeps_its_dictionary_with_ours(tmp_path: Path) -> None:
    code = "from lm_eval_ext.benchmarks.diner import retrieval; print(retrieval.words_of('土豆'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LM_EVAL_EXT_CACHE": str(tmp_path), "TMPDIR": str(tmp_path / "none")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['土豆']"
    assert done.stderr == ""
    assert [path.name for path in (tmp_path / "jieba").iterdir()] == ["jieba.cache"]


@given(st.integers(0, 10_000))
def test_scores_are_those_of_the_plain_library(seed: int) -> None:
    """rank-bm25 multiplies by k1 + 1, which orders nothing; its epsilon is a floor of its own."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    texts = corpus(30, seed)
    index = retrieval.build(texts)
    plain = rank_bm25.BM25Okapi(
        [retrieval.words_of(text) for text in texts], k1=retrieval.K1, b=retrieval.B, epsilon=0
    )
    for query in (*texts[:3], "土豆加盐", "，"):
        expected = plain.get_scores(retrieval.words_of(query)) / (retrieval.K1 + 1)
        assert index.scores(query) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_the_same_real_recipes_come_first(shared_data: Path) -> None:
    rank_bm25 = pytest.importorskip("rank_bm25")
    content = json.loads((shared_data / "diner/xiachufang_1000.json").read_text(encoding="utf-8"))
    texts = [row["conversation"][0]["output"] for row in content]
    index = retrieval.build(texts)
    plain = rank_bm25.BM25Okapi(
        [retrieval.words_of(text) for text in texts], k1=retrieval.K1, b=retrieval.B, epsilon=0
    )
    for query in texts[::40]:
        ours = index.scores(query)
        expected = plain.get_scores(retrieval.words_of(query)) / (retrieval.K1 + 1)
        # float32 against float64: places whose scores differ by less are tied.
        for place, other in zip(np.argsort(-ours)[:10], np.argsort(-expected)[:10], strict=True):
            assert expected[place] == pytest.approx(expected[other], rel=1e-5)


def test_a_word_that_most_recipes_have_counts_nothing() -> None:
    index = retrieval.build(["盐，土豆", "盐，鸡蛋", "盐，面粉"])
    assert index.scores("盐").tolist() == [0, 0, 0]
    assert index.scores("豆腐").tolist() == [0, 0, 0]


def test_nothing_to_search_is_said() -> None:
    with pytest.raises(DataError, match="no training recipe has a word"):
        retrieval.build(["，", "。"])


class TestKept:
    def folder(self, cache: Path) -> Path:
        (found,) = (path for path in (cache / "diner").iterdir() if path.is_dir())
        return found

    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path))
        return tmp_path

    def test_it_is_built_once(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = corpus(40)
        built = retrieval.index_of(texts)
        with monkeypatch.context() as patched:
            patched.setattr(retrieval, "build", None)
            kept = retrieval.index_of(list(texts))
        assert kept.size == built.size == 40
        for query in texts[:5]:
            assert kept.scores(query).tolist() == built.scores(query).tolist()

    def test_other_texts_or_settings_have_an_index_of_their_own(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        retrieval.index_of(["土豆", "鸡蛋"])
        retrieval.index_of(["土豆鸡", "蛋"])
        retrieval.index_of(["鸡蛋", "土豆"])
        monkeypatch.setattr(retrieval, "B", 0.5)
        retrieval.index_of(["土豆", "鸡蛋"])
        monkeypatch.setattr(retrieval, "segmenter_version", lambda: "another jieba")
        retrieval.index_of(["土豆", "鸡蛋"])
        assert len([path for path in (cache / "diner").iterdir() if path.is_dir()]) == 5

    @pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "no sums", "odd sums"])
    def test_a_broken_one_is_built_again(
        self, cache: Path, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        texts = corpus(40)
        expected = retrieval.index_of(texts).scores(texts[0]).tolist()
        sums = self.folder(cache) / retrieval.SUMS
        data = self.folder(cache) / "data.csc.index.npy"
        if damage == "cut":
            data.write_bytes(data.read_bytes()[:-9])
        elif damage == "flipped":
            content = bytearray(data.read_bytes())
            content[-3] ^= 0x40
            data.write_bytes(content)
        elif damage == "missing":
            data.unlink()
        elif damage == "no sums":
            sums.unlink()
        else:
            sums.write_text("[1")
        with caplog.at_level(logging.WARNING):
            assert retrieval.index_of(texts).scores(texts[0]).tolist() == expected
        # Without sums it is one whose making was interrupted: nothing to warn of.
        assert ("is broken" in caplog.text) == (damage != "no sums")
        caplog.clear()
        assert retrieval.index_of(texts).scores(texts[0]).tolist() == expected
        assert not caplog.records

    def test_a_cache_that_cannot_be_written_is_one_line(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (cache / "file").write_text("")
        monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(cache / "file"))
        with pytest.raises(DataError, match="Set LM_EVAL_EXT_CACHE to a writable folder"):
            retrieval.index_of(["土豆"])
