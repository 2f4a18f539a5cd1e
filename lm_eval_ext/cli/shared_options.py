"""Options that several commands have."""

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
