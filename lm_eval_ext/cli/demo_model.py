"""``lm-eval-ext demo-model``: a model to evaluate on lieder_mini, without a download."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.demo_model import lieder
from lm_eval_ext.demo_model.training import TrainingReport

ModelFolder = Annotated[
    Path, typer.Option(help="Folder for the model; must be absent, empty or hold this model.")
]
TrainingSeed = Annotated[int, typer.Option(help="Random seed for the texts and the weights.")]
Steps = Annotated[int, typer.Option(help="Optimizer steps; fewer train a worse model sooner.")]


def demo_model(
    out: ModelFolder, seed: TrainingSeed = 0, steps: Steps = lieder.DEFAULT_STEPS
) -> None:
    """Train a tiny language model on generated texts, for lm_eval --model hf."""
    say_trained(out, lieder.train(out, seed=seed, steps=steps))


def say_trained(out: Path, report: TrainingReport) -> None:
    """Prints what a training made, of any demonstration model."""
    done = "already holds this model, trained" if report.reused else "holds a model trained"
    typer.echo(
        f"{out} {done} in {report.seconds:.0f} s: {report.steps} steps, "
        f"{report.parameters} parameters, held-out loss {report.held_out_loss:.3f} nats per token"
    )
