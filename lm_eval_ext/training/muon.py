"""The optimizer of ``optim: muon``: Muon for the hidden matrices, AdamW for all other weights.

It is imported where it is used, since it loads torch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainingArguments

_MATRIX_DIMENSIONS = 2


class MuonWithAdamW(torch.optim.Optimizer):  # type: ignore[misc]
    """Two optimizers as one, so that a schedule and a checkpoint reach all weights."""

    def __init__(
        self, muon: torch.optim.Muon, adamw: torch.optim.AdamW, learning_rate: float
    ) -> None:
        """Take the groups of weights of both, which have one group each."""
        super().__init__([*muon.param_groups, *adamw.param_groups], {"lr": learning_rate})
        self._optimizers = (muon, adamw)

    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Let each optimizer move its weights; what they remember is kept here."""
        for optimizer, group in zip(self._optimizers, self.param_groups, strict=True):
            optimizer.param_groups = [group]
            optimizer.state = self.state
            optimizer.step()


def muon_optimizer(
    model: "PreTrainedModel", arguments: "TrainingArguments", adamw_rate: float | None
) -> MuonWithAdamW:
    """Return an optimizer for all weights of a model; those of AdamW do not decay.

    Hidden matrices are neither embeddings nor the output.

    Args:
        model: The model.
        arguments: Rate and decay in it are Muon's; a step of Muon moves a matrix further than one
            of AdamW.
        adamw_rate: AdamW's learning rate; None is Muon's.
    """
    outer_layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.Embedding)]
    outer_layers.append(model.get_output_embeddings())
    outer_weights = {id(layer.weight) for layer in outer_layers}
    hidden_matrices = []
    other_weights = []
    for weight in model.parameters():
        if weight.dim() == _MATRIX_DIMENSIONS and id(weight) not in outer_weights:
            hidden_matrices.append(weight)
        else:
            other_weights.append(weight)
    muon = torch.optim.Muon(
        hidden_matrices, arguments.learning_rate, weight_decay=arguments.weight_decay
    )
    adamw = torch.optim.AdamW(
        other_weights,
        lr=adamw_rate or arguments.learning_rate,
        betas=(arguments.adam_beta1, arguments.adam_beta2),
        eps=arguments.adam_epsilon,
        weight_decay=0.0,
        fused=True,
    )
    return MuonWithAdamW(muon, adamw, arguments.learning_rate)
