"""MAGNIFICo's golds on Spider's databases: the whole build, once, and what must come of it.

Fact sheet, "Edge cases": on the originals 28.5 % of the plausible-form golds tie with one of six
near misses; here the wider, documented set of :data:`lm_eval_ext.sql.mutations.KINDS` is meant.
"""

import csv
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from lm_eval_ext.sql import Databases
from lm_eval_ext.sql.populate import GoldReport, Report, check, populate_all

from populate_cases import content, is_sound, sha256, violations

pytestmark = [pytest.mark.timeout(3600), pytest.mark.xdist_group("populate_magnifico")]

MOST_TIES = 0.02
"""Share of plausible-form golds that may tie with a near miss not proven to be equivalent."""


@dataclass(frozen=True)
class Built:
    originals: dict[str, Path]
    golds: dict[str, list[str]]
    plausible: list[tuple[str, str]]
    folder: Path
    reports: dict[str, Report]

    def copy(self, db_id: str) -> Path:
        return self.folder / db_id / f"{db_id}.sqlite"

    def plausible_reports(self) -> list[GoldReport]:
        """One per row of the data, so that a gold of several rows counts as often."""
        found = {
            (db_id, gold.gold): gold for db_id, report in self.reports.items() for gold in report.golds
        }
        return [found[key] for key in self.plausible if found[key].error is None]


def rows_of(file: Path) -> list[tuple[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    return [(row["Question"].split(":")[0].strip().lower(), row["Parse"]) for row in rows]


@pytest.fixture(scope="module")
def built(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """All golds of all forms; the plausible ones are counted apart."""
    data, spider = shared_data / "magnifico" / "magnifico_data", shared_data / "spider_databases"
    if not (data.is_dir() and spider.is_dir()):
        pytest.skip("MAGNIFICo's data or Spider's databases are not at hand")
    databases = Databases(spider)
    wanted: dict[str, set[str]] = {}
    plausible = []
    forms = ("baseline", "plausible", "nonsense", "adversarial")
    for file in sorted([*data.glob("*/*/*.tsv"), *data.glob("combination/*.tsv")]):
        if file.parent.name not in (*forms, "combination"):
            continue
        for db_id, gold in rows_of(file):
            if databases.find(db_id) is not None:
                wanted.setdefault(db_id, set()).add(gold)
                if file.parent.name == "plausible":
                    plausible.append((db_id, gold))
    originals = {db_id: databases.find(db_id) for db_id in sorted(wanted)}
    golds = {db_id: sorted(wanted[db_id]) for db_id in sorted(wanted)}
    paths = {db_id: path for db_id, path in originals.items() if path is not None}
    folder = tmp_path_factory.mktemp("populated")
    before = {db_id: sha256(path) for db_id, path in paths.items()}
    reports = populate_all({db: (paths[db], golds[db]) for db in paths}, folder, workers=2)
    assert {db_id: sha256(path) for db_id, path in paths.items()} == before
    return Built(paths, golds, plausible, folder, reports)


def test_ties_and_empties(built: Built) -> None:
    reports = built.plausible_reports()
    assert len(reports) > 1200
    tied = [report for report in reports if report.open_ties]
    kinds = Counter(tie.near_miss.kind for report in tied for tie in report.open_ties)
    undecided = sum(report.undecided for report in reports)
    summary = f"{len(tied)} of {len(reports)} golds tie ({dict(kinds)}), {undecided} undecided"
    warnings.warn(summary, stacklevel=1)
    assert len(tied) <= MOST_TIES * len(reports), summary
    assert [report.gold for report in reports if report.empty == "not filled"] == []
    assert undecided <= len(reports) // 100


def test_the_originals_tie_far_more_often(built: Built) -> None:
    tied = 0
    found = {
        (db_id, gold.gold): gold
        for db_id, path in built.originals.items()
        for gold in check(path, None, built.golds[db_id]).golds
    }
    for key in built.plausible:
        tied += bool(found[key].open_ties)
    assert tied > 0.25 * len(built.plausible)


def test_copies_are_sound_and_small(built: Built) -> None:
    for db_id, original in built.originals.items():
        copy = built.copy(db_id)
        assert is_sound(copy), db_id
        assert violations(copy) <= violations(original), db_id
        before, after = content(original), content(copy)
        assert before["the schema"] == after["the schema"]
        for table, rows in before.items():
            kept = Counter(map(repr, rows)) - Counter(map(repr, after[table]))
            assert not kept, (db_id, table)
            assert len(after[table]) - len(rows) <= 500, (db_id, table)


def test_the_reports_hold_on_the_files(built: Built) -> None:
    """Asked again, of the files as a scorer opens them."""
    for db_id in sorted(built.reports)[::6]:
        again = check(built.copy(db_id), built.originals[db_id], built.golds[db_id])
        assert again.golds == built.reports[db_id].golds
