"""Populated copies of small databases: what they distinguish, and what they do not change."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from distill_cases import GOLDS, SHOP, content, is_sound, sha256, violations, write

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import ReferenceExpected
from lm_eval_ext.sql.distill import Report
from lm_eval_ext.sql.distill.build import check, populate
from lm_eval_ext.sql.engines.sqlite import SQLiteEngine
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import Rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("shop") / "shop.sqlite", SHOP)


@pytest.fixture(scope="module")
def made(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    target = tmp_path_factory.mktemp("made") / "shop.sqlite"
    return target, populate(shop, GOLDS, target)


def test_the_original_does_not_tell_them_all(shop: Path) -> None:
    report = check(shop, None, GOLDS)
    assert sum(bool(gold.open_ties) for gold in report.golds) > len(GOLDS) // 3


def test_every_gold_has_a_result(made: tuple[Path, Report]) -> None:
    assert [(gold.gold, gold.empty) for gold in made[1].golds if gold.empty] == []
    assert any(gold.rows_before == 0 for gold in made[1].golds)


def test_the_report_is_what_another_engine_finds(made: tuple[Path, Report], shop: Path) -> None:
    """The ties that are left are just those that scoring predictions would take for right."""
    from lm_eval_ext.sql.mutants import mutants
    from lm_eval_ext.sql.schema import read_schema

    engine, schema = SQLiteEngine(Limits()), read_schema(shop)
    for path, report in ((made[0], made[1]), (shop, check(shop, None, GOLDS))):
        for gold in report.golds:
            expected = engine.run(str(path), gold.gold)
            assert isinstance(expected, Rows)
            tied = set()
            for miss in mutants(gold.gold, schema):
                result = engine.run(str(path), miss.sql)
                if isinstance(result, Rows) and ReferenceExpected(expected.rows).matches(result):
                    tied.add(miss.sql)
            assert {tie.near_miss.sql for tie in gold.ties} == tied
            assert gold.rows_after == len(expected.rows)
    engine.close()


def test_checking_the_copy_gives_the_report_of_the_build(
    made: tuple[Path, Report], shop: Path
) -> None:
    assert check(made[0], shop, GOLDS).golds == made[1].golds


def test_keys_and_constraints_stay_valid(made: tuple[Path, Report]) -> None:
    assert is_sound(made[0])
    assert violations(made[0]) == set()
    with closing(sqlite3.connect(made[0])) as connection:
        assert connection.execute("SELECT count(*) FROM shop WHERE rent < 0").fetchone() == (0,)


def test_rows_are_added_and_none_is_changed(made: tuple[Path, Report], shop: Path) -> None:
    before, after = content(shop), content(made[0])
    assert before.pop("the schema") == after.pop("the schema")
    for table, rows in before.items():
        left = list(after[table])
        for row in rows:
            left.remove(row)
        assert len(left) == made[1].added.get(table, 0)
    assert 0 < sum(made[1].added.values()) < 200


def test_the_original_is_not_touched(shop: Path, tmp_path: Path) -> None:
    before = sha256(shop), shop.stat().st_mtime_ns, sorted(shop.parent.iterdir())
    shop.chmod(0o444)
    populate(shop, GOLDS[:3], tmp_path / "copy.sqlite")
    assert (sha256(shop), shop.stat().st_mtime_ns, sorted(shop.parent.iterdir())) == before


def test_the_order_of_golds_changes_nothing(
    made: tuple[Path, Report], shop: Path, tmp_path: Path
) -> None:
    shuffled = [*GOLDS, *GOLDS[:4]]
    random.Random(5).shuffle(shuffled)
    report = populate(shop, shuffled, tmp_path / "again.sqlite")
    assert report == made[1]
    assert content(tmp_path / "again.sqlite") == content(made[0])


def test_a_report_survives_json(made: tuple[Path, Report]) -> None:
    assert Report.from_dict(json.loads(made[1].as_json())) == made[1]


def test_progress_reaches_its_end(shop: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    populate(
        shop,
        GOLDS[:2],
        tmp_path / "c.sqlite",
        progress=lambda done, all_: seen.append((done, all_)),
    )
    assert seen
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "gold",
    [
        "DELETE FROM town",
        "DROP TABLE sale",
        "ATTACH 'other.sqlite' AS other",
        "PRAGMA user_version = 7",
        "SELECT 1; DELETE FROM town",
        "SAVEPOINT attempt",
        "VACUUM",
        "SELECT nothing FROM town",
        "",
        "-- only this",
        "SELECT '\ud800'",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
        "SELECT * FROM shop WHERE rent > 5 JOIN town ON 1",
    ],
)
def test_a_gold_that_is_no_good_query_is_reported(gold: str, shop: Path, tmp_path: Path) -> None:
    report = populate(shop, [gold, GOLDS[0]], tmp_path / "copy.sqlite")
    bad = next(entry for entry in report.golds if entry.gold == gold)
    assert bad.error
    assert bad.ties == ()
    good = next(entry for entry in report.golds if entry.gold == GOLDS[0])
    assert good.error is None
    assert not good.open_ties
    assert content(tmp_path / "copy.sqlite").keys() == content(shop).keys()


def test_a_missing_or_broken_original_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database at all" * 100)
    for original in (tmp_path / "none.sqlite", broken, tmp_path):
        with pytest.raises(DataError) as caught:
            populate(original, GOLDS, tmp_path / "copy.sqlite")
        assert "\n" not in str(caught.value)
        with pytest.raises(DataError):
            check(original, None, GOLDS)
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_copy_never_takes_its_originals_place(shop: Path, tmp_path: Path) -> None:
    original = tmp_path / "shop.sqlite"
    original.write_bytes(shop.read_bytes())
    (tmp_path / "link").symlink_to(tmp_path)
    for target in (original, tmp_path / "link" / "shop.sqlite"):
        with pytest.raises(OptionError, match="original"):
            populate(original, GOLDS[:1], target)
    assert sha256(original) == sha256(shop)


def test_a_target_that_cannot_be_written_leaves_nothing(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot write"):
        populate(shop, GOLDS[:1], tmp_path / "no" / "such" / "copy.sqlite")
    assert list(tmp_path.iterdir()) == []
