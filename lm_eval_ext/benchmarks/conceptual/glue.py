"""GLUE's diagnostics: a premise, a hypothesis, and the logical phenomena between them."""

from pathlib import Path

from lm_eval_ext.benchmarks.conceptual.records import Sample
from lm_eval_ext.errors import DataError

COLUMNS = (
    "Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain",
    "Premise", "Hypothesis", "Label",
)  # fmt: skip
LABELS = ("entailment", "neutral", "contradiction")


def read(path: Path) -> list[Sample]:
    """Reads ``diagnostic-full.tsv``: rows with a value under Logic, without repeats.

    The concept is the whole value, also where it joins several phenomena. A row repeats an
    earlier one if it has the same Logic and the same words in its premise, in whatever order
    (fact sheet, and the authors' code).

    Raises:
        DataError: It is not that table; the line is named.
    """
    # Not splitlines(): a sentence may hold one of the other characters that it takes for ends.
    header, *lines = path.read_text(encoding="utf-8").replace("\r\n", "\n").split("\n")
    if tuple(header.split("\t")) != COLUMNS:
        raise DataError(f"{path}:1: the columns are not {', '.join(COLUMNS)}")
    samples = []
    seen = set()
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        row = dict(zip(COLUMNS, line.split("\t"), strict=False))
        if len(row) != len(COLUMNS) or row["Label"] not in LABELS:
            raise DataError(f"{path}:{number}: no row of {len(COLUMNS)} columns with a known label")
        logic, premise = row["Logic"], row["Premise"]
        words = (logic, tuple(sorted(premise.split())))
        if not logic or words in seen:
            continue
        seen.add(words)
        samples.append(
            Sample(
                id=f"glue-{number:04d}",
                question=row["Hypothesis"],
                answer=row["Label"],
                concepts=frozenset([logic]),
                context=premise,
                premise=True,
            )
        )
    return samples
