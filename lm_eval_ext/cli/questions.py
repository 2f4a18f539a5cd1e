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
        metavar="FACET", help="A figure for each value, such as of family; several with commas."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="FACET=VALUE", help="Only this part, such as form=foreign; repeatable."),
]
Value = Annotated[
    str, typer.Option(help="Another column of the samples' values, such as accuracy.")
]
