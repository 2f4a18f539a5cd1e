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


def muon(model: Any, *, rate: float, others: dict[str, Any], weight_decay: float = 0.0) -> Any:
    """Muon for the hidden matrices, and AdamW for all other weights, which do not decay.

    Args:
        model: Whose weights these are.
        rate: Muon's learning rate; a step of it moves a matrix further than one of AdamW.
        others: AdamW's arguments.
        weight_decay: Muon's.

    Returns:
        An optimizer that steps both. Its groups are those of the two, so that a schedule reaches
        them.

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
    rest = [one for one in model.parameters() if id(one) not in taken]
    parts = (
        torch.optim.Muon(hidden, rate, weight_decay=weight_decay),
        torch.optim.AdamW(rest, **others, weight_decay=0.0),
    )

    class Both(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__([*hidden, *rest], {})
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
