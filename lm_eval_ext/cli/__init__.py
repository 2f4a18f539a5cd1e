"""The command line ``lm-eval-ext``: options and output only; the logic is in other modules."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
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
    """Say after Ctrl-C or SIGTERM how to go on; the exit status is 130, or 143.

    Shells have these statuses. A scheduler sends SIGTERM when the time of a job is up.
    """
    import typer

    before = None
    if threading.current_thread() is threading.main_thread():  # no other may set it
        before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo("interrupted; the same command computes what is not stored yet", err=True)
        signal_number = signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT
        raise typer.Exit(128 + signal_number) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


class Terminated(KeyboardInterrupt):
    """SIGTERM came, which ends a command as Ctrl-C does."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Schedulers and timeout send it twice; the second one must not break the cleaning up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated
