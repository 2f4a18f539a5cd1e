"""MAGNIFICo on DuckDB or PostgreSQL: databases converted, gold queries translated.

An example is asked if the translation of its gold query has the result of that query, on the
original and on the populated rows (:mod:`lm_eval_ext.sql.convert`). So models can be asked for
another dialect than SQLite's, and are judged as on SQLite.
"""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.magnifico.records import Corpus, Database, Example
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql import DIALECTS, Executor, Place, sqlite_path
from lm_eval_ext.sql.convert.outcomes import TRANSLATE_VERSION, Translated, as_text
from lm_eval_ext.sql.convert.store import (
    CONVERT_VERSION,
    ORIGINAL,
    POPULATED,
    DuckDBFolder,
    Report,
    Server,
    Source,
    Target,
    convert,
)
from lm_eval_ext.sql.distill.report import POPULATE_VERSION, key_of

SQLITE = "sqlite"

COMMAND = "lm-eval-ext magnifico convert"

Key = tuple[str, str]
"""A database's id in lower case, and a gold query."""


def engine_of(name: str, server: str | None, corpus: str) -> str:
    """Where to convert to by the tasks' options: the server's URL, or ``sqlite`` or ``duckdb``.

    Raises:
        OptionError: The options are illegal.
    """
    if name not in DIALECTS:
        raise OptionError(f"magnifico_engine is {name!r}; use {', '.join(DIALECTS)}")
    if name == "postgresql" and corpus == "own":
        raise OptionError(
            "magnifico_engine=postgresql is for MAGNIFICo's own databases; use duckdb for SQLite "
            "files of yours, or name a server in magnifico_databases"
        )
    if name == "postgresql" and not server:
        raise OptionError(
            "magnifico_engine=postgresql needs a server, whose role may only read: --metadata "
            '\'{"magnifico_engine": "postgresql", "magnifico_server": "postgresql://..."}\''
        )
    if name != "postgresql" and server:
        raise OptionError(
            f"magnifico_server is for magnifico_engine=postgresql, not {name}; leave it out"
        )
    return server or name


@dataclass(frozen=True)
class Converted:
    """A corpus on another engine.

    Attributes:
        places: The databases by part and id.
        golds: What became of the gold queries.
        engine: What signatures say of the engine.
        digest: Sums up all databases and translations; for signatures.
    """

    places: Mapping[str, Mapping[str, Place]]
    golds: Mapping[Key, Translated]
    engine: str
    digest: str

    def corpus(self, corpus: Corpus) -> Corpus:
        """The corpus with these databases and queries.

        Test examples that cannot be scored keep their query; solved ones are not shown.
        """

        def asked(one: Example) -> Example:
            found = self.golds.get((one.db_id.casefold(), one.query))
            return one if found is None or found.reason else replace(one, query=found.sql)

        shown = {
            key: tuple(asked(one) for one in examples if self._kept(one))
            for key, examples in corpus.support.items()
        }
        databases = {db_id: Database.at(one) for db_id, one in self.places[ORIGINAL].items()}
        return replace(
            corpus,
            examples=tuple(map(asked, corpus.examples)),
            combinations=tuple(map(asked, corpus.combinations)),
            support=MappingProxyType(shown),
            databases=MappingProxyType(databases),
        )

    def _kept(self, example: Example) -> bool:
        found = self.golds.get((example.db_id.casefold(), example.query))
        return found is not None and not found.reason

    def reasons(self, broken: Container[Key]) -> dict[Key, str]:
        """Why gold queries that are not broken cannot be scored here, by database and query."""
        return {
            key: one.reason for key, one in self.golds.items() if one.reason and key not in broken
        }


def sources(
    corpus: Corpus, original: Mapping[str, Place], populated: Mapping[str, Path | Place]
) -> list[Source]:
    """The SQLite files of a corpus.

    Raises:
        OptionError: They are of another engine.
    """
    golds = corpus.golds()
    found = []
    for db_id, place in original.items():
        parts = {ORIGINAL: sqlite_path(place), POPULATED: Path(str(populated[db_id]))}
        # The copy's rows are the same for the same inputs, its bytes need not be.
        key = f"v{POPULATE_VERSION}-{key_of(parts[ORIGINAL], golds[db_id])}"
        found.append(Source(db_id, parts, key))
    return found


_known: dict[tuple[object, ...], Converted] = {}


def of(
    key: tuple[object, ...],
    name: str,
    corpus: Corpus,
    original: Mapping[str, Place],
    populated: Mapping[str, Path | Place],
) -> Converted:
    """A corpus on another engine; once per process.

    ``key`` decides about all databases; its last part is what :func:`engine_of` returns.

    Raises:
        LmEvalExtError: As :func:`sources` and :func:`read`.
    """
    if key not in _known:
        found = sources(corpus, original, populated)
        target = target_for(name, found, str(key[-1]))
        _known[key] = read(name, found, corpus.golds(), target)
    return _known[key]


def bring(
    name: str,
    found: Sequence[Source],
    golds: Mapping[str, Sequence[str]],
    to: str,
    readers: Sequence[str],
) -> Iterator[str]:
    """Converts databases, and says what came of it; then which gold queries can be scored.

    The role that writes to a server may do too much to try queries: another one has to ask.
    """
    target = target_for(name, found, to, readers=readers)
    there = target.reports()
    ready = all(
        one.db_id in there and there[one.db_id].key == one.key_for(target.engine) for one in found
    )
    if not ready or readers:
        for db_id, report in write(name, found, target).items():
            yield f"{db_id}: {report.tables} tables, {report.rows:,} rows"
            yield from (f"  {note}" for note in report.notes)
    if isinstance(target, Server) and (readers or not ready):
        yield f"Ask {COMMAND} again as a role that may only read, for what can be scored there."
        return
    made = read(name, found, golds, target)
    yield f"{made.engine}, conversion {made.digest}"
    yield as_text(list(made.golds.values()), DIALECTS[target.engine].title)


