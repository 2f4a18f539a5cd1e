"""``lm-eval-ext lieder``: the paper's tests, on logged runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lm_eval_ext.cli.questions import Json
from lm_eval_ext.errors import DataError, OptionError

if TYPE_CHECKING:
    from lm_eval_ext.benchmarks.lieder.effects import Effect, Finding, Runs
    from lm_eval_ext.results.models import Model

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """LIEDER: the paper's significance tests."""


@app.command("test")
def test(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS", help="Results files or folders, with samples."),
    ],
    *,
    family: Annotated[
        str, typer.Option(help="A sentence family, or all. The paper's main text uses the default.")
    ] = "affirmative_negation",
    metric: Annotated[
        Literal["direct", "relative"], typer.Option(help="The metric: direct or relative.")
    ] = "direct",
    as_json: Json = False,
) -> None:
    """Test the paper's effects VERSION (explicit against implicit novelty) and DISTANCE."""
    from lm_eval_ext.benchmarks.lieder.effects import ALL, EFFECTS, analyse, on_fresh_items
    from lm_eval_ext.benchmarks.lieder.records import FAMILIES
    from lm_eval_ext.results.grid import text
    from lm_eval_ext.results.models import read_models

    if family not in (legal := (*FAMILIES, ALL)):
        raise OptionError(f"--family {family} is none of {', '.join(legal)}")
    models = read_models(paths)
    every = [*EFFECTS.values(), *map(on_fresh_items, EFFECTS.values())]
    there = [one for one in every if any(set(one.tasks) <= model.runs.keys() for model in models)]
    if not there:
        needed = "; or ".join(" and ".join(one.tasks) for one in EFFECTS.values())
        raise OptionError(
            f"no model in these results has {needed}. Runs of one model under two names need one "
            "display_name (model.yaml); or answer recorded files of one model in one run (--tasks "
            "lieder, --model_args path=DIR/*_MODEL.responses.jsonl,conflict=first)"
        )
    found = [
        row
        for one in there
        for row in analyse(one, _samples(models, one), family=family, metric=metric)
    ]
    if as_json:
        asked = {"family": family, "metric": metric}
        typer.echo(json.dumps({**asked, "tests": [asdict(row) for row in found]}, indent=2))
        return
    tables = [
        (
            f"{one.name}: {one.meaning}, {family}, {metric} metric",
            ("models", "test", "estimate", "95 % interval", "p", "items"),
            [_cells(row) for row in found if row.effect == one.name],
        )
        for one in there
    ]
    typer.echo(text([*tables, ("Estimates are differences in accuracy.", (), ())]), nl=False)


def _samples(models: "Sequence[Model]", effect: "Effect") -> "Runs":
    """The samples of the models that have the effect's tasks, and measured what most did.

    Raises:
        DataError: No model has samples.
    """
    from lm_eval_ext.log import get_logger
    from lm_eval_ext.results.align import align
    from lm_eval_ext.results.models import runs_by_model

    left = [model for model in models if set(effect.tasks) <= model.runs.keys()]
    tables: dict[str, Any] = {}
    for task in effect.tasks:
        tables[task], refused = align(runs_by_model(left, task))
        for error in refused.values():
            get_logger(__name__).warning("left out: %s", error)
        left = [model for model in left if model.label in tables[task]]
        if not left:
            raise DataError(str(next(iter(refused.values()))))
    return {
        model.label: {task: tables[task][model.label] for task in effect.tasks} for model in left
    }


def _cells(row: "Finding") -> tuple[str, ...]:
    from lm_eval_ext.results.grid import interval
    from lm_eval_ext.stats.statistics import number, probability

    who = row.model if row.models == 1 else f"{row.model} ({row.models})"
    return (
        who,
        row.test,
        number(row.estimate, "", signed=True),
        interval(row.low, row.high, "", signed=True),
        probability(row.p),
        str(row.items),
    )
