"""A build from beginning to end: what it keeps, what it leaves when it is interrupted."""

import json
import shutil
import uuid
from pathlib import Path

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.build.corpus import clean
from lm_eval_ext.benchmarks.diner.build.engine import Engine, first_line
from lm_eval_ext.benchmarks.diner.build.options import Options
from lm_eval_ext.benchmarks.diner.build.report import as_markdown
from lm_eval_ext.benchmarks.diner.build.stages import Report, make
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.errors import OptionError

VERSION = 1
"""Raise it when the same corpus and options give another dataset."""

WORK = ".work"
"""In the output folder: the cleaned corpus, kept for the next build from it."""

LAST = "report.json"
"""Written last: a folder without it is not whole."""


def build(corpus: Path, out: Path, glossary: Path | None, options: Options) -> Report:
    """Builds the dataset: both splits, the glossary and a report, in a folder.

    The same files from the same corpus and options, on every machine and in any order of the
    recipes. They appear when all are whole.

    Args:
        corpus: JSON lines, plain or gzipped.
        out: The folder; what an earlier build left there is replaced.
        glossary: In the published format; None derives one.
        options: The choices.

    Returns:
        What ``report.json`` holds.

    Raises:
        DataError: The corpus or the glossary cannot be used.
        OptionError: The folder cannot be written, or memory or disk do not suffice.
    """
    import filelock

    try:
        import duckdb
    except ImportError:
        raise OptionError("diner build needs DuckDB: pip install 'lm-eval-ext[diner]'") from None

    given = None if glossary is None else Glossary.read(glossary)
    work = out / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(work / "lock", blocking=False):
            # What a killed run may have left.
            for left in (*work.glob("new-*"), *work.glob("spill-*")):
                shutil.rmtree(left)
            return _build(corpus, out, given, options)
    except filelock.Timeout:
        raise OptionError(f"--out {out}: another build is writing there; wait for it") from None
    except OSError as error:
        raise OptionError(f"--out {out}: cannot write there: {error.strerror}") from error
    except duckdb.IOException as error:
        raise OptionError(f"--out {out}: cannot write there: {first_line(error)}") from error


def _build(corpus: Path, out: Path, given: Glossary | None, options: Options) -> Report:
    work = out / WORK
    mark = uuid.uuid4().hex
    new, spill = work / f"new-{mark}", work / f"spill-{mark}"
    engine = Engine(spill, memory_gib=options.memory_gib)
    try:
        new.mkdir()
        table, digest = clean(engine, corpus, work)
        source = {"file": corpus.name, "sha256": digest}
        report = {"version": VERSION, "corpus": source, **make(engine, table, given, new, options)}
        with atomic_text(new / LAST) as handle:
            json.dump(report, handle, ensure_ascii=False, indent=1)
        with atomic_text(new / "report.md") as handle:
            handle.write(as_markdown(report))
        (out / LAST).unlink(missing_ok=True)
        for path in sorted(new.iterdir(), key=lambda path: (path.name == LAST, path.name)):
            path.replace(out / path.name)
    finally:
        engine.close()
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(spill, ignore_errors=True)
    return report
