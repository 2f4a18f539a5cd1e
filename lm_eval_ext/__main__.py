"""``python -m lm_eval_ext``: plain ``lm_eval``, where the start-up file is not read.

In a folder installed with ``pip --target``, say, or under ``python -S`` (docs/discovery.md).
Takes lm_eval's own arguments.
"""

from lm_eval_ext._autoload import install


def main() -> None:
    """Starts watching for lm-eval's imports and hands over to its command line."""
    install()
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
