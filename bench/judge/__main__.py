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
from collections import Counter, defaultdict
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
    read,
    read_shipped,
)
from lm_eval_ext.sql.suite.files import SHORT, key_of

Recorded = dict[str, dict[str, dict[str, str]]]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", type=Path, help="folder that magnifico populate wrote")
    what.add_argument("--pack", action="store_true", help="write the seeds of the package's suites")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one in N golds")
    parser.add_argument("--json", type=Path, help="write all misjudged cases")
    options = parser.parse_args()
    databases = originals("spider_databases")
    golds = populating.wanted(databases)
    if options.pack:
        pack_all(golds)
        return
    right, found, odd = recorded(databases), list[Case](), Counter[str]()
    suites = {db_id: read(options.suite, db_id) for db_id in golds}
    with ProcessPoolExecutor(2) as pool:
        order = sorted(golds, key=lambda db_id: -len(golds[db_id][1]))
        jobs = [pool.submit(_of_one, suites[d], *golds[d], right[d], options.share) for d in order]
        for job in tqdm(jobs, desc="databases", disable=None):
            found += job.result()[0]
            odd += job.result()[1]
    made = {name for suite in suites.values() for name in suite.databases}
    bad = [one for one in found if one.misjudged({"", *made})]
    kinds = Counter(f"{one.family} {one.kind}" for one in bad if one.differs).most_common()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    sys.stdout.write(f"{table(found, made).to_string()}\n\nmisjudged: {kinds}\n")
    sys.stdout.write(f"added values that must not be: {dict(odd)}\n")
    sys.stdout.write(f"{seconds:.0f} seconds of processor time\n")
    if options.json:
        options.json.write_text(json.dumps([one._asdict() for one in bad], indent=1))


def _of_one(
    suite: Suite, path: Path, golds: Sequence[str], right: dict[str, dict[str, str]], share: int
) -> tuple[list[Case], Counter[str]]:
    original = Original(path, golds)
    chosen = {gold: right[gold] for gold in golds if not zlib.crc32(gold.encode()) % share}
    with closing(original.connection):
        return [*cases(path, suite, original, chosen)], flaws(path, suite, original)


def recorded(databases: Path) -> Recorded:
    """Right recorded predictions by database and gold, with what a person said of them."""
    runs = read_predictions(originals("magnifico/recorded_predictions/runs.tsv"))
    examples = dict.fromkeys(row.prediction for row in runs)
    table = pd.read_csv(Path(__file__).with_name("recorded.tsv"), sep="\t")
    said = dict(zip(table.key, table.said, strict=True))  # by a hash, where suites say wrong
    found: Recorded = defaultdict(lambda: defaultdict(dict))
    with Executor(databases) as executor:
        for one, verdict in zip(examples, executor.score(examples), strict=True):
            one = one._replace(db_id=one.db_id.casefold())  # noqa: PLW2901
            key = hashlib.sha256("\0".join(one).encode("utf-8", "surrogateescape")).hexdigest()[:16]
            if verdict.correct:
                found[one.db_id][one.gold][one.predicted] = said.get(key, "not judged yet")
    return found


def table(found: Sequence[Case], made: set[str]) -> pd.DataFrame:
    """Golds with a misjudged case by family and judge; a right query counts for itself."""
    frame, lines = pd.DataFrame(found), {}
    frame["of"] = frame.gold.where(frame.family.isin(["mutant", "neighbour"]), frame.index)
    for judge, asked in (
        ("original", {""}), ("populated copy", {"", COPY}),
        ("small databases", {"", *made} - {COPY}), ("whole suite", {"", *made}),
    ):  # fmt: skip
        bad = pd.Series([case.misjudged(asked) for case in found])
        golds = frame.assign(all=bad, shown=bad & frame.differs).groupby(["family", "db_id", "of"])
        lines[judge] = golds[["all", "shown"]].any().groupby("family").agg(["mean", "sum", "size"])
    return pd.concat(lines)


def pack_all(golds: populating.GoldsByDatabase) -> None:
    """Writes the seeds of both corpora."""
    own = mini.corpus()
    jobs = {d: (own.databases[d].path, tuple(q)) for d, q in own.golds().items()}
    for home, wanted in ((corpora.SHIPPED, golds), (mini.SHIPPED, jobs)):
        with TemporaryDirectory() as folder:
            shipped = Shipped(read_shipped(home).rows, {})
            made = populate_all(wanted, Path(folder), shipped, workers=2)
        with atomic_text(home / "suites.json") as file:
            file.write(pack(made.values()))
        rekey_copies(home, wanted)


def rekey_copies(home: Path, golds: populating.GoldsByDatabase) -> None:
    """Write the keys of this version into the seeds of version 2, which are copies alone."""
    shipped = read_shipped(home, "-v2")
    entries = {}
    for db_id, (path, queries) in golds.items():
        digest = sha256_of(path)
        rows = shipped.rows.get(digest)
        for entry in shipped.seeds.values():
            if entry["database"] == db_id:
                entries[key_of(digest, sorted(set(queries)), rows)] = entry
    with atomic_text(home / "suites-v2.json") as file:
        file.write(as_text(entries))


def pack(suites: Iterable[Suite]) -> str:
    """The text of a file of seeds: no row and no gold, one line per gold."""
    entries = {}
    for suite in sorted(suites, key=lambda suite: suite.db_id):
        numbers = {name: number for number, name in enumerate(suite.databases)}
        entries[suite.key] = {
            "database": suite.db_id,
            "seeds": [list(seed) for seed in suite.seeds],
            "hashes": [content[:SHORT] for content in suite.databases.values()],
            "golds": {g: [numbers[name] for name in names] for g, names in suite.judges.items()},
        }
    return as_text(entries)


def as_text(entries: Mapping[str, Mapping[str, object]]) -> str:
    """The same of entries by key."""
    text = json.dumps({"version": SUITE_VERSION, "databases": entries}, separators=(",", ":"))
    return text.replace('],"', '],\n"').replace("},", "},\n") + "\n"


if __name__ == "__main__":
    main()
