"""Muon for matrices beside AdamW for the rest, as one optimizer that a checkpoint can hold."""

from typing import Any


def muon(model: Any, *, rate: float, others: dict[str, Any], weight_decay: float = 0.0) -> Any:
    """Muon for the hidden matrices, and AdamW for all other weights, which do not decay.

    Hidden matrices are neither embeddings nor the output.

    Args:
        model: Whose weights these are.
        rate: Muon's learning rate; a step of it moves a matrix further than one of AdamW.
        others: AdamW's arguments.
        weight_decay: Muon's.

    Returns:
        An optimizer that steps both. Its groups are those of the two, so that a schedule reaches
        them.
    """
    import torch

    outer = [one for one in model.modules() if isinstance(one, torch.nn.Embedding)]
    taken = {id(one.weight) for one in (*outer, model.get_output_embeddings())}
    parameters = list(model.parameters())
    hidden = [one for one in parameters if one.dim() == 2 and id(one) not in taken]  # noqa: PLR2004
    taken = set(map(id, hidden))
    rest = [one for one in parameters if id(one) not in taken]
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
