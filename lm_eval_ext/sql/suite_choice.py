"""The test suites that judge a file of predictions: read from a folder, or built for it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_ext.atomic import sha256_of, sha256_of_json
from lm_eval_ext.errors import DataError, OptionError, writing
from lm_eval_ext.sql.engines.places import Databases, OneDatabase, check_id
from lm_eval_ext.sql.suite import SUITE_VERSION, Suite, gold_id, populate_all, read_suite
from lm_eval_ext.sql.suite.files import suite_key
from lm_eval_ext.sql.values import Prediction
from lm_eval_ext.text import counted

_SHOWN_IDS = 3
_DIGEST_LENGTH = 12

BUILD_HINT = "--build-suite builds suites for the golds of this file"


@dataclass(frozen=True)
class SuiteSource:
    """The folder that suites are read from, or built in.

    Attributes:
        folder: A folder of suites, such as ``lm-eval-ext magnifico populate`` writes.
        build: Whether to build, into the folder, the suites that it lacks.
        per_golds: Whether to build into a folder within it that is named by databases and golds,
            so that files with other golds do not replace each other's suites.
        workers: Processes that build them. More than one needs a main guard in a Python program.
    """

    folder: Path
    build: bool = False
    per_golds: bool = False
    workers: int = 1


@dataclass(frozen=True)
class ChosenSuites:
    """Suites for the databases of some predictions.

    Attributes:
        suites: The suites by the original's id, in lower case.
        remarks: A line for each kind of prediction that no suite judges.
    """

    suites: Mapping[str, Suite]
    remarks: Sequence[str] = field(default=())


def choose_suites(
    source: SuiteSource, databases: Databases | OneDatabase, predictions: Sequence[Prediction]
) -> ChosenSuites:
    """Return the suites of the databases that predictions name.

    Raises:
        OptionError: The folder has no suite for any of them, or cannot be written.
        DataError: An original cannot be read.
    """
    originals, other_engines = _originals(databases, predictions)
    remarks: list[str] = []
    if other_engines:
        remarks.append(
            f"test suites exist for SQLite only; {_listed(other_engines)}: judged by the original "
            "rows alone"
        )
    if not originals:
        return ChosenSuites({}, remarks)
    if source.build:
        suites = _built(source, originals, predictions)
        unbuilt = [db_id for db_id in originals if db_id not in suites]
        if unbuilt:
            remarks.append(
                f"no suite could be built for {_listed(unbuilt)}: judged by the original alone"
            )
    else:
        suites, missing = _read(source.folder, originals)
        if missing:
            first_problem = next(iter(missing.values()))
            remarks.append(
                f"no suite for {_listed(list(missing))} ({first_problem}): judged by the original "
                f"alone; {BUILD_HINT}"
            )
    remarks.extend(_uncovered(suites, predictions, built=source.build))
    return ChosenSuites(suites, remarks)


def _originals(
    databases: Databases | OneDatabase, predictions: Sequence[Prediction]
) -> tuple[dict[str, Path], list[str]]:
    """Return the SQLite files by id in lower case, and the ids of databases of other engines."""
    originals: dict[str, Path] = {}
    other_engines: list[str] = []
    for db_id in dict.fromkeys(prediction.db_id for prediction in predictions):
        location = databases.find(db_id)
        if location is None:
            continue  # the verdict says that there is no such database
        if location.engine == "sqlite":
            originals[db_id.casefold()] = Path(location.address)
        else:
            other_engines.append(db_id)
    return originals, other_engines


def _read(folder: Path, originals: Mapping[str, Path]) -> tuple[dict[str, Suite], dict[str, str]]:
    """Return the suites of a folder, and by database why it has none."""
    if not folder.is_dir():
        raise OptionError(
            f"--suite {folder}: there is no such folder; name one that lm-eval-ext magnifico "
            "populate wrote, or add --build-suite"
        )
    suites: dict[str, Suite] = {}
    missing: dict[str, str] = {}
    for db_id, original in originals.items():
        try:
            check_id(db_id)
            suite = _complete(read_suite(folder, db_id))
            _check_original(suite, original)
            suites[db_id] = suite
        except (DataError, OptionError) as error:
            missing[db_id] = str(error)
    if not suites:
        problem = next(iter(missing.values()))
        raise OptionError(
            f"--suite {folder}: no suite for any of {counted(len(originals), 'database')}: "
            f"{problem}; {BUILD_HINT}"
        )
    return suites, missing


def _complete(suite: Suite) -> Suite:
    """Return a suite whose files all exist.

    Raises:
        DataError: One is missing.
    """
    for name in suite.names:
        if not suite.path(name).is_file():
            raise DataError(f"{suite.path(name)}: this file of the suite is missing")
    return suite


def _check_original(suite: Suite, original: Path) -> None:
    """Check that a suite was built for an original; a suite that does not say so passes.

    Raises:
        DataError: It was built for another one, whose schema and rows may differ.
    """
    if suite.original and suite.original != sha256_of(original):
        raise DataError(
            f"{suite.folder / suite.db_id}: built for another database than {original}, or for an "
            "earlier state of it; build it anew in another folder"
        )


def _built(
    source: SuiteSource, originals: Mapping[str, Path], predictions: Sequence[Prediction]
) -> dict[str, Suite]:
    from filelock import FileLock

    golds_by_id: dict[str, set[str]] = defaultdict(set)
    for prediction in predictions:
        golds_by_id[prediction.db_id.casefold()].add(prediction.gold)
    jobs: dict[str, tuple[Path, Sequence[str]]] = {}
    for db_id, path in originals.items():
        check_id(db_id)
        jobs[db_id] = (path, tuple(sorted(golds_by_id[db_id])))
    folder = source.folder
    if source.per_golds:
        content = [[db_id, str(path), golds] for db_id, (path, golds) in sorted(jobs.items())]
        folder /= sha256_of_json([SUITE_VERSION, content])[:_DIGEST_LENGTH]
    else:
        kept_suites = _suites_to_keep(folder, jobs)
        if len(kept_suites) == len(jobs):
            return kept_suites
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock").acquire()
    with lock:  # a command for another part of the file may have built them meanwhile
        kept_suites = {} if source.per_golds else _suites_to_keep(folder, jobs)
        missing = {db_id: job for db_id, job in jobs.items() if db_id not in kept_suites}
        workers = min(source.workers, max(1, len(missing)))
        return kept_suites | populate_all(missing, folder, workers=workers)


def _suites_to_keep(
    folder: Path, jobs: Mapping[str, tuple[Path, Sequence[str]]]
) -> dict[str, Suite]:
    """Return the suites of a folder that know all golds of their database.

    Raises:
        OptionError: As :func:`_suite_to_keep`.
    """
    suites: dict[str, Suite] = {}
    for db_id, (path, golds) in jobs.items():
        suite = _suite_to_keep(folder, db_id, path, golds)
        if suite is not None:
            suites[db_id] = suite
    return suites


def _suite_to_keep(folder: Path, db_id: str, original: Path, golds: Sequence[str]) -> Suite | None:
    """Return a suite of the folder that knows all golds; None if one is to be built.

    Raises:
        OptionError: A suite for other golds, or for another original, would be replaced.
    """
    try:
        suite = _complete(read_suite(folder, db_id))
    except DataError:
        return None  # missing, of another version, or incomplete: nothing can be lost
    if suite.key == suite_key(sha256_of(original), golds, None):
        return suite
    advice = "building would replace it: name another folder, or none (suites go to the cache)"
    try:
        _check_original(suite, original)
    except DataError as error:
        raise OptionError(f"--suite {folder}: {error}; {advice}") from None
    unknown = [gold for gold in golds if gold_id(gold) not in suite.judges]
    if unknown:
        raise OptionError(
            f"--suite {folder}: the suite of {db_id} does not know "
            f"{counted(len(unknown), 'gold')} of this file's {len(golds):,}; {advice}"
        )
    return suite


def _uncovered(
    suites: Mapping[str, Suite], predictions: Sequence[Prediction], *, built: bool
) -> list[str]:
    """Return a line about golds that a suite does not know, and one about golds it cannot judge."""
    unknown: set[tuple[str, str]] = set()
    alone: set[tuple[str, str]] = set()
    unknown_rows = 0
    for prediction in predictions:
        db_id = prediction.db_id.casefold()
        suite = suites.get(db_id)
        if suite is None:
            continue
        gold = (db_id, prediction.gold)
        if gold_id(prediction.gold) not in suite.judges:
            unknown.add(gold)
            unknown_rows += 1
        elif not suite.judges_of(prediction.gold):
            alone.add(gold)
    remarks = []
    if unknown and not built:  # a gold that does not run is in no suite
        remarks.append(
            f"the suites were built for other golds: {counted(len(unknown), 'gold')} of this file "
            f"({counted(unknown_rows, 'row')}) judged by the original alone; {BUILD_HINT}"
        )
    if alone:
        remarks.append(
            f"{counted(len(alone), 'gold')} judged by the original alone: no other database was "
            "fit to judge them"
        )
    return remarks


def _listed(db_ids: Sequence[str]) -> str:
    """Return the first ids, and how many more there are."""
    shown_ids = ", ".join(db_ids[:_SHOWN_IDS])
    hidden_count = len(db_ids) - _SHOWN_IDS
    if hidden_count > 0:
        return f"{shown_ids} and {hidden_count:,} more"
    return shown_ids
