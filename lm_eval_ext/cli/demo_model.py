"""``lm-eval-ext demo-model``: a model to evaluate on the ``_mini`` tasks, without a download."""

from pathlib import Path
from typing import Annotated

import typer

from lm_eval_ext.demo_model import model


def demo_model(
    out: Annotated[
        Path, typer.Option(help="Folder for the model; must be absent, empty or hold this model.")
    ],
    seed: Annotated[int, typer.Option(help="Random seed for the texts and the weights.")] = 0,
    steps: Annotated[
        int, typer.Option(help="Optimizer steps; fewer train a worse model sooner.")
    ] = model.DEFAULT_STEPS,
) -> None:
    """Train a tiny encoder-decoder on generated texts, for lm_eval --model hf."""
    report = model.train(out, seed=seed, steps=steps)
    done = "already holds this model, trained" if report.reused else "holds a model trained"
    typer.echo(
        f"{out} {done} in {report.seconds:.0f} s: {report.steps} steps, "
        f"{report.parameters} parameters, held-out loss {report.held_out_loss:.3f} nats per token"
    )
