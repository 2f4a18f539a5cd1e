"""``lm-eval-ext magnifico near-misses``: whether databases judge right and wrong queries rightly.

A near miss is a wrong query that differs from the gold query in one detail. It ties with the gold
query on a database where both have the same result. A rewrite is a right query that is written in
another way; it must have the gold query's result.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext import data
from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.gold_files import Wanted, original_of
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, Corpus, Example, Form
from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql import Databases
from lm_eval_ext.sql.distill import GoldReport, Report, finished, populate_all
from lm_eval_ext.sql.distill.added_values import KINDS as VALUE_KINDS
from lm_eval_ext.sql.distill.added_values import USUAL
from lm_eval_ext.sql.distill.build import check

if TYPE_CHECKING:
    from rich.table import Table

FORMS: tuple[Form, ...] = (BASE, *NOVEL)


@dataclass(frozen=True)
class Count:
    """Numbers of gold queries, one per example: a query of two examples counts twice.

    Attributes:
        examples: Examples whose database is available.
        database_missing: Examples whose database is not.
        broken: Gold queries that fail; ``golds`` excludes them.
        golds: Gold queries that were compared with their near misses.
        near_misses: The near misses of all of them.
        undecided: Near misses that exceeded the limit of steps.
        tied: Gold queries that tie with a near miss that is not proven equivalent.
        equivalent: Gold queries that tie only with near misses that are.
        empty: Gold queries with an empty result, although they can have rows.
        unsatisfiable: Gold queries that are proven to be empty on every database.
        cut_ties: Gold queries with a LIMIT that separates rows with equal sort keys.
        new_cut_ties: Those of them that have no such LIMIT on the original.
        kinds: By kind of near miss: the gold queries that tie with one.
        rules: By rule of rewriting: the rewrites, and those with another result.
        values: Values of added rows by how they fit their columns; empty without originals.
    """

    examples: int
    database_missing: int
    broken: int
    golds: int
    near_misses: int
    undecided: int
    tied: int
    equivalent: int
    empty: int
    unsatisfiable: int
    cut_ties: int
    new_cut_ties: int
    kinds: Mapping[str, int]
    rules: Mapping[str, tuple[int, int]]
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def rewrites(self) -> int:
        """Rewrites of all gold queries."""
        return sum(count for count, _ in self.rules.values())

    @property
    def rewrites_broken(self) -> int:
        """Rewrites that would be judged wrong."""
        return sum(broken for _, broken in self.rules.values())

    @property
    def share(self) -> float:
        """The share of gold queries that tie, 0 to 1."""
        return self.tied / self.golds if self.golds else 0.0

    def as_text(self) -> str:
        """The counts in some lines."""
        return "\n".join(
            [
                f"{self.golds:,} golds examined, of {self.examples:,} examples with a database "
                f"({self.database_missing:,} have none here, {self.broken:,} golds do not run)",
                f"{self.tied:,} tie with a near miss ({_percent(self.tied, self.golds)}); "
                f"{self.equivalent:,} more only with queries that are proven equivalent",
                f"{self.empty:,} are empty though they can be satisfied; {self.unsatisfiable:,} "
                "cannot be",
                f"{self.near_misses:,} near misses, {self.undecided:,} of them undecided",
                f"{self.rewrites_broken:,} of {self.rewrites:,} rewrites are judged wrong "
                f"({_percent(self.rewrites_broken, self.rewrites)})",
                f"{self.cut_ties:,} golds have a LIMIT that cuts a tie, "
                f"{self.new_cut_ties:,} of them a new one",
                *([self._values()] if self.values else []),
            ]
        )

    def _values(self) -> str:
        other = [f"{kind} {self.values.get(kind, 0):,}" for kind in VALUE_KINDS if kind != USUAL]
        total, usual = sum(self.values.values()), self.values.get(USUAL, 0)
        return (
            f"{total:,} added values, {_percent(usual, total)} as their column's own; "
            + ", ".join(other)
        )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def examine(
    found: Wanted,
    *,
    originals: str | Path | None = None,
    workers: int = 2,
    progress: bool | None = None,
) -> dict[str, Report]:
    """Examines databases, populated or not, without changing them.

    ``originals`` is what populated copies were made from, a folder or one database; None means the
    published databases. Copies keep all original rows, so a few more near misses can be proven
    equivalent.

    Raises:
        OptionError: ``workers`` is below 1.
        DataError: A database cannot be read, or an original is missing.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from tqdm import tqdm

    if workers < 1:
        raise OptionError(f"workers={workers}: use 1 or more")
    before = {
        db_id: _of_copy(path, db_id, golds)
        if originals is None
        else original_of(originals, db_id, len(found))
        for db_id, (path, golds) in found.items()
    }
    # Databases with the most gold queries take longest, so they go first.
    order = sorted(found, key=lambda db_id: (-len(found[db_id][1]), db_id))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        jobs = [
            pool.submit(check, found[db_id][0], before[db_id], found[db_id][1]) for db_id in order
        ]
        bar = tqdm(
            zip(order, jobs, strict=True), total=len(jobs), desc="examining", unit="db",
            disable=None if progress is None else not progress,
        )  # fmt: skip
        return {db_id: job.result() for db_id, job in bar}


