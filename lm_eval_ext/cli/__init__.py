"""The command line ``lm-eval-ext``: one short file per command, no logic in them."""


def main() -> None:
    """Runs the command line; errors of ours are one line on stderr and exit status 1."""
    from lm_eval_ext.cli.app import app
    from lm_eval_ext.errors import one_line_errors

    with one_line_errors():
        app()
