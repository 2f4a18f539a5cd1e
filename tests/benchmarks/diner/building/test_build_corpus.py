"""From corpus to cleaned table: titles, instructions, and errors in a corpus."""

import _thread
import gzip
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.diner.build import corpus, recipes
from lm_eval_ext.benchmarks.diner.build.engine import Engine
from lm_eval_ext.benchmarks.diner.glossary import clean_name
from lm_eval_ext.errors import DataError, OptionError

pytestmark = pytest.mark.slow

BRACKETS = "()（）﹙﹚[]［］{}｛｝<>＜＞〈〉【】〖〗〔〕〘〙〚〛︻︼「」《》"  # noqa: RUF001
PIECES = st.one_of(
    st.sampled_from([*BRACKETS, "红烧", "肉", "\u3007", "DIY", " ", "　", "💕", "\n", "'", "\\"]),
    st.characters(exclude_categories=("Cs",)),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path / "spill", memory_gib=0.5)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("spill"), memory_gib=0.5)
    yield made
    made.close()


def in_sql(engine: Engine, titles: list[str]) -> list[str]:
    sql = f"SELECT {corpus.clean_name_sql('t')} FROM (SELECT unnest(?::VARCHAR[]) AS t)"
    return [name for (name,) in engine.run(sql, [titles]).fetchall()]


def cleaned(engine: Engine, folder: Path, *lines: str | dict[str, Any]) -> list[tuple[Any, ...]]:
    path = folder / "corpus.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    table, _ = corpus.clean(engine, path, folder)
    return engine.run(f"SELECT * FROM read_parquet('{table}') ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    "name", ["a[1].jsonl", "a*.jsonl", "a?.jsonl", "a[!x].jsonl", "a[[]].jsonl"]
)
def test_a_corpus_is_the_file_of_its_name(engine: Engine, tmp_path: Path, name: str) -> None:
    """Not the files that fit its name where the database takes it for a pattern."""
    for other in ("a1.jsonl", "ab.jsonl", "a[.jsonl"):
        (tmp_path / other).write_text('{"name": "别的"}\n', encoding="utf-8")
    (tmp_path / name).write_text('{"name": "红烧肉"}\n', encoding="utf-8")
    table, _ = corpus.clean(engine, tmp_path / name, tmp_path)
    assert engine.run(f"SELECT name FROM read_parquet('{table}')").fetchall() == [("红烧肉",)]


