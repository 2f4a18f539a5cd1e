"""``lm-eval-ext lieder``: the paper's tests, on logged runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lm_eval_ext.cli.shared_options import JsonOption
from lm_eval_ext.errors import DataError, OptionError

if TYPE_CHECKING:
    from lm_eval_ext.benchmarks.lieder.effects import Effect, Finding, TablesByModel
    from lm_eval_ext.results.grid import Section
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
    as_json: JsonOption = False,
) -> None:
    """Test the paper's effects VERSION (explicit against implicit novelty) and DISTANCE."""
    from lm_eval_ext.benchmarks.lieder.effects import ALL, analyse
    from lm_eval_ext.benchmarks.lieder.records import FAMILIES
    from lm_eval_ext.results.grid import text
    from lm_eval_ext.results.models import read_models

    legal_families = (*FAMILIES, ALL)
    if family not in legal_families:
        raise OptionError(f"--family {family} is none of {', '.join(legal_families)}")
    models = read_models(paths)
    effects = _testable_effects(models)
    findings: list[Finding] = []
    for effect in effects:
        samples = _samples(models, effect)
        findings += analyse(effect, samples, family=family, metric=metric)
    if as_json:
        tests = [asdict(finding) for finding in findings]
        typer.echo(json.dumps({"family": family, "metric": metric, "tests": tests}, indent=2))
        return
    sections: list[Section] = []
    for effect in effects:
        heading = f"{effect.name}: {effect.meaning}, {family}, {metric} metric"
        columns = ("models", "test", "estimate", "95 % interval", "p", "items")
        rows = [_cells(finding) for finding in findings if finding.effect == effect.name]
        sections.append((heading, columns, rows))
    sections.append(("Estimates are differences in accuracy.", (), ()))
    typer.echo(text(sections), nl=False)


def _testable_effects(models: "Sequence[Model]") -> "list[Effect]":
    """Return the effects whose tasks a model has answered, on the paper's items or fresh ones.

    Raises:
        OptionError: There are none.
    """
    from lm_eval_ext.benchmarks.lieder.effects import EFFECTS, on_fresh_items

    effects = [*EFFECTS.values(), *map(on_fresh_items, EFFECTS.values())]
    testable = []
    for effect in effects:
        if any(set(effect.tasks) <= model.runs.keys() for model in models):
            testable.append(effect)
    if not testable:
        needed = "; or ".join(" and ".join(effect.tasks) for effect in EFFECTS.values())
        raise OptionError(
            f"no model in these results has {needed}. Runs of one model under two names need one "
            "display_name (model.yaml); or answer recorded files of one model in one run (--tasks "
            "lieder, --model_args path=DIR/*_MODEL.responses.jsonl,conflict=first)"
        )
    return testable


def _samples(models: "Sequence[Model]", effect: "Effect") -> "TablesByModel":
    """Return the samples of the models that have the effect's tasks, and measured what most did.

    Raises:
        DataError: No model has samples.
    """
    from lm_eval_ext.log import get_logger
    from lm_eval_ext.results.align import align
    from lm_eval_ext.results.models import runs_by_model

    remaining = [model for model in models if set(effect.tasks) <= model.runs.keys()]
    samples_by_task = {}
    for task in effect.tasks:
        samples_by_task[task], problems = align(runs_by_model(remaining, task))
        for problem in problems.values():
            get_logger(__name__).warning("left out: %s", problem)
        remaining = [model for model in remaining if model.label in samples_by_task[task]]
        if not remaining:
            raise DataError(str(next(iter(problems.values()))))
    samples_by_model = {}
    for model in remaining:
        samples_by_model[model.label] = {
            task: samples_by_task[task][model.label] for task in effect.tasks
        }
    return samples_by_model


def _cells(finding: "Finding") -> tuple[str, ...]:
    """Return the cells of a test in the table of its effect."""
    from lm_eval_ext.results.grid import interval_text
    from lm_eval_ext.stats.statistics import number, probability

    model = finding.model
    if finding.models != 1:
        model += f" ({finding.models})"
    return (
        model,
        finding.test,
        number(finding.estimate, "", signed=True),
        interval_text(finding.low, finding.high, "", signed=True),
        probability(finding.p),
        str(finding.items),
    )
