"""``python -m lm_eval_ext.demo FOLDER``: prepare the models of ``make demo``."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.demo.live import prepare
from lm_eval_ext.errors import one_line_errors


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of the demonstration.")],
    model: Annotated[
        str,
        typer.Option(help="A Hugging Face folder or a model of the hub, instead of SmolLM2."),
    ] = "",
) -> None:
    """Write the files of the models that the demonstration evaluates, and print their paths."""
    with one_line_errors():
        for model_file in prepare(folder, model):
            typer.echo(str(model_file))


if __name__ == "__main__":
    typer.run(main)