@pytest.mark.parametrize("folder", ["name=x", "instruction=2024-01-01"])
def test_the_names_of_folders_are_no_columns(engine: Engine, tmp_path: Path, folder: str) -> None:
    """Though the database would read ``name=x`` so."""
    place = tmp_path / folder
    place.mkdir()
    title, text = "红烧肉", "把肉切成块放进锅里慢慢煮到软烂为止再加盐"
    row = {"name": title, "recipeInstructions": [text]}
    (place / "corpus.jsonl").write_text(f"{json.dumps(row)}\n" * 20, encoding="utf-8")
    table, _ = corpus.clean(engine, place / "corpus.jsonl", place)
    recipes.simplify(engine, table)
    assert recipes.title_counts(engine) == ({title: 20}, (20, 20, 1))
    assert recipes.collect(engine, [title]) == {title: (1, 20)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(titles=st.lists(st.lists(PIECES, max_size=14).map("".join), min_size=1, max_size=20))
def test_titles_are_cleaned_in_sql_as_in_python(shared_engine: Engine, titles: list[str]) -> None:
    assert in_sql(shared_engine, titles) == [clean_name(title) for title in titles]


@pytest.mark.parametrize(
    "title",
    [
        "红烧肉(妈妈版)",
        "（冬日）红烧肉【第2版】",  # noqa: RUF001
        "红烧(很(好(吃(的)))))肉",
        "((((((((红烧))))))))肉",
        "红烧肉(没有关上",
        "红烧)肉(",
        "红烧（混用)肉",  # noqa: RUF001
        "𠀀𪚥肉",
        "カレー红烧肉ハンバーグ",
        "红\u200b烧\u0301肉\ufe0f",
        "豈肉",
        "",
        "'; DROP TABLE x; --红烧肉",
    ],
)
def test_hostile_titles(shared_engine: Engine, title: str) -> None:
    assert in_sql(shared_engine, [title]) == [clean_name(title)]


def test_real_titles(shared_engine: Engine, shared_data: Path) -> None:
    path = shared_data / "diner" / "xiachufang_1000.json"
    recipes = json.loads(path.read_text(encoding="utf-8"))
    titles = [recipe["conversation"][0]["input"] for recipe in recipes]
    assert in_sql(shared_engine, titles) == [clean_name(title) for title in titles]


def test_steps_become_one_line(engine: Engine, tmp_path: Path) -> None:
    rows = cleaned(
        engine,
        tmp_path,
        {
            "name": "红烧肉(1)",
            "dish": "Unknown",
            "recipeIngredient": ["500克肉", None],
            "recipeInstructions": [" 切\n\n块 ", "", "　", None, "洗净！", "煮 5", "好吃💕"],  # noqa: RUF001
        },
    )
    # An end mark where there is neither punctuation nor a sign; space of any kind becomes one.
    assert rows == [("红烧肉", "切 块。洗净！煮 5。好吃💕", 4, ["500克肉", None])]  # noqa: RUF001


def test_what_is_missing_is_empty(engine: Engine, tmp_path: Path) -> None:
    rows = cleaned(
        engine, tmp_path, {}, {"name": None, "recipeInstructions": None}, "", {"name": "汤"}
    )
    assert rows == [("", "", 0, None), ("", "", 0, None), ("汤", "", 0, None)]


def test_gzip(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.write('{"name": "汤"}\n')
    table, _ = corpus.clean(engine, path, tmp_path)
    assert engine.run(f"SELECT name FROM read_parquet('{table}')").fetchall() == [("汤",)]
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.write('{"name": "汤"}\n{"name": 汤}\n')
    with pytest.raises(DataError, match=r"line 2: it is not JSON in UTF-8"):
        corpus.clean(engine, path, tmp_path)


def test_a_broken_gzip_file(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.write('{"name": "汤"}\n')
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match="cannot read the corpus") as caught:
        corpus.clean(engine, path, tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("cleaned-*"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "it is not JSON in UTF-8"),
        ('{"name": "汤"', "it is not JSON in UTF-8"),
        (r'{"name": "\ud800"}', "it is not JSON in UTF-8"),
        ("[1, 2]", "it is not a JSON object"),
        ('"汤"', "it is not a JSON object"),
        ('{"name": "汤", "recipeInstructions": "煮"}', '"recipeInstructions" is one text, not a'),
        ('{"name": "汤", "recipeInstructions": "[煮]"}', '"recipeInstructions" is one text, not a'),
        ('{"name": "汤", "recipeIngredient": ""}', '"recipeIngredient" is one text, not a'),
        ('\ufeff{"name": "汤"}', "it begins with a byte order mark"),
        ('{"name": "汤", "name": "肉"}', '"name" occurs twice'),
        ('{"recipeIngredient": null, "recipeIngredient": []}', '"recipeIngredient" occurs twice'),
        # The database cuts its message within a character.
        ('{"name":"a","name":"b","recipeInstructions":["切煮"]}', '"name" occurs twice'),
        ('{"name": "汤", "recipeInstructions": {"a": 1}}', '"recipeInstructions" is not a list'),
    ],
)
@pytest.mark.parametrize("before", [0, 3, 5_000])
def test_the_wrong_line_is_named(
    engine: Engine, tmp_path: Path, line: str, message: str, before: int
) -> None:
    fine = [{"name": "汤", "recipeInstructions": ["煮"]}] * before
    with pytest.raises(DataError) as caught:
        cleaned(engine, tmp_path, *fine, line, {"name": "汤"})
    assert f"corpus.jsonl, line {before + 1}: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("cleaned-*.parquet"))


@pytest.mark.slow
def test_an_object_that_is_too_large(engine: Engine, tmp_path: Path) -> None:
    """The database reads objects of up to twice its limit, whatever the limit."""
    large = json.dumps({"recipeInstructions": ["a" * (33 << 20)]})
    with pytest.raises(DataError, match=r"line 2: it has 33\.0 MiB; .* of up to 16 MiB"):
        cleaned(engine, tmp_path, {"name": "汤"}, large)
    assert not list(tmp_path.glob("cleaned-*.parquet"))


def test_equal_keys_that_are_not_used_are_no_error(engine: Engine, tmp_path: Path) -> None:
    assert (
        len(cleaned(engine, tmp_path, '{"name": "汤", "x": 1, "x": {"name": 1, "name": 2}}')) == 1
    )


def test_bytes_that_are_no_text(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes('{"name": "汤"}\n{"name": "'.encode() + b'\xff\xfe"}\n')
    with pytest.raises(DataError, match="line 2: it is not JSON in UTF-8"):
        corpus.clean(engine, path, tmp_path)


@pytest.mark.parametrize("place", ["nothing.jsonl", "."])
def test_no_corpus(engine: Engine, tmp_path: Path, place: str) -> None:
    with pytest.raises(DataError, match="cannot read the corpus") as caught:
        corpus.clean(engine, tmp_path / place, tmp_path)
    assert "one JSON object per line" in str(caught.value)


def test_the_table_is_kept_and_made_anew_for_another_corpus(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "a corpus 'quoted' {0} $1.jsonl"
    path.write_text('{"name": "汤"}\n', encoding="utf-8")
    first, digest = corpus.clean(engine, path, tmp_path)
    stamp = first.stat().st_mtime_ns
    assert corpus.clean(engine, path, tmp_path) == (first, digest)
    assert first.stat().st_mtime_ns == stamp
    path.write_text('{"name": "肉"}\n', encoding="utf-8")
    second, _ = corpus.clean(engine, path, tmp_path)
    assert [second] == list(tmp_path.glob("cleaned-*"))
    assert second != first


ENDLESS = f"SELECT sum(a0.i) FROM {', '.join(f'range(9999) a{n}(i)' for n in range(9))}"


def wait_until_busy() -> None:
    """Until a statement has used some time of the processor."""
    began = time.process_time()
    while time.process_time() < began + 0.2:
        time.sleep(0.01)


def test_an_interruption_stops_the_statement(engine: Engine) -> None:
    def interrupt() -> None:
        wait_until_busy()
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        engine.run(ENDLESS)
    thread.join()
    assert engine.run("SELECT 1").fetchall() == [(1,)]


def test_closing_stops_a_statement(tmp_path: Path) -> None:
    """As when Ctrl-C arrives before the statement's thread is watched."""
    busy = Engine(tmp_path / "spill")

    def run() -> None:
        with pytest.raises(duckdb.Error):
            busy._connection.execute(ENDLESS)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until_busy()
    busy.close()
    thread.join(timeout=300)
    assert not thread.is_alive()


def test_memory_that_does_not_suffice(tmp_path: Path) -> None:
    small = Engine(tmp_path / "spill", memory_gib=0.01)
    try:
        with pytest.raises(OptionError, match="--memory"):
            small.run("SELECT list(repeat(i::VARCHAR, 1000)) FROM range(1000000) t(i)")
    finally:
        small.close()
