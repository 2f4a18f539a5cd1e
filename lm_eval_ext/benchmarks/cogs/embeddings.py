"""The embeddings that novel tokens start from (paper, section 4.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.errors import OptionError

RANDOM, AVERAGE, UNUSED = "random", "average", "unused"

INITS: Mapping[str, str] = {
    RANDOM: "drawn as the model's own weights are before training",
    AVERAGE: "the mean of all embeddings, with noise",
    UNUSED: "rows of the embedding matrix that the tokenizer never used",
}

NOISE = 1e-5
"""The noise of ``average`` is drawn with the embeddings' own covariance times this.

The paper adds noise "as suggested by Hewitt (2021)" and gives no figure; this one is Hewitt's.
Without it the 21 tokens would be one and the same to the model."""

BLOCK = 4096
"""Rows that are widened to double precision at a time; memory and nothing else depends on it."""


@dataclass(frozen=True)
class Matrix:
    """A parameter that has one row per token.

    Attributes:
        names: Under which the model's state has it; several where weights are tied.
        weight: The parameter (a torch tensor) as it was.
        rows: What the novel tokens get, in their order and in the parameter's own type.
    """

    names: tuple[str, ...]
    weight: Any
    rows: Any


def check_init(init: str, seed: int) -> None:
    """Tells a wrong name or seed before anything is loaded.

    Raises:
        OptionError: If ``init`` is none of :data:`INITS`, or the seed is out of range.
    """
    if init not in INITS:
        raise OptionError(f"no initialisation {init!r}; use {', '.join(INITS)}")
    if not 0 <= seed < 2**32:
        raise OptionError(f"seed is {seed}: it must be from 0 to {2**32 - 1}")


def unused_rows(size: int, used: Collection[int], count: int) -> list[int]:
    """The first rows of a matrix that stand for no token.

    T5's matrix has 32,128 rows and its tokenizer 32,100 tokens: 28 rows were never used in
    training (the paper's footnote 6).

    Raises:
        OptionError: If there are fewer than ``count``.
    """
    rows = [row for row in range(size) if row not in used]
    if len(rows) < count:
        raise OptionError(
            f"{UNUSED} needs {count} rows of the embedding matrix that the tokenizer never uses, "
            f"and this model has {len(rows)} of {size}; use {RANDOM} or {AVERAGE}"
        )
    return rows[:count]


def matrices(
    model: Any, *, init: str, used: Collection[int], count: int, seed: int
) -> list[Matrix]:
    """What has to grow in a model, and the rows of the novel tokens in each.

    Input embeddings come first, then output embeddings and their biases where they are
    parameters of their own.

    Raises:
        OptionError: For ``unused`` with too few unused rows.
    """
    import torch

    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    parameters = [inputs.weight]
    if outputs is not None:
        parameters += [outputs.weight, getattr(outputs, "bias", None)]
    grown: list[Matrix] = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in parameters:
            if parameter is None or any(matrix.weight is parameter for matrix in grown):
                continue
            if init == UNUSED:
                rows = parameter[unused_rows(len(inputs.weight), used, count)]
            elif init == AVERAGE:
                rows = _average(parameter, count)
            else:
                rows = _random(model, parameter, count, embedding=parameter is inputs.weight)
            names = [
                name
                for name, other in model.named_parameters(remove_duplicate=False)
                if other is parameter
            ]
            grown.append(Matrix(tuple(names), parameter, rows.detach().to(parameter.dtype)))
    return grown


def _random(model: Any, parameter: Any, count: int, *, embedding: bool) -> Any:
    """Has the model initialise a module of its own kind with one row per token."""
    from torch import nn

    if parameter.dim() == 1:  # a bias; models start them at zero
        return parameter.new_zeros(count)
    width = parameter.shape[1]
    module = nn.Embedding(count, width) if embedding else nn.Linear(width, count, bias=False)
    model._init_weights(module)
    return module.weight


def _average(parameter: Any, count: int) -> Any:
    """Mean of all rows, plus noise with :data:`NOISE` times their covariance.

    Random weights on the centred rows have that covariance; no matrix is factorised.
    """
    import torch

    matrix = parameter.reshape(len(parameter), -1)
    draws = torch.randn(count, len(matrix), dtype=torch.float64)
    total = torch.zeros(matrix.shape[1], dtype=torch.float64)
    weighted = torch.zeros(count, matrix.shape[1], dtype=torch.float64)
    for rows, weights in zip(matrix.split(BLOCK), draws.split(BLOCK, dim=1), strict=True):
        total += rows.double().sum(0)
        weighted += weights @ rows.double()
    mean = total / len(matrix)
    centred = weighted - draws.sum(1, keepdim=True) * mean
    return (mean + (NOISE / len(matrix)) ** 0.5 * centred).reshape(count, *parameter.shape[1:])


def grow(tensor: Any, ids: Sequence[int], rows: Any) -> Any:
    """A copy of ``tensor`` with the novel tokens' rows, as long as the largest id asks for.

    It never shrinks: rows behind the vocabulary stay, and so do their numbers.
    """
    size = max(len(tensor), max(ids) + 1)
    grown = tensor.new_zeros(size, *tensor.shape[1:])
    grown[: len(tensor)] = tensor
    grown[list(ids)] = rows.to(tensor.dtype)
    return grown
