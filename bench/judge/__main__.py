"""Measure how well the judge distinguishes wrong queries from right ones, both ways.

    python -m bench.judge --suite FOLDER [--share 8] [--json FILE]
    python -m bench.judge --pack

``--suite`` is what ``lm-eval-ext magnifico populate`` writes. In ``shown`` are golds without wrong
queries that 50 random databases do not distinguish either. ``--pack`` writes the seeds that ship:
it searches for the suites of the published databases and of magnifico_mini, for some CPU-minutes.
Both need the original data (``LM_EVAL_EXT_DATA``).
"""

import argparse
import hashlib
import json
import resource
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from tqdm import tqdm

from bench.data import originals
from bench.judge.cases import Case, cases, flaws
from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, mini, populating
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.predictions import read_predictions
from lm_eval_ext.sql.suite import (
    COPY,
    SUITE_VERSION,
    Original,
    Shipped,
    Suite,
    populate_all,
    read_shipped,
    read_suite,
)
from lm_eval_ext.sql.suite.files import short_hashes, suite_key

RecordedByGold = dict[str, dict[str, str]]
"""By gold, right recorded predictions with what a person said of them."""

_HASH_DIGITS = 16


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--suite", type=Path, help="folder that magnifico populate wrote")
    action.add_argument(
        "--pack", action="store_true", help="write the seeds of the package's suites"
    )
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one in N golds")
    parser.add_argument("--json", type=Path, help="write all misjudged cases")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = parse_options()
    databases = originals("spider_databases")
    golds = populating.databases_with_golds(databases)
    if options.pack:
        pack_all(golds)
        return
    suites = {db_id: read_suite(options.suite, db_id) for db_id in golds}
    all_cases, all_flaws = measured(suites, golds, recorded(databases), options.share)
    names: set[str] = set()
    for suite in suites.values():
        names.update(suite.names)
    misjudged = [case for case in all_cases if case.misjudged({"", *names})]
    kinds = Counter[str]()
    for case in misjudged:
        if case.differs:
            kinds[f"{case.family} {case.kind}"] += 1
    sys.stdout.write(f"{table(all_cases, names).to_string()}\n\n")
    sys.stdout.write(f"misjudged: {kinds.most_common()}\n")
    sys.stdout.write(f"added values that must not be: {dict(all_flaws)}\n")
    sys.stdout.write(f"{processor_seconds():.0f} seconds of processor time\n")
    if options.json:
        records = [case._asdict() for case in misjudged]
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")


def measured(
    suites: Mapping[str, Suite],
    golds: populating.GoldsByDatabase,
    right: Mapping[str, RecordedByGold],
    share: int,
) -> tuple[list[Case], Counter[str]]:
    """Return the cases and flaws of all databases, with a progress bar."""
    all_cases: list[Case] = []
    all_flaws = Counter[str]()

    def gold_count(db_id: str) -> int:
        _, queries = golds[db_id]
        return len(queries)

    # Those with the most golds take longest.
    order = sorted(golds, key=gold_count, reverse=True)
    with ProcessPoolExecutor(2) as pool:
        jobs = []
        for db_id in order:
            path, queries = golds[db_id]
            predictions = right.get(db_id, {})
            jobs.append(pool.submit(_measure, suites[db_id], path, queries, predictions, share))
        for job in tqdm(jobs, desc="databases", disable=None):
            database_cases, database_flaws = job.result()
            all_cases += database_cases
            all_flaws += database_flaws
    return all_cases, all_flaws


