"""``lm-eval-ext train``: models by recipe."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lm_eval_ext.cli import resumable
from lm_eval_ext.errors import LmEvalExtError, OptionError, require_extra

if TYPE_CHECKING:
    from lm_eval_ext.training.command import Trained
    from lm_eval_ext.training.recipe import Recipe

_TRIAL_DOCUMENTS = 4
"""The documents of the evaluation that is suggested first: a model that was trained for a few steps
writes every answer to the limit of its length."""

RecipeArgument = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="A recipe file, or the name of a recipe of the package (--list)."
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for the models, one subfolder each."),
]
StartOption = Annotated[
    str,
    typer.Option(
        metavar="MODEL",
        help="Start from this model, a folder or a name on the hub; default: the recipe's.",
    ),
]
SeedsOption = Annotated[
    str, typer.Option(help="Train a model for each seed, such as 0,1,2; default: the recipe's.")
]
DevLimitOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Evaluate on the way with the first N examples of the development set, for a trial.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the recipe."),
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="List the models and which are trained already, and train nothing."
    ),
]


def train(
    recipe: RecipeArgument = "",
    *,
    out: OutputOption = None,
    start: StartOption = "",
    seeds: SeedsOption = "",
    dev_limit: DevLimitOption = None,
    set_: SetOption = None,
    list_: Annotated[bool, typer.Option("--list", help="List the package's recipes.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Train one model or several by a recipe; finished models are not trained again."""
    from lm_eval_ext.training.recipe import parse_settings

    if list_:
        _print_recipes()
        return
    if not recipe:
        raise OptionError("name a recipe; lm-eval-ext train --list shows those that ship")
    settings = parse_settings(set_ or [])
    if start:
        settings["model.start"] = start
    if seeds:
        settings["seeds"] = _parse_seeds(seeds)
    if dev_limit is not None:
        settings["training.dev_limit"] = dev_limit
    require_extra("train", "training", "accelerate", "torch", "transformers")
    from lm_eval_ext.training import command

    models = command.plan(recipe, settings)
    if out is None:
        raise OptionError("name a folder for the model with -o")
    tasks = _tasks_of(models)
    if dry_run:
        _print_plan(models, out)
        return
    with resumable():
        trained_models = command.train(recipe, out, settings=settings)
    _print_trained(trained_models, tasks, out)


def _print_recipes() -> None:
    """Print the recipes that ship, with their titles."""
    from lm_eval_ext.training.recipe import fill_options, read_recipe, shipped

    for name in shipped():
        recipe = read_recipe(name)
        typer.echo(f"{name}: {fill_options(recipe.title, recipe.data)}")


def _parse_seeds(text: str) -> list[int]:
    """Return the numbers of ``--seeds``."""
    seeds = [seed.strip() for seed in text.split(",")]
    if not all(seed.isdecimal() for seed in seeds):
        raise OptionError(f"--seeds {text}: write whole numbers with commas, such as 0,1,2")
    return [int(seed) for seed in seeds]


def _tasks_of(models: "Mapping[str, Recipe]") -> str:
    """Return the tasks that the models are for, as ``run --tasks`` takes them.

    Raises:
        OptionError: A name is unknown, which is refused before hours of training.
    """
    from lm_eval_ext.runs.tasks import select
    from lm_eval_ext.training.recipe import fill_options

    task_lists = [fill_options(recipe.tasks, recipe.data) for recipe in models.values()]
    tasks = ",".join(dict.fromkeys(filter(None, task_lists)))
    if tasks:
        try:
            select(tasks)
        except LmEvalExtError as error:
            raise OptionError(f"the recipe's tasks: {error}") from None
    return tasks


def _print_plan(models: "Mapping[str, Recipe]", out: Path) -> None:
    """Print which models are trained already."""
    from lm_eval_ext.training import command

    for name in models:
        trained = command.Trained(out / name, command.record_of(out / name))
        if "gates" in trained.record:
            typer.echo(f"{name}: {trained.summary()}")
        else:
            typer.echo(f"{name}: not trained yet")


def _print_trained(trained_models: "Sequence[Trained]", tasks: str, out: Path) -> None:
    """Print what was trained, and how to evaluate it.

    Raises:
        LmEvalExtError: Some models did not learn.
    """
    from lm_eval_ext.training import command
    from lm_eval_ext.training.starting import processes

    if not processes().is_main_process:  # only one of a launcher's processes prints
        return
    for trained in trained_models:
        typer.echo(trained.summary())
    failed = [trained for trained in trained_models if not trained.has_learned]
    if failed:
        raise LmEvalExtError(
            f"{len(failed)} of {len(trained_models)} models did not learn (gates in "
            f"{command.RECORD}); reports leave them out"
        )
    for line in _evaluation_hints(out / command.MODELS, tasks):
        typer.echo(line)


def _evaluation_hints(models_folder: Path, tasks: str) -> list[str]:
    """Return lines with commands that evaluate the models, which can be pasted as they are."""
    if not tasks:
        return [
            f"the recipe names no tasks; model files for lm-eval-ext run are in {models_folder}"
        ]
    command = ["lm-eval-ext", "run", "--models", str(models_folder)]
    evaluation = [*command, "--tasks", tasks, "--output", "results"]
    trial = [*command, "--tasks", _first_task(tasks), "--limit", str(_TRIAL_DOCUMENTS)]
    trial += ["--output", "trial_results"]
    return [
        f"try {_TRIAL_DOCUMENTS} documents with: {shlex.join(trial)}",
        f"evaluate with: {shlex.join(evaluation)}",
    ]


def _first_task(tasks: str) -> str:
    """Return the first task of a list, and of a group the first of its tasks.

    The groups of benchmarks that models are trained for begin with the test set whose examples are
    like those of the training set.
    """
    from lm_eval_ext.cards import cards
    from lm_eval_ext.runs.tasks import select

    first_name = select(tasks).names[0]
    members: dict[str, tuple[str, ...]] = {}
    for card in cards().values():
        members.update(card.groups)
    while first_name in members:
        first_name = members[first_name][0]
    return first_name
