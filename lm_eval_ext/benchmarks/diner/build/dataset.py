"""Builds DiNeR's dataset: the glossary, both splits and a report, from a corpus of recipes."""

import json
import math
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner.build import recipes, report, tmcd
from lm_eval_ext.benchmarks.diner.build.corpus import clean
from lm_eval_ext.benchmarks.diner.build.derive import derive
from lm_eval_ext.benchmarks.diner.build.divergence import COMPOUNDS, WHOLE
from lm_eval_ext.benchmarks.diner.build.engine import MEMORY_GIB, Engine, first_line
from lm_eval_ext.benchmarks.diner.build.report import as_markdown
from lm_eval_ext.benchmarks.diner.files import REPORT
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary
from lm_eval_ext.errors import DataError, OptionError

Report = dict[str, Any]

VERSION = 2
"""To be raised when the same corpus and options give another dataset."""

WORK = ".work"
"""Folder in the output folder that keeps the cleaned corpus for the next build."""

SHOWN = 50
"""Number of names that do not parse, in the report."""

DIVERGENCE = 0.98
"""The paper's main split; it also has 0.8 and 0.6 (section 6)."""


@dataclass(frozen=True)
class Options:
    """What users can choose; only the memory does not change the dataset.

    Attributes:
        divergence: The search for the TMCD split stops here; above 0, at most 1.
        compounds: What it counts as a compound; one of ``COMPOUNDS``.
        proportion: The share of training recipes to keep; above 0, at most 1.
        seed: Of both splits.
        memory_gib: DuckDB's memory limit.
    """

    divergence: float = DIVERGENCE
    proportion: float = 1.0
    seed: int = 0
    memory_gib: float = MEMORY_GIB
    compounds: str = WHOLE

    def __post_init__(self) -> None:
        """Raises OptionError if a value is illegal."""
        if not 0 < self.divergence <= 1:
            raise OptionError(
                f"--divergence {self.divergence}: use a number above 0 and up to 1; the paper has "
                "0.98, 0.8 and 0.6"
            )
        if self.compounds not in COMPOUNDS:
            raise OptionError(f"--compounds {self.compounds}: use {', '.join(COMPOUNDS)}")
        if not 0 < self.proportion <= 1:
            raise OptionError(
                f"--proportion {self.proportion}: use a number above 0 and up to 1; the paper has "
                "0.2, 0.4, 0.6, 0.8 and 1.0"
            )
        if not (math.isfinite(self.memory_gib) and self.memory_gib > 0):
            raise OptionError(f"--memory {self.memory_gib}: use a number of GiB above 0")


