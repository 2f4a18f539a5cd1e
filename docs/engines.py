"""Converts MAGNIFICo's databases, tries golds and recorded predictions: tables of docs/engines.md.

    LM_EVAL_EXT_DATA=DATA python docs/engines.py    # some 4 minutes of processor time

PostgreSQL is the one that is installed here, started for this and removed. A recorded prediction is
run as it was written, and translated as golds are.
"""

import csv
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
DATA = Path(os.environ.setdefault("LM_EVAL_EXT_DATA", str(ROOT.parent / "shared" / "data")))

from support.postgres import CONVERTING, Missing, served  # noqa: E402

from lm_eval_ext.benchmarks.magnifico import converted, load  # noqa: E402
from lm_eval_ext.sql import Executor, Limits, NamedDatabases  # noqa: E402
from lm_eval_ext.sql.convert import store  # noqa: E402
from lm_eval_ext.sql.convert.drafts import plan  # noqa: E402
from lm_eval_ext.sql.convert.golds import Checker, cell  # noqa: E402
from lm_eval_ext.sql.convert.outcomes import REASONS, counted  # noqa: E402
from lm_eval_ext.sql.convert.translate import translate  # noqa: E402
from lm_eval_ext.sql.parsing import UnparsedQuery  # noqa: E402
from lm_eval_ext.sql.values import quoted  # noqa: E402

PAGE = Path(__file__).with_suffix(".md")
ALL = Limits(max_rows=1 << 20, max_result_bytes=1 << 30, max_memory_bytes=4 << 30, timeout_s=60)


@dataclass
class Found:
    """What was found on one engine.

    Attributes:
        engine: Name and version.
        reports: Of the conversion, by database.
        rows: Rows that were compared with SQLite's, and those that differ.
        golds: Gold queries, and those not scorable by reason.
        verdicts: Of recorded predictions: how they were run, SQLite's verdict, the engine's.
    """

    engine: str
    reports: Mapping[str, store.Report]
    rows: tuple[int, int]
    golds: tuple[int, Mapping[str, int]]
    verdicts: Mapping[tuple[str, str, str], int]


def measured(to: str, url: str = "") -> Found:
    """Converts, and tries everything."""
    ready = load.prepare("published")
    sources = converted.sources(ready.corpus, ready.scoring.original, ready.scoring.populated)
    golds = ready.corpus.golds()
    target = converted.target_for(
        "published", sources, url or to, readers=["reader"] if url else ()
    )
    reports = converted.write("published", sources, target)
    if url:
        target = converted.target_for("published", sources, url.replace("converter@", "reader@"))
    made = converted.read("published", sources, golds, target)
    return Found(
        made.engine,
        reports,
        copied(sources, target),
        (len(made.golds), counted(made.golds.values())),
        predictions(sources, target),
    )


def copied(sources: list[store.Source], target: store.Target) -> tuple[int, int]:
    """Reads every table back: how many rows, and how many are not as SQLite has them."""
    size = wrong = 0
    with Executor(workers=1, limits=ALL) as sqlite, Executor(workers=1, limits=ALL) as other:
        for source in sources:
            planned = plan(list(source.parts.values()), target.engine)
            for part, path in source.parts.items():
                for table, types in planned.types.items():
                    declared = planned.schema[table]
                    names = [one.name for one in declared.columns]
                    ours = ", ".join(
                        f"CAST({quoted(name)} AS TEXT)"
                        if types[name.casefold()].family == "text" else quoted(name)
                        for name in names
                    )  # fmt: skip
                    query = f"SELECT {ours} FROM {quoted(declared.name)}"
                    theirs = sqlite.query(path, f"{query} NOT INDEXED").rows
                    columns = ", ".join(map(quoted, names))
                    there = other.query(
                        target.place(source.db_id, part),
                        f"SELECT {columns} FROM {quoted(declared.name)}",
                    ).rows
                    rows = [tuple(map(cell, row)) for row in theirs]
                    size += len(rows)
                    wrong += sum((Counter(rows) - Counter(there)).values())
                    wrong += max(0, len(there) - len(rows))
    return size, wrong


