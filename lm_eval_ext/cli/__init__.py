"""The command line ``lm-eval-ext``: options and output only; the logic is in other modules."""


def main() -> None:
    """Runs the command line; errors that a user can fix are one line on stderr and status 1."""
    from lm_eval_ext.cli.app import app
    from lm_eval_ext.errors import one_line_errors

    with one_line_errors():
        app()