def build(corpus: Path, out: Path, glossary: Path | None, options: Options) -> Report:
    """Builds the dataset in a folder.

    The same corpus and options give the same files on every machine and in any order of the
    recipes. The files appear only when all of them are complete, and replace an earlier build.
    Without a glossary file, a glossary is derived from the corpus.

    Returns:
        The content of ``report.json``.

    Raises:
        DataError: The corpus or the glossary cannot be used.
        OptionError: The folder cannot be written, or memory or disk space is insufficient.
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
            # What a killed build may have left.
            for left in (*work.glob("new-*"), *work.glob("spill-*")):
                shutil.rmtree(left)
            return _build(corpus, out, given, options)
    except filelock.Timeout:
        raise OptionError(
            f"--output {out}: another build is writing there; wait until it ends"
        ) from None
    except OSError as error:
        raise OptionError(f"--output {out}: cannot write there: {error.strerror}") from error
    except duckdb.IOException as error:
        raise OptionError(f"--output {out}: cannot write there: {first_line(error)}") from error


def _build(corpus: Path, out: Path, given: Glossary | None, options: Options) -> Report:
    work = out / WORK
    mark = uuid.uuid4().hex
    new, spill = work / f"new-{mark}", work / f"spill-{mark}"
    engine = Engine(spill, memory_gib=options.memory_gib)
    try:
        new.mkdir()
        table, digest = clean(engine, corpus, work)
        source = {"file": corpus.name, "sha256": digest}
        report = {"version": VERSION, "corpus": source, **_make(engine, table, given, new, options)}
        with atomic_text(new / REPORT) as handle:
            json.dump(report, handle, ensure_ascii=False, indent=1)
        with atomic_text(new / "report.md") as handle:
            handle.write(as_markdown(report))
        (out / REPORT).unlink(missing_ok=True)
        for path in sorted(new.iterdir(), key=lambda path: (path.name == REPORT, path.name)):
            path.replace(out / path.name)
    finally:
        engine.close()
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(spill, ignore_errors=True)
    return report


def _make(
    engine: Engine, table: Path, given: Glossary | None, new: Path, options: Options
) -> Report:
    """Writes the splits and the glossary, and returns the report's numbers.

    Raises:
        DataError: There are no dish names, none parses, or none can be tested.
    """
    recipes.simplify(engine, table)
    counted, (read, titled, titles) = recipes.title_counts(engine)
    if not counted:
        raise DataError(
            f"there are no dish names: no title occurs {recipes.MIN_OCCURRENCES} times in "
            f"{read:,} recipes ({titled:,} have a title in Chinese); use a larger corpus"
        )
    glossary = given or derive(counted, recipes.ingredients(engine, counted))
    parsed = {name: found for name in sorted(counted) if (found := glossary.parse(name))}
    collected = _collect(engine, parsed, len(counted))
    names = {name: parsed[name] for name in collected}
    kept = {name: n for name, (n, _) in collected.items()}
    with_name = sum(counted[name] for name in parsed)
    copies = sum(n for _, n in collected.values())
    characters, steps = recipes.means(engine)
    used = ("duckdb", "jieba") if given is None else ("duckdb",)
    with atomic_text(new / "glossary.json") as handle:
        json.dump(glossary.as_dict(), handle, ensure_ascii=False, indent=1)
    return {
        "options": {
            "divergence": options.divergence,
            "compounds": options.compounds,
            "proportion": options.proportion,
            "seed": options.seed,
        },
        "software": {name: metadata.version(name) for name in used},
        "glossary": _described(glossary, "derived" if given is None else "given"),
        "kept": asdict(
            recipes.Kept(
                read=read,
                titled=titled,
                titles=titles,
                dish_names=len(counted),
                with_dish_name=sum(counted.values()),
                parsed_names=len(parsed),
                with_parsed_name=with_name,
                short=with_name - copies,
                repeats=copies - sum(kept.values()),
                dishes=len(names),
                recipes=sum(kept.values()),
            )
        ),
        "characters": characters,
        "steps": steps,
        "recipes_per_dish": sum(kept.values()) / len(names),
        "forms": report.forms(names, kept),
        **_split(engine, names, new, options),
        "unparsed": _unparsed(counted, parsed),
    }


def _collect(engine: Engine, parsed: tmcd.Names, dish_names: int) -> dict[str, tuple[int, int]]:
    if not parsed:
        raise DataError(f"none of {dish_names:,} dish names parses; use another glossary")
    collected = recipes.collect(engine, parsed)
    if not collected:
        raise DataError(
            f"no recipe of {len(parsed):,} dish names has an instruction of "
            f"{recipes.MIN_CHARACTERS} characters; check recipeInstructions in the corpus"
        )
    return collected


def _split(engine: Engine, names: tmcd.Names, new: Path, options: Options) -> Report:
    found = _search(names, options)
    sizes = recipes.divide(engine, found.test, seed=options.seed, proportion=options.proportion)
    # From the recipes that are written: a small proportion may drop all recipes of a dish.
    sides = {split: recipes.names(engine, split) for split in recipes.SPLITS}
    for split in recipes.SPLITS:
        recipes.write(engine, split, new / f"{split}_data.json")
    return {
        "splits": {
            split: {
                **report.split_statistics(names, *sides[split]),
                "recipes": sizes[split],
                "categories": report.categories(names, *sides[split]),
            }
            for split in recipes.SPLITS
        },
        "course": list(found.course),
    }


def _search(names: tmcd.Names, options: Options) -> tmcd.Split:
    from tqdm import tqdm

    # disable=None: a bar on terminals only.
    with tqdm(desc="Exchanging names", unit=" exchanges", disable=None) as bar:

        def show(reached: float) -> None:
            bar.set_postfix_str(f"divergence {reached:.4f}", refresh=False)
            bar.update()

        return tmcd.split(
            names,
            target=options.divergence,
            compounds=options.compounds,
            seed=options.seed,
            progress=show,
        )


def _described(glossary: Glossary, source: str) -> Report:
    words = glossary.as_dict()
    return {
        "source": source,
        "digest": glossary.digest,
        "words": {kind: len(words[kind]) for kind in KINDS},
        "classes": {kind: len(set(words[kind].values())) for kind in KINDS},
    }


def _unparsed(counted: Mapping[str, int], parsed: tmcd.Names) -> list[tuple[str, int]]:
    left = [(name, n) for name, n in counted.items() if name not in parsed]
    return sorted(left, key=lambda pair: (-pair[1], pair[0]))[:SHOWN]