def predictions(
    sources: list[store.Source], target: store.Target
) -> Mapping[tuple[str, str, str], int]:
    """Scores recorded predictions on the original rows of both engines, by ``strict``."""
    csv.field_size_limit(1 << 30)
    recorded: dict[str, set[tuple[str, str]]] = defaultdict(set)
    with (DATA / "magnifico/recorded_predictions/runs.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            recorded[row["db_id"].casefold()].add((row["gold_sql"], row["predicted_sql"]))
    counts: Counter[tuple[str, str, str]] = Counter()
    originals = {one.db_id: one.parts[store.ORIGINAL] for one in sources}
    places = {one.db_id: target.place(one.db_id, store.ORIGINAL) for one in sources}
    with (
        Executor(NamedDatabases(originals), workers=1) as sqlite,
        Executor(NamedDatabases(places), workers=1) as other,
    ):
        checker = Checker(target.engine, sqlite, other)
        for source in sources:
            pairs = sorted(recorded[source.db_id])
            there = {part: target.place(source.db_id, part) for part in source.parts}
            checked = checker.check(sorted({gold for gold, _ in pairs}), source.parts, there)
            kept = {one.gold: one.sql for one in checked if not one.reason}
            names = checker.names(source.parts, places[source.db_id])
            for gold, predicted in pairs:
                if gold not in kept:
                    continue
                right = judged(sqlite, source.db_id, gold, predicted)
                try:
                    translated = translate(predicted, names)
                except UnparsedQuery:
                    translated = ""
                for how, query in (("as written", predicted), ("translated", translated)):
                    said = judged(other, source.db_id, kept[gold], query) if query else "refused"
                    if right != "refused":
                        counts[how, right, said] += 1
    return counts


def judged(executor: Executor, db_id: str, gold: str, predicted: str) -> str:
    """A verdict by ``strict``: correct, wrong, or refused, which is what does not run."""
    status = executor.score_one(db_id, gold, predicted, semantics="strict").status
    return status if status in ("correct", "wrong") else "refused"


def row(*cells: object) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def share(part: int, whole: int) -> str:
    """A count with its percentage."""
    return f"{part:,} ({part / whole:.1%})"


def of_golds(all_found: list[Found]) -> Iterator[str]:
    """Golds by reason."""
    yield row("gold queries", *(one.engine.partition(",")[0] for one in all_found))
    yield row("---", *("---" for _ in all_found))
    sizes = [one.golds[0] for one in all_found]
    kept = [size - sum(one.golds[1].values()) for size, one in zip(sizes, all_found, strict=True)]
    yield row("scorable", *map(share, kept, sizes))
    for reason, said in REASONS.items():
        counts = [one.golds[1].get(reason, 0) for one in all_found]
        if any(counts):
            yield row(f"`{reason}`: {said}", *map(share, counts, sizes))
    yield row("all", *(f"{size:,}" for size in sizes))


def of_rows(all_found: list[Found]) -> Iterator[str]:
    """What was converted."""
    yield row("converted", *(one.engine.partition(",")[0] for one in all_found))
    yield row("---", *("---" for _ in all_found))
    yield row("rows, both parts", *(f"{one.rows[0]:,}" for one in all_found))
    yield row("rows that differ from SQLite's", *(f"{one.rows[1]:,}" for one in all_found))
    for title, mark in (
        ("columns of another type than declared", " is "),
        ("foreign keys not declared", "not declared"),
    ):
        notes = [
            sum(mark in note for report in one.reports.values() for note in report.notes)
            for one in all_found
        ]
        yield row(title, *notes)


def of_verdicts(all_found: list[Found]) -> Iterator[str]:
    """How predictions are judged on both."""
    yield row("engine", "run", "on SQLite", "runs", "correct there", "wrong there", "same verdict")
    yield row(*["---"] * 7)
    for one in all_found:
        for how in ("as written", "translated"):
            for verdict in ("correct", "wrong"):
                count = {
                    said: one.verdicts.get((how, verdict, said), 0)
                    for said in ("correct", "wrong", "refused")
                }
                runs = count["correct"] + count["wrong"]
                yield row(
                    one.engine.partition(":")[0], how, f"{verdict}, {sum(count.values()):,}",
                    f"{runs:,}", f"{count['correct']:,}", f"{count['wrong']:,}",
                    f"{count[verdict] / runs:.2%}" if runs else "-",
                )  # fmt: skip


def written(name: str, lines: Iterator[str]) -> None:
    """Puts a table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    mark, end = f"<!-- engines: {name} -->\n", "<!-- end -->"
    before, rest = text.split(mark)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{mark}" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measures on both engines, and writes the tables."""
    found = [measured("duckdb")]
    try:
        with served(*CONVERTING) as own:
            found.append(measured("postgresql", own.url("converted", "converter")))
    except Missing as reason:
        sys.exit(f"nothing is written: {reason}")
    for name, lines in (("golds", of_golds), ("rows", of_rows), ("verdicts", of_verdicts)):
        written(name, lines(found))


if __name__ == "__main__":
    main()
