"""The command line ``lm-eval-ext``: options and output only; the logic is in other modules."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def main() -> None:
    """Run the command line; errors that a user can fix are one line on stderr.

    The exit status is then 1, and 2 if an option or argument cannot be read.
    """
    import sys

    import typer

    from lm_eval_ext.cli.app import app
    from lm_eval_ext.errors import one_line_errors
    from lm_eval_ext.text import one_line

    # click's UsageError; the newer versions of typer have another class of this name.
    usage_error: Any = typer.BadParameter.__mro__[1]
    with one_line_errors():
        try:
            sys.exit(app(standalone_mode=False))
        except typer.Abort:
            sys.exit("Aborted.")
        except usage_error as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
                sys.exit(2)
            path = error.ctx.command_path if error.ctx else "lm-eval-ext"
            problem = one_line(error.format_message()).rstrip(".").replace("Value error, ", "")
            print(f"lm-eval-ext: error: {problem}; see {path} --help", file=sys.stderr)
            sys.exit(2)


@contextmanager
def resumable() -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost; the exit status is 130, as shells have it."""
    import typer

    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command continues where this one ended", err=True)
        raise typer.Exit(130) from None
