"""``lm-eval-ext train``: models by recipe."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.cli import resumable
from lm_eval_ext.errors import OptionError

EXTRA = ("accelerate", "torch", "transformers")


def train(
    recipe: Annotated[
        str,
        typer.Argument(metavar="RECIPE", help="A recipe's file, or the name of one that ships."),
    ] = "",
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the model, or for all seeds.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(help="Train a model for each: 0-4, or 0,2,7; default: the recipe's one.")
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the recipe."),
    ] = None,
    launcher: Annotated[
        str, typer.Option(help="Starts several processes: 'accelerate launch --num_processes 4'.")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the recipes that ship.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe with all its values, train nothing.")
    ] = False,
) -> None:
    """Train a model by a recipe; what is there already is not trained again."""
    from lm_eval_ext.training.options import parse_seeds, parse_settings
    from lm_eval_ext.training.recipe import read_recipe, shipped

    if list_:
        for name in shipped():
            typer.echo(f"{name}: {read_recipe(name).title}")
        return
    if not recipe:
        raise OptionError("name a recipe; lm-eval-ext train --list shows those that ship")
    settings = parse_settings(set_ or [])
    if show:
        import yaml

        content = read_recipe(recipe, settings).model_dump()
        typer.echo(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), nl=False)
        return
    if out is None:
        raise OptionError("name a folder for the model with -o")
    wanted = parse_seeds(seeds)
    read_recipe(recipe, settings)
    check_extra()
    from lm_eval_ext.training import command, records

    with resumable():
        found = command.train(recipe, out, seeds=wanted, settings=settings, launcher=launcher)
    for one in found:
        typer.echo(records.summary(one))
    typer.echo(f"evaluate with: lm-eval-ext run --models {out / records.MODELS} --tasks ...")


def check_extra() -> None:
    """Refuses to begin without the libraries.

    Raises:
        OptionError: One is missing.
    """
    if lacking := [name for name in EXTRA if find_spec(name) is None]:
        raise OptionError(
            f"training needs {', '.join(lacking)}; install: pip install 'lm-eval-ext[train]'"
        )
