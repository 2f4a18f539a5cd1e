"""Linear layers with packed weights, on x86 processors.

oneDNN multiplies by weights that lie in memory in the order in which the processor needs them. With
few rows this takes down to a third of the time of ``torch.nn.functional.linear``, with many a
little less. torch's compiler packs weights in the same way. Sums are rounded in another order, so
log-probabilities of long texts may differ by more than those of two batch sizes: scoring does
without.
"""

import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeGuard

import torch

X86 = frozenset({"x86_64", "AMD64"})
"""The names of x86 processors with 64 bits, as Linux and Windows say them."""

DTYPES = frozenset({torch.float32, torch.bfloat16})


class PackedLinears:
    """Packed copies of the weights of some layers.

    Args:
        layers: The layers; the weights of others stay as they are.
    """

    def __init__(self, layers: Iterable[torch.nn.Linear] = ()) -> None:
        self._weights: dict[torch.nn.Linear, torch.Tensor] = {}
        for layer in layers:
            weight = layer.weight.detach()
            self._weights[layer] = torch.ops.mkldnn._reorder_linear_weight(weight, None)

    @property
    def nbytes(self) -> int:
        """Memory of the copies, in bytes."""
        return sum(layer.weight.nbytes for layer in self._weights)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the layers use the copies."""
        for layer, weight in self._weights.items():
            layer.forward = partial(_linear, weight=weight, bias=layer.bias)
        try:
            yield
        finally:
            for layer in self._weights:
                del layer.forward  # the instance's; the class has torch's


def _linear(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    output: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return output


def pack_linears(model: torch.nn.Module, max_bytes: int) -> PackedLinears:
    """Pack the linear layers of a model, as far as processor, torch and memory allow.

    Layers at the model's end come first: the output layer, the largest one, gains most.
    """
    layers: list[torch.nn.Linear] = []
    size = 0
    if platform.machine() in X86 and torch.backends.mkldnn.is_available():
        for module in reversed(list(model.modules())):
            if _can_be_packed(module) and size + module.weight.nbytes <= max_bytes:
                layers.append(module)
                size += module.weight.nbytes
    return PackedLinears(layers)


def _can_be_packed(module: torch.nn.Module) -> TypeGuard[torch.nn.Linear]:
    """Return whether a module is exactly torch's linear layer, on the processor."""
    if type(module) is not torch.nn.Linear or "forward" in vars(module):
        return False
    dtype = module.weight.dtype
    if module.weight.device.type != "cpu" or dtype not in DTYPES:
        return False
    return not lacks_instructions(dtype)


def lacks_instructions(dtype: torch.dtype) -> bool:
    """Return whether an x86 processor has no instructions for matrices of a short dtype.

    torch then converts each number, and a prompt takes several times as long as in float32. False
    for other processors, and where torch does not say.
    """
    checks = {
        torch.bfloat16: "_is_mkldnn_bf16_supported",
        torch.float16: "_is_mkldnn_fp16_supported",
    }
    if dtype not in checks or platform.machine() not in X86:
        return False
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        is_supported = getattr(torch.ops.mkldnn, checks[dtype])
    except AttributeError:
        return False
    return not is_supported()
