"""GLUE diagnostics: a premise, a hypothesis, and the logical phenomena between them."""

from pathlib import Path

from lm_eval_ext.benchmarks.conceptual.records import Sample
from lm_eval_ext.errors import DataError

COLUMNS = (
    "Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain",
    "Premise", "Hypothesis", "Label",
)  # fmt: skip
SEPARATOR = ";"
"""Between the phenomena of a value under Logic that joins several."""
LABELS = ("entailment", "neutral", "contradiction")


def read(path: Path) -> list[Sample]:
    """Reads the rows of ``diagnostic-full.tsv`` that have a value under Logic, without repeats.

    The concept is the whole value, even if it joins several phenomena. As in the authors' code,
    a row is a repeat if an earlier one has the same Logic and the same bag of premise words.

    Raises:
        DataError: The table is not valid; the message names the line.
    """
    # Not splitlines(), which also splits at characters that sentences contain, such as U+2028.
    header, *lines = path.read_text(encoding="utf-8").replace("\r\n", "\n").split("\n")
    if tuple(header.split("\t")) != COLUMNS:
        raise DataError(f"{path}:1: the columns must be {', '.join(COLUMNS)}")
    samples = []
    seen = set()
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        row = dict(zip(COLUMNS, line.split("\t"), strict=False))
        if len(row) != len(COLUMNS) or row["Label"] not in LABELS:
            raise DataError(
                f"{path}:{number}: not a row of {len(COLUMNS)} columns with the label "
                f"{', '.join(LABELS)}"
            )
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
