"""The table of an experiment as text, as Markdown and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.compare.output import WIDTH, Section, markdown, text
from lm_eval_ext.compare.seeds import Value
from lm_eval_ext.errors import DataError
from lm_eval_ext.experiments.table import Table
from lm_eval_ext.text import one_line

RECORD = "experiment.json"
"""In the experiment's folder: the table, for the page and for other programs."""


def as_json(table: Table) -> dict[str, Any]:
    """All that the table has; keys are the attributes' names."""
    found: dict[str, Any] = TypeAdapter(Table).dump_python(table, mode="json")
    return found


def read(file: Path) -> Table:
    """Reads what :func:`write` wrote.

    Raises:
        DataError: It is something else.
    """
    try:
        return TypeAdapter(Table).validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        told = one_line(str(error), limit=200)
        raise DataError(f"{file}: not the table of an experiment ({told})") from None


def write(table: Table, out: Path) -> None:
    """Writes :data:`RECORD`."""
    with atomic_text(out / RECORD) as file:
        file.write(json.dumps(as_json(table), indent=1, ensure_ascii=False))


def as_text(table: Table, width: int = WIDTH) -> str:
    """For a terminal."""
    return text(parts(table), width).rstrip()


def as_markdown(table: Table) -> str:
    """For a document."""
    return markdown(parts(table)).rstrip()


def parts(table: Table) -> Iterator[Section]:
    """The table, what is not in it, correlations, and the paper's values."""
    names = table.about.headings
    yield (
        f"{table.about.title}\nMean ± standard deviation over the seeds that passed their gates, "
        "and the 95 % interval of the mean, clustered.",
        ["condition", "passed", *names],
        [
            [row.name, f"{row.learned} of {row.seeds}", *(_cell(row.values.get(n)) for n in names)]
            for row in table.rows
        ],
    )
    left_out = [
        f"{row.name}, seed {seed}: did not learn ({why})"
        for row in table.rows
        for seed, why in row.failed.items()
    ]
    missing = [
        f"{row.name}, seed {seed}: {what} is missing"
        for row in table.rows
        for seed, what in row.missing.items()
    ]
    if left_out or missing:
        yield "Not in the table:\n" + "\n".join([*left_out, *missing]), [], []
    if table.correlations and table.about.trend:
        yield (
            f"Correlation with {table.about.trend.title}, over the models of each line:",
            ["line", "score", "models", "Spearman", "p", "Pearson", "p "],
            [
                [
                    one.line, one.heading, str(one.models),
                    f"{one.spearman:+.2f}", _p(one.spearman_p),
                    f"{one.pearson:+.2f}", _p(one.pearson_p),
                ]
                for one in table.correlations
            ],
        )  # fmt: skip
    if table.published:
        shown = [name for name in names if any(name in one.values for one in table.published)]
        yield (
            "In the paper (its tasks and models):",
            ["published", *shown],
            [
                [one.name, *(_number(one.values.get(name)) for name in shown)]
                for one in table.published
            ],
        )


def _cell(value: Value | None) -> str:
    return "" if value is None else value.told()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004
