"""How well databases tell gold queries from near misses: what ``near-misses`` counts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import Corpus, Example, Form
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import Databases
from lm_eval_ext.sql.distill import GoldReport, Report, finished, populate_all
from lm_eval_ext.sql.distill.build import check


@dataclass(frozen=True)
class Count:
    """Golds and their ties, one per example: a query that two examples share counts twice.

    Attributes:
        examples: With a database at hand.
        database_missing: Without.
        broken: Golds that do not run; they are not among the ``golds``.
        golds: Golds held against their near misses.
        near_misses: Of all of them.
        undecided: Near misses that ran over the limit of steps.
        tied: Golds that tie with a near miss which is not listed as equivalent.
        equivalent: Golds that tie only with such that are.
        empty: Golds with an empty result although they can be satisfied.
        unsatisfiable: Golds that are empty on every database, which is proven.
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

    @property
    def share(self) -> float:
        """The part of the golds that is tied, 0 to 1."""
        return self.tied / self.golds if self.golds else 0.0

    def as_text(self) -> str:
        """Returns the counts for a reader."""
        return "\n".join(
            [
                f"{self.golds:,} golds examined, of {self.examples:,} examples with a database "
                f"({self.database_missing:,} have none here, {self.broken:,} golds do not run)",
                f"{self.tied:,} tie with a near miss ({100 * self.share:.1f} %); "
                f"{self.equivalent:,} more only with queries that are proven equivalent",
                f"{self.empty:,} are empty though they can be satisfied; {self.unsatisfiable:,} "
                "cannot be",
                f"{self.near_misses:,} near misses, {self.undecided:,} of them undecided",
            ]
        )


def texts() -> Corpus:
    """The published corpus, support examples included; dialogues and databases left aside."""
    return corpora.read(data.require_all(corpora.SOURCE).path, dialogues=False)


def at_hand(corpus: Corpus, folder: Path) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """The databases of a folder that the corpus asks about, each with its golds.

    Raises:
        DataError: There is no such folder, or none of the databases in it.
    """
    known = Databases(folder)
    found = {}
    for db_id, queries in corpus.golds().items():
        path = known.find(db_id)
        if path is not None:
            found[db_id] = (path, queries)
    if not found:
        raise DataError(
            f"{folder}: none of the {len(corpus.golds())} databases of MAGNIFICo lies there; it "
            "must hold <db_id>/<db_id>.sqlite, as Spider's folder `database` does"
        )
    return found


def examine(
    folder: Path,
    *,
    originals: Path | None = None,
    workers: int = 2,
    progress: bool | None = None,
) -> dict[str, Report]:
    """Examines every database of a folder, populated or not, without changing it.

    Args:
        folder: With the databases.
        originals: The folder that they were made from, if they are populated copies: since all
            rows of an original stay, a few near misses more can be proven equivalent. If None,
            the published ones are taken for the copies that were made of them.
        workers: Processes.
        progress: Whether to show a bar on stderr; None: if that is a terminal.

    Raises:
        OptionError: ``workers`` is below 1.
        DataError: As :func:`at_hand`, or an original is not there.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from tqdm import tqdm

    if workers < 1:
        raise OptionError(f"workers={workers}: must be 1 or more")
    found = at_hand(texts(), folder)
    before = {
        db_id: _of_copy(folder, db_id, golds) if originals is None else _original(originals, db_id)
        for db_id, (_, golds) in found.items()
    }
    # Those with the most golds take the longest: first, so that none is left alone at the end.
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


def _original(folder: Path, db_id: str) -> Path:
    path = Databases(folder).find(db_id)
    if path is None:
        raise DataError(f"{folder}: the original of {db_id} does not lie there")
    return path


def _of_copy(folder: Path, db_id: str, golds: tuple[str, ...]) -> Path | None:
    """The published original, if it is at hand and the report of a copy says it was made of it."""
    if not data.available(corpora.DATABASES):
        return None
    path = Databases(data.require_all(corpora.DATABASES).path).find(db_id)
    if path is None or finished(folder, db_id, path, golds) is None:
        return None
    return path


def build(
    folder: Path, out: Path, *, workers: int = 2, progress: bool | None = None
) -> dict[str, Report]:
    """Makes populated copies of every database of a folder."""
    return populate_all(at_hand(texts(), folder), out, workers=workers, progress=progress)


def count(reports: Mapping[str, Report], corpus: Corpus, forms: Collection[Form]) -> Count:
    """Counts the examples with these forms, support and combined ones included."""
    golds = {(db_id, gold.gold): gold for db_id, report in reports.items() for gold in report.golds}
    examples = [example for example in _all(corpus) if example.form in forms]
    here = [
        golds[key]
        for example in examples
        if (key := (example.db_id.casefold(), example.query)) in golds
    ]
    ran = [gold for gold in here if gold.error is None]
    tied = [gold for gold in ran if gold.open_ties]
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
    )


def listed(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """Every tie: gold, near miss, and why they are equivalent, if that is proven."""
    return [
        {
            "db_id": db_id,
            "gold": gold.gold,
            "kind": tie.near_miss.kind,
            "near_miss": tie.near_miss.sql,
            "change": tie.near_miss.change,
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