def _measure(
    suite: Suite, path: Path, golds: Sequence[str], right: RecordedByGold, share: int
) -> tuple[list[Case], Counter[str]]:
    """Return the cases and flaws of one database, with one in ``share`` of its golds."""
    original = Original(path, golds)
    chosen = {}
    for gold in golds:
        if zlib.crc32(gold.encode()) % share == 0:
            chosen[gold] = right.get(gold, {})
    with closing(original.connection):
        return list(cases(path, suite, original, chosen)), flaws(path, suite, original)


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it started and that ended."""
    seconds = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        seconds += usage.ru_utime + usage.ru_stime
    return seconds


def recorded(databases: Path) -> dict[str, RecordedByGold]:
    """Return right recorded predictions by database and gold, with what a person said of them.

    Suites call some of them wrong: these are named by a hash in ``recorded.tsv``, with a remark.
    """
    rows = read_predictions(originals("magnifico/recorded_predictions/runs.tsv"))
    predictions = list(dict.fromkeys(row.prediction for row in rows))
    remarks_table = pd.read_csv(Path(__file__).with_name("recorded.tsv"), sep="\t")
    remarks = dict(zip(remarks_table.key, remarks_table.said, strict=True))
    right: dict[str, RecordedByGold] = {}
    with Executor(databases) as executor:
        verdicts = list(executor.score(predictions))
    for prediction, verdict in zip(predictions, verdicts, strict=True):
        if not verdict.correct:
            continue
        db_id = prediction.db_id.casefold()
        text = "\0".join((db_id, prediction.gold, prediction.predicted))
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        remark = remarks.get(digest[:_HASH_DIGITS], "not judged yet")
        right.setdefault(db_id, {}).setdefault(prediction.gold, {})[prediction.predicted] = remark
    return right


def table(all_cases: Sequence[Case], names: set[str]) -> pd.DataFrame:
    """Return golds with a misjudged case by family and judge; a right query counts for itself.

    Args:
        all_cases: All cases.
        names: The names of the databases of all suites.
    """
    judges = {
        "original": {""},
        "populated copy": {"", COPY},
        "small databases": {"", *names} - {COPY},
        "whole suite": {"", *names},
    }
    frame = pd.DataFrame(all_cases)
    is_wrong_query = frame.family.isin(["mutant", "neighbour"])
    frame["counted"] = frame.gold.where(is_wrong_query, frame.index)
    tables = {}
    for judge, databases in judges.items():
        misjudged = pd.Series([case.misjudged(databases) for case in all_cases])
        columns = frame.assign(all=misjudged, shown=misjudged & frame.differs)
        counted = columns.groupby(["family", "db_id", "counted"])[["all", "shown"]].any()
        tables[judge] = counted.groupby("family").agg(["mean", "sum", "size"])
    return pd.concat(tables)


def pack_all(golds: populating.GoldsByDatabase) -> None:
    """Write the seeds of both corpora."""
    pack_corpus(corpora.SHIPPED, golds)
    mini_corpus = mini.corpus()
    mini_golds = {}
    for db_id, queries in mini_corpus.golds().items():
        mini_golds[db_id] = (mini_corpus.databases[db_id].path, tuple(queries))
    pack_corpus(mini.SHIPPED, mini_golds)


def pack_corpus(home: Path, golds: populating.GoldsByDatabase) -> None:
    """Search for the suites of a corpus, and write their seeds into its folder."""
    with TemporaryDirectory() as folder:
        rows_alone = Shipped(read_shipped(home).rows, {})
        suites = populate_all(golds, Path(folder), rows_alone, workers=2)
    with atomic_text(home / "suites.json") as file:
        file.write(pack(suites.values()))
    rekey_copies(home, golds)


def rekey_copies(home: Path, golds: populating.GoldsByDatabase) -> None:
    """Write the keys of this version into the seeds of version 2, which are copies alone."""
    shipped = read_shipped(home, "-v2")
    entries = {}
    for db_id, (path, queries) in golds.items():
        digest = sha256_of(path)
        rows = shipped.rows.get(digest)
        for entry in shipped.seeds.values():
            if entry["database"] == db_id:
                entries[suite_key(digest, sorted(set(queries)), rows)] = entry
    with atomic_text(home / "suites-v2.json") as file:
        file.write(as_text(entries))


def pack(suites: Iterable[Suite]) -> str:
    """Return the text of a file of seeds: no row and no gold, one line per gold."""
    entries = {}
    for suite in sorted(suites, key=lambda suite: suite.db_id):
        numbers = {name: number for number, name in enumerate(suite.names)}
        judges = {}
        for gold, names in suite.judges.items():
            judges[gold] = [numbers[name] for name in names]
        entries[suite.key] = {
            "database": suite.db_id,
            "seeds": [list(seed) for seed in suite.seeds],
            "hashes": short_hashes(suite.content_hashes),
            "golds": judges,
        }
    return as_text(entries)


def as_text(entries: Mapping[str, Mapping[str, object]]) -> str:
    """Return the text of a file of seeds with entries by key."""
    text = json.dumps({"version": SUITE_VERSION, "databases": entries}, separators=(",", ":"))
    return text.replace('],"', '],\n"').replace("},", "},\n") + "\n"


if __name__ == "__main__":
    main()