def _of_copy(copy: Path, db_id: str, golds: tuple[str, ...]) -> Path | None:
    """The published original, if it is available and the copy was made from it."""
    if not data.available(corpora.DATABASES):
        return None
    path = Databases(data.require_all(corpora.DATABASES).path).find_sqlite(db_id)
    if path is None or finished(copy.absolute().parent.parent, db_id, path, golds) is None:
        return None
    return path


def build(
    found: Wanted,
    out: Path,
    *,
    shipped: Path | None = None,
    workers: int = 2,
    progress: bool | None = None,
) -> dict[str, Report]:
    """Makes populated copies of databases.

    Args:
        found: The originals with their gold queries.
        out: The folder for copies and reports.
        shipped: Rows of earlier searches.
        workers: Processes at a time.
        progress: Whether to show a bar.

    Raises:
        OptionError: A copy cannot be written.
        DataError: An original cannot be read.
    """
    return populate_all(found, out, shipped=shipped, workers=workers, progress=progress)


def count(reports: Mapping[str, Report], corpus: Corpus, forms: Collection[Form]) -> Count:
    """Counts the examples with one interpretation in these forms, support examples included."""
    golds = {(db_id, gold.gold): gold for db_id, report in reports.items() for gold in report.golds}
    examples = [example for example in _all(corpus) if example.form in forms]
    here = [
        golds[key]
        for example in examples
        if (key := (example.db_id.casefold(), example.query)) in golds
    ]
    ran = [gold for gold in here if gold.error is None]
    tied = [gold for gold in ran if gold.open_ties]
    kinds = Counter(kind for gold in tied for kind in {t.near_miss.kind for t in gold.open_ties})
    written: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for gold in ran:
        written.update(gold.rewrites)
        wrong.update(one.kind for one in gold.broken)
    return Count(
        examples=len(here),
        database_missing=len(examples) - len(here),
        broken=len(here) - len(ran),
        golds=len(ran),
        near_misses=sum(gold.near_misses for gold in ran),
        undecided=sum(gold.undecided for gold in ran),
        tied=len(tied),
        equivalent=sum(bool(gold.ties) and not gold.open_ties for gold in ran),
        empty=sum(_is_empty(gold, "not filled") for gold in ran),
        unsatisfiable=sum(_is_empty(gold, "unsatisfiable") for gold in ran),
        cut_ties=sum(bool(gold.cut_ties) for gold in ran),
        new_cut_ties=sum(bool(gold.new_cut_ties) for gold in ran),
        kinds=dict(sorted(kinds.items())),
        rules={rule: (written[rule], wrong[rule]) for rule in sorted(written)},
        values=dict(sum((Counter(r.values) for r in reports.values()), Counter())),
    )


def by_rule(found: Count) -> "list[Table]":
    """Two tables: golds that tie by kind of near miss, and rewrites by rule."""
    from rich.table import Table

    misses, rules = Table(title="Near misses"), Table(title="Rewrites")
    for table, names in ((misses, ("kind", "golds that tie")), (rules, ("rule", "wrong", "of"))):
        table.add_column(names[0])
        for name in names[1:]:
            table.add_column(name, justify="right")
    for kind, count in found.kinds.items():
        misses.add_row(kind, f"{count:,}")
    for rule, (written, broken) in found.rules.items():
        rules.add_row(rule, f"{broken:,}", f"{written:,}")
    return [misses, rules]


def write_pack(file: Path, found: Wanted, out: Path, reports: Mapping[str, Report]) -> None:
    """Writes the rows that populated copies of SQLite files have beside the originals' to a file.

    Raises:
        OptionError: It cannot be written.
    """
    from lm_eval_ext.sql.distill.shipped import pack

    made = {
        db_id: (found[db_id][0], out / db_id / f"{db_id}.sqlite", report)
        for db_id, report in reports.items()
    }
    try:
        with atomic_text(file) as opened:
            opened.write(pack(made))
    except OSError as error:
        raise OptionError(f"cannot write {file}: {error.strerror}") from None


def listed_rewrites(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """All rewrites that would be judged wrong."""
    return [
        {
            "db_id": db_id,
            "gold": gold.gold,
            "rule": one.kind,
            "rewrite": one.sql,
            "change": one.text,
        }
        for db_id, report in sorted(reports.items())
        for gold in report.golds
        for one in gold.broken
    ]


def listed(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """All ties: gold query, near miss, and the proof of equivalence if there is one."""
    return [
        {
            "db_id": db_id,
            "gold": gold.gold,
            "kind": tie.near_miss.kind,
            "near_miss": tie.near_miss.sql,
            "change": tie.near_miss.text,
            "equivalent": tie.equivalent,
        }
        for db_id, report in sorted(reports.items())
        for gold in report.golds
        for tie in gold.ties
    ]


def _is_empty(gold: GoldReport, cause: str) -> bool:
    return gold.empty is not None and gold.empty.startswith(cause)


def _all(corpus: Corpus) -> list[Example]:
    support = (example for examples in corpus.support.values() for example in examples)
    return [*corpus.examples, *support]
