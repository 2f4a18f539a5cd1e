"""Make the seeds of test suites that ship with the package.

    python -m bench.judge.pack

Searches for the suites of the published databases and of magnifico_mini (some CPU-minutes), and
writes ``suites.json`` and, for version 2, ``suites-v2.json``. Needs ``LM_EVAL_EXT_DATA``.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.data import originals
from lm_eval_ext.atomic import atomic_text, sha256_of
from lm_eval_ext.benchmarks.magnifico import corpora, mini, populating
from lm_eval_ext.sql.suite import (
    COPY,
    SUITE_VERSION,
    Original,
    Shipped,
    Suite,
    content_hash,
    name_of,
    populate_all,
    read_shipped,
)
from lm_eval_ext.sql.suite.store import SHORT, copied, key_of
from lm_eval_ext.sql.values import Rows


def main() -> None:
    """Writes all four files."""
    own = mini.corpus()
    jobs = {
        corpora.SHIPPED: populating.wanted(originals("spider_databases")),
        mini.SHIPPED: {d: (own.databases[d].path, tuple(q)) for d, q in own.golds().items()},
    }
    for home, wanted in jobs.items():
        with TemporaryDirectory() as folder:
            shipped = Shipped(read_shipped(home).rows, {})
            made = populate_all(wanted, Path(folder), shipped, workers=2)
        for name, suites in (("suites", made.values()), ("suites-v2", copies(wanted, home))):
            with atomic_text(home / f"{name}.json") as file:
                file.write(pack(suites))


def copies(jobs: populating.Wanted, home: Path) -> Iterator[Suite]:
    """Suites as version 2 had them: the populated copy alone judges every gold that runs."""
    shipped = read_shipped(home, "-v2").rows
    for db_id, (path, golds) in jobs.items():
        original, digest = Original(path, golds), sha256_of(path)
        with closing(original.connection):
            with closing(copied(path, original, shipped[digest])) as copy:
                content = {COPY: content_hash(copy, original.schema)}
            runs = [gold for gold in original.golds if isinstance(original.runner.run(gold), Rows)]
        key = key_of(digest, original.golds, shipped[digest])
        yield Suite(db_id, home, key, content, {name_of(gold): [COPY] for gold in runs}, [])


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
    text = json.dumps({"version": SUITE_VERSION, "databases": entries}, separators=(",", ":"))
    return text.replace('],"', '],\n"').replace("},", "},\n") + "\n"


if __name__ == "__main__":
    main()
