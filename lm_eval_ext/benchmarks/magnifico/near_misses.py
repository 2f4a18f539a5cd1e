"""``lm-eval-ext magnifico near-misses``: how well databases distinguish gold queries from them.

A near miss is a wrong query that differs from the gold query in one detail. It ties with the gold
query on a database where both have the same result.
"""

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
        """The share of gold queries that tie, 0 to 1."""
        return self.tied / self.golds if self.golds else 0.0

    def as_text(self) -> str:
        """The counts in four lines."""
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
    """The published corpus without dialogues and databases."""
    return corpora.read(data.require_all(corpora.SOURCE).path, dialogues=False)


def available(corpus: Corpus, folder: Path) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """The databases of a folder that the corpus asks about, with their gold queries.

    Raises:
        DataError: The folder has none of them.
    """
    known = Databases(folder)
    golds = corpus.golds()
    found = {db_id: (path, golds[db_id]) for db_id in golds if (path := known.find(db_id))}
    if not found:
        raise DataError(
            f"{folder} has none of MAGNIFICo's {len(golds)} databases; it must have "
            "<db_id>/<db_id>.sqlite, like Spider's folder `database`"
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

    ``originals`` is the folder that populated copies were made from; None means the published
    databases. Copies keep all original rows, so a few more near misses can be proven equivalent.

    Raises:
        OptionError: ``workers`` is below 1.
        DataError: As :func:`available`, or an original is missing.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from tqdm import tqdm

    if workers < 1:
        raise OptionError(f"workers={workers}: use 1 or more")
    found = available(texts(), folder)
    before = {
        db_id: _of_copy(folder, db_id, golds) if originals is None else _original(originals, db_id)
        for db_id, (_, golds) in found.items()
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


def _original(folder: Path, db_id: str) -> Path:
    path = Databases(folder).find(db_id)
    if path is None:
        raise DataError(f"{folder} does not have the original of {db_id}; name its folder")
    return path


def _of_copy(folder: Path, db_id: str, golds: tuple[str, ...]) -> Path | None:
    """The published original, if it is available and the copy was made from it."""
    if not data.available(corpora.DATABASES):
        return None
    path = Databases(data.require_all(corpora.DATABASES).path).find(db_id)
    if path is None or finished(folder, db_id, path, golds) is None:
        return None
    return path


def build(
    folder: Path, out: Path, *, workers: int = 2, progress: bool | None = None
) -> dict[str, Report]:
    """Makes populated copies of a folder's databases."""
    return populate_all(available(texts(), folder), out, workers=workers, progress=progress)


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
    """All ties: gold query, near miss, and the proof of equivalence if there is one."""
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
