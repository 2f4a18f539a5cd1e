"""Options that several commands have."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

ResultsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Files results_*.json, or folders given as --output_path."),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A metric or a measure; repeatable. Default: the headline."),
]
FacetOption = Annotated[
    str,
    typer.Option(
        metavar="FACET",
        help="A score for each value of a facet, such as family; several facets with commas.",
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACET=VALUE", help="Only rows with this value, such as form=foreign; repeatable."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ValueOption = Annotated[str, typer.Option(help="Another column of the scores, such as accuracy.")]

AcrossSettingsOption = Annotated[
    bool,
    typer.Option(
        "--across-settings",
        help="Also compare runs with different prompts, chat templates or generation settings.",
    ),
]


def one_spelling(option: str) -> str:
    """Return ``task`` for ``tasks``, and other names as they are.

    Commands take one task or several; a user need not know which, so each takes both spellings and
    documents its own.
    """
    return "task" if option == "tasks" else option


def shell_words(paths: Iterable[Path]) -> str:
    """Return paths as words of a command that a user can copy."""
    return shlex.join(map(str, paths))
