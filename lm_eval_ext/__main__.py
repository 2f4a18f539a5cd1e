"""``python -m lm_eval_ext``: plain ``lm_eval``, where the start-up file is not read.

In a folder installed with ``pip --target``, say, or under ``python -S`` (docs/discovery.md).
Takes lm_eval's own arguments.
"""

from lm_eval_ext._autoload import install

if __name__ == "__main__":
    install()
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
