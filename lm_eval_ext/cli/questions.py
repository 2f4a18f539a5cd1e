"""Options that ``show`` and ``compare`` share: a question to the table of scores."""

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
Value = Annotated[str, typer.Option(help="Another column of the scores, such as accuracy.")]
