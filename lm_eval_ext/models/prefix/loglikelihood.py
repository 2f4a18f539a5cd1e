"""Log-probabilities of continuations, group by group."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.pack import lay_out
from lm_eval_ext.models.prefix.plan import Group, Limits, cut
from lm_eval_ext.models.prefix.tree import Tree

Answer = tuple[float, bool]


def score(
    engine: Engine,
    tree: Tree[int],
    continuations: Sequence[Sequence[int]],
    limits: Limits,
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Yields ``(key, (log-probability, whether greedy decoding would say the same))``.

    Args:
        engine: The model.
        tree: What the model reads for each request: context and continuation without its last
            token. Keys index ``continuations``.
        continuations: Their tokens.
        limits: Of the groups.
        softmax_dtype: As HFLM's argument.
    """
    path = np.arange(0)
    for group in cut(tree, limits):
        engine.keep(path[: group.kept])
        pack = lay_out(group)
        yield from _score_group(engine, group, pack, continuations, softmax_dtype)
        path = pack.paths[-1]


def _score_group(
    engine: Engine,
    group: Group[int],
    pack: Any,
    continuations: Sequence[Sequence[int]],
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Every continuation token is one (slot before it, token) pair; pairs of all are one batch."""
    keys = [key for leaf in group.leaves for key in leaf.keys]
    lengths = [len(continuations[key]) for key in keys]
    slots = np.concatenate(
        [
            path[len(path) - len(continuations[key]) :]
            for leaf, path in zip(group.leaves, pack.paths, strict=True)
            for key in leaf.keys
        ]
    )
    tokens = np.concatenate([np.asarray(continuations[key]) for key in keys])
    needed, rows = np.unique(slots, return_inverse=True)
    logprobs = np.empty(len(tokens))
    greedy = np.empty(len(tokens), dtype=bool)
    for done, logits in engine.read(pack, needed):
        chosen = (rows >= done) & (rows < done + len(logits))
        row = torch.from_numpy(rows[chosen] - done).to(logits.device)
        token = torch.from_numpy(tokens[chosen]).to(logits.device)
        distribution = torch.log_softmax(logits, dim=-1, dtype=softmax_dtype)
        logprobs[chosen] = distribution[row, token].double().cpu().numpy()
        greedy[chosen] = (distribution.argmax(-1)[row] == token).cpu().numpy()
    ends = np.cumsum(lengths)
    for key, end, length in zip(keys, ends, lengths, strict=True):
        part = slice(end - length, end)
        yield key, (float(logprobs[part].sum()), bool(greedy[part].all()))
