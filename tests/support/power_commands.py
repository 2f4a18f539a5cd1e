"""The command ``power`` in this process, and its output."""

from pathlib import Path

from typer.testing import CliRunner

from lm_eval_ext.cli.app import app


def power_command(runs: Path, task: str, *options: str) -> str:
    """Return the output of ``lm-eval-ext power`` with a pilot of two models."""
    pilot = [str(runs / "good"), str(runs / "poor")]
    return CliRunner().invoke(app, ["power", task, *pilot, *options]).output


def unwrapped(output: str) -> str:
    """Return an output with its line breaks as spaces."""
    return " ".join(output.split())
