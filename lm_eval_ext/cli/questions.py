"""Options that several commands have."""

from typing import Annotated

import typer

Metric = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A metric or a measure; repeatable. Default: the headline."),
]
By = Annotated[
    str,
    typer.Option(
        metavar="FACET",
        help="A score for each value of a facet, such as family; several facets with commas.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACET=VALUE", help="Only rows with this value, such as form=foreign; repeatable."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Value = Annotated[str, typer.Option(help="Another column of the scores, such as accuracy.")]
