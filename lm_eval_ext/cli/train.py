"""``lm-eval-ext train``: models by recipe."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli import resumable
from lm_eval_ext.errors import LmEvalExtError, OptionError, require_extra


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A recipe file, or the name of a recipe of the package (--list)."
        ),
    ] = "",
    *,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the models, one subfolder each."),
    ] = None,
    seeds: Annotated[
        str, typer.Option(help="Train a model for each seed, such as 0,1,2; default: the recipe's.")
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the recipe."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the package's recipes.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="List the models and which are trained already, and train nothing."
        ),
    ] = False,
) -> None:
    """Train one model or several by a recipe; finished models are not trained again."""
    from lm_eval_ext.runs.tasks import select
    from lm_eval_ext.training.recipe import filled, parse_settings, read_recipe, shipped

    if list_:
        for name in shipped():
            found = read_recipe(name)
            typer.echo(f"{name}: {filled(found.title, found.data)}")
        return
    if not recipe:
        raise OptionError("name a recipe; lm-eval-ext train --list shows those that ship")
    if seeds and not all(one.strip().isdecimal() for one in seeds.split(",")):
        raise OptionError(f"--seeds {seeds}: write whole numbers with commas, such as 0,1,2")
    settings = parse_settings([*(set_ or []), *([f"seeds=[{seeds}]"] if seeds else [])])
    require_extra("train", "training", "accelerate", "torch", "transformers")
    from lm_eval_ext.training import command
    from lm_eval_ext.training.starting import processes

    models = command.plan(recipe, settings)
    if out is None:
        raise OptionError("name a folder for the model with -o")
    tasks = (filled(one.tasks, one.data) for one in models.values())
    wanted = ",".join(dict.fromkeys(filter(None, tasks)))
    try:
        if wanted:  # an unknown name is refused before hours of training
            select(wanted)
    except LmEvalExtError as error:
        raise OptionError(f"the recipe's tasks: {error}") from None
    if dry_run:
        for name in models:
            there = command.Trained(out / name, command.record_of(out / name))
            told = there.summary() if "gates" in there.record else "not trained yet"
            typer.echo(f"{name}: {told}")
        return
    with resumable():
        trained = command.train(recipe, out, settings=settings)
    if not processes().is_main_process:  # of a launcher's, one tells
        return
    for done in trained:
        typer.echo(done.summary())
    if failed := [done for done in trained if not done.learned]:
        raise LmEvalExtError(
            f"{len(failed)} of {len(trained)} models did not learn (gates in {command.RECORD}); "
            "reports leave them out"
        )
    words = f"--models {out / command.MODELS} --tasks {wanted or '...'} --output results"
    typer.echo(f"evaluate with: lm-eval-ext run {words}")
