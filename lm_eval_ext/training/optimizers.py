"""Muon for matrices beside AdamW for the rest, as one optimizer that a checkpoint can hold."""

from typing import Any

from lm_eval_ext.errors import OptionError


def hidden_matrices(model: Any) -> list[Any]:
    """The weights that Muon is for: matrices that are neither embeddings nor the output."""
    import torch

    output = model.get_output_embeddings()
    others = {
        id(weight)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding) or module is output
        for weight in module.parameters(recurse=False)
    }
    matrices = (one for one in model.parameters() if one.dim() == 2)  # noqa: PLR2004
    return [one for one in matrices if id(one) not in others]


def with_embedding_rate(adamw: Any, model: Any, rate: float) -> Any:
    """Gives all weights that are no hidden matrices a learning rate of their own."""
    hidden = set(map(id, hidden_matrices(model)))
    for group in list(adamw.param_groups):
        others = [one for one in group["params"] if id(one) not in hidden]
        group["params"] = [one for one in group["params"] if id(one) in hidden]
        if others:
            adamw.add_param_group({**group, "params": others, "lr": rate})
    return adamw


def with_muon(adamw: Any, model: Any, rate: float, weight_decay: float = 0.0) -> Any:
    """Takes the hidden matrices from an AdamW, which has no state yet, and gives them to Muon.

    Args:
        adamw: Keeps the other weights with their groups' settings.
        model: Whose weights these are.
        rate: Muon's learning rate; a step of it moves a matrix further than one of AdamW.
        weight_decay: Muon's.

    Returns:
        An optimizer that steps both. Its groups begin with Muon's, and are those of the two, so
        that a schedule reaches them.

    Raises:
        OptionError: This torch has no Muon, or the model no matrices for it.
    """
    import torch

    if not hasattr(torch.optim, "Muon"):
        raise OptionError(f"Muon needs torch 2.9 or newer; this is {torch.__version__}")
    hidden = hidden_matrices(model)
    if not hidden:
        raise OptionError("Muon is for matrices, and the model has none but embeddings")
    taken = set(map(id, hidden))
    for group in adamw.param_groups:
        group["params"] = [one for one in group["params"] if id(one) not in taken]
    adamw.param_groups = [group for group in adamw.param_groups if group["params"]]
    parts = (torch.optim.Muon(hidden, rate, weight_decay=weight_decay), adamw)

    class Both(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__([weight for part in parts for weight in _weights(part)], {})
            self._take_groups()

        def _take_groups(self) -> None:
            self.param_groups = [group for part in parts for group in part.param_groups]

        def step(self, closure: Any = None) -> None:
            for part in parts:
                part.step()

        def state_dict(self) -> dict[str, Any]:
            return {"parts": [part.state_dict() for part in parts]}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            for part, state in zip(parts, state_dict["parts"], strict=True):
                part.load_state_dict(state)
            self._take_groups()

    return Both()


def _weights(optimizer: Any) -> list[Any]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]