def target_for(
    name: str, sources: Sequence[Source], to: str, *, readers: Sequence[str] = ()
) -> Target:
    """Where a corpus is converted to: ``duckdb``, that is files in the cache, or a server's URL."""
    if to == "duckdb":
        key = json.dumps([source.key_for("duckdb") for source in sources])
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        return DuckDBFolder(cache_dir() / "converted" / f"{name}-v{CONVERT_VERSION}-{digest}")
    prefix = "magnifico_" if name == "published" else f"magnifico_{name}_"
    return Server(to, prefix=prefix, readers=readers)


def write(name: str, sources: Sequence[Source], target: Target) -> dict[str, Report]:
    """Converts the databases that are not there yet, with a progress bar.

    Raises:
        DataError: A database cannot be converted, or the server cannot be reached.
        OptionError: The role may not write.
    """
    import filelock
    from tqdm import tqdm

    home = cache_dir() / "converted"
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Ranks of one run and concurrent runs share the databases.
        with filelock.FileLock(home / f".{name}-{target.engine}.lock"):
            made = convert(sources, target)
            title = f"converting to {DIALECTS[target.engine].title}"
            bar = tqdm(made, total=len(sources), desc=title, unit="db", disable=None)
            return dict(bar)
    except OSError as error:
        raise DataError(
            f"cannot write to {home}: {error.strerror}. Set LM_EVAL_EXT_CACHE to a writable folder."
        ) from error


def read(
    name: str,
    sources: Sequence[Source],
    golds: Mapping[str, Sequence[str]],
    target: Target,
) -> Converted:
    """A corpus on another engine: files are converted if need be, a server must hold the schemas.

    Args:
        name: Of the corpus.
        sources: Its SQLite files.
        golds: Its gold queries by database id.
        target: Where the converted databases are.

    Raises:
        DataError: A database cannot be converted or used, or the server lacks some.
    """
    if isinstance(target, Server):
        reports = _on_server(name, sources, target)
    else:
        reports = write(name, sources, target)
    places = {
        part: {one.db_id: target.place(one.db_id, part) for one in sources}
        for part in (ORIGINAL, POPULATED)
    }
    with Executor(workers=1) as executor:
        engine = executor.engine_at(next(iter(places[ORIGINAL].values())))
    content = [[db_id, reports[db_id].digest] for db_id in sorted(reports)]
    asked = [TRANSLATE_VERSION, version("sqlglot"), engine, content, sorted(golds.items())]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]
    file = cache_dir() / "converted" / f"{name}-{target.engine}-golds-{digest}.json"
    translated = _translated(file, sources, golds, places, target)
    texts = [[*key, one.sql, one.reason] for key, one in sorted(translated.items())]
    total = hashlib.sha256(json.dumps([content, texts]).encode()).hexdigest()[:12]
    return Converted(
        MappingProxyType({part: MappingProxyType(one) for part, one in places.items()}),
        MappingProxyType(translated),
        engine,
        f"v{CONVERT_VERSION}-{total}",
    )


def _on_server(name: str, sources: Sequence[Source], target: Server) -> dict[str, Report]:
    """The reports of the schemas on a server, which must be of these very sources."""
    found = target.reports()
    lacking = [
        one.db_id
        for one in sources
        if one.db_id not in found or found[one.db_id].key != one.key_for(target.engine)
    ]
    if lacking:
        mini = " --mini" if name == "mini" else ""
        raise DataError(
            f"{target.url}: MAGNIFICo's databases are not there, or not of these data "
            f"({len(lacking)} of {len(sources)}, such as {lacking[0]}); write them as a role that "
            f"may create schemas: {COMMAND}{mini} --to postgresql://OWNER@... --reader ROLE"
        )
    return {one.db_id: found[one.db_id] for one in sources}


def _translated(
    file: Path,
    sources: Sequence[Source],
    golds: Mapping[str, Sequence[str]],
    places: Mapping[str, Mapping[str, Place]],
    target: Target,
) -> dict[Key, Translated]:
    """Translates and tries the gold queries, or reads from a file what came of it."""
    import filelock
    from tqdm import tqdm

    from lm_eval_ext.sql.convert.golds import Checker  # heavy: sqlglot

    file.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(file.with_name(f".{file.name}.lock")):
        if file.exists():
            noted = json.loads(file.read_text(encoding="utf-8"))
            return {(db_id, one["gold"]): Translated(**one) for db_id, one in noted}
        found: dict[Key, Translated] = {}
        title = f"trying queries on {DIALECTS[target.engine].title}"
        with Executor(workers=1) as sqlite, Executor(workers=1) as other:
            checker = Checker(target.engine, sqlite, other)
            for source in tqdm(sources, desc=title, unit="db", disable=None):
                there = {part: places[part][source.db_id] for part in source.parts}
                for one in checker.check(golds[source.db_id], source.parts, there):
                    found[source.db_id, one.gold] = one
        if checker.timed_out:
            return found  # a faster machine may say something else
        with atomic_text(file) as opened:
            json.dump([[key[0], asdict(one)] for key, one in found.items()], opened)
    return found
