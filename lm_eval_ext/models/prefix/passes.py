"""Scores continuations and generates greedily, group by group.

When generating, the leaves of a group grow together, one token a step. A text is complete when
lm-eval's ``hf`` would end it in a batch of one (:class:`Stops`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Engine, width_of
from lm_eval_ext.models.prefix.parts import Branches, blocks_of, copied
from lm_eval_ext.models.prefix.plan import Array, Group, Leaf, Limits, Pack, Tree, cut, lay_out


class Stops:
    """The ends of a text: end-of-text tokens, and stop sequences in its last few tokens.

    Args:
        tokenizer: The model's.
        sequences: The stop sequences, the end-of-text token's name among them.
        end_tokens: Token ids after which a text is complete.
    """

    def __init__(self, tokenizer: Any, sequences: Sequence[str], end_tokens: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self.end_tokens = frozenset(end_tokens)
        self.by_length: dict[int, list[str]] = {}
        for sequence in sequences:
            # lm-eval looks two tokens further back than the sequence is long, since a model
            # may spell it with other tokens.
            length = len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
            self.by_length.setdefault(length, []).append(sequence)

    def complete(self, texts: Sequence[Sequence[int]]) -> list[bool]:
        """Returns for each text's generated tokens whether it is complete."""
        done = [text[-1] in self.end_tokens for text in texts]
        for length, sequences in self.by_length.items():
            tails = self.tokenizer.batch_decode([text[-length:] for text in texts])
            for number, tail in enumerate(tails):
                done[number] = done[number] or any(one in tail for one in sequences)
        return done


Answer = tuple[float, bool]


def score(
    engine: Engine,
    tree: Tree[int],
    continuations: Sequence[Sequence[int]],
    limits: Limits,
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Yields ``(key, (log-probability, whether greedy decoding gives the same tokens))``.

    Args:
        engine: The model.
        tree: What the model reads for each request: context and continuation without its last
            token. Keys index ``continuations``.
        continuations: Their tokens.
        limits: Of the groups.
        softmax_dtype: As HFLM's argument.
    """
    if limits.beside:
        groups = cut(tree, limits)
        while some := list(islice(groups, limits.beside)):
            packs = [lay_out(group) for group in some]
            width = width_of(packs)
            paths = [path + n * width for n, pack in enumerate(packs) for path in pack.paths]
            leaves = [leaf for group in some for leaf in group.leaves]
            read = partial(_at_once, engine, packs)
            yield from _scores(leaves, paths, read, continuations, softmax_dtype)
        return
    for group, pack in _packs(engine, tree, limits):
        read = partial(engine.read, pack)
        yield from _scores(group.leaves, pack.paths, read, continuations, softmax_dtype)


Read = Callable[[Array], Iterator[tuple[int, torch.Tensor]]]
"""Computes the logits of slots, see :meth:`Engine.read`."""


def _at_once(
    engine: Engine, packs: Sequence[Pack], needed: Array
) -> Iterator[tuple[int, torch.Tensor]]:
    yield 0, engine.side_by_side(packs, needed)


def _packs(engine: Engine, tree: Tree[int], limits: Limits) -> Iterator[tuple[Group[int], Pack]]:
    """Yields each group laid out, the engine keeping what it has of the group before."""
    path = np.arange(0)
    for group in cut(tree, limits):
        engine.keep(path[: group.kept])
        pack = lay_out(group)
        yield group, pack
        path = pack.paths[-1]


def _scores(
    leaves: Sequence[Leaf[int]],
    paths: Sequence[Array],
    read: Read,
    continuations: Sequence[Sequence[int]],
    softmax_dtype: torch.dtype | None,
) -> Iterator[tuple[int, Answer]]:
    """Every continuation token is one (slot before it, token) pair; pairs of all are one batch."""
    keys = [key for leaf in leaves for key in leaf.keys]
    lengths = [len(continuations[key]) for key in keys]
    slots = np.concatenate(
        [
            path[len(path) - len(continuations[key]) :]
            for leaf, path in zip(leaves, paths, strict=True)
            for key in leaf.keys
        ]
    )
    tokens = np.concatenate([np.asarray(continuations[key]) for key in keys])
    needed, rows = np.unique(slots, return_inverse=True)
    logprobs = np.empty(len(tokens))
    greedy = np.empty(len(tokens), dtype=bool)
    for done, logits in read(needed):
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


def generate(
    engine: Engine, tree: Tree[int], limits: Limits, stops: Stops
) -> Iterator[tuple[int, list[int]]]:
    """Yields each key with the tokens generated for it, at most ``limits.generated``."""
    for group, pack in _packs(engine, tree, limits):
        texts = _grow(engine, pack, limits, stops)
        for leaf, text in zip(group.leaves, texts, strict=True):
            for key in leaf.keys:
                yield key, text


def _grow(engine: Engine, pack: Pack, limits: Limits, stops: Stops) -> list[list[int]]:
    last = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
    texts: list[list[int]] = [[] for _ in last]
    depths = np.array([len(path) for path in pack.paths])
    tokens = np.concatenate(
        [logits.argmax(-1).cpu().numpy() for _, logits in engine.read(pack, last)]
    )
    append = _in_parts(engine, pack, limits) or _in_slots(engine, pack, limits.generated)
    alive = np.arange(len(last))
    for step in range(limits.generated):
        for row, token in zip(alive, tokens, strict=True):
            texts[row].append(int(token))
        going_on = ~np.array(stops.complete([texts[row] for row in alive]))
        alive, tokens = alive[going_on], tokens[going_on]
        if not len(alive) or step + 1 == limits.generated:
            break
        tokens = append(alive, tokens, depths[alive] + step).argmax(-1).cpu().numpy()
    return texts


Append = Callable[[Array, Array, Array], torch.Tensor]
"""Appends tokens to leaves, at these positions; returns the logits."""


def _in_slots(engine: Engine, pack: Pack, length: int) -> Append:
    """All leaves grow in the slots after the pack's."""
    slot = pack.kept + len(pack.tokens)
    seen = np.zeros((len(pack.paths), slot + len(pack.paths) * length), dtype=bool)
    for number, path in enumerate(pack.paths):
        seen[number, path] = True

    def append(alive: Array, tokens: Array, positions: Array) -> torch.Tensor:
        nonlocal slot
        seen[alive, slot + np.arange(len(alive))] = True
        slot += len(alive)
        return engine.forward(tokens, positions, seen[alive, :slot], np.arange(len(alive)))

    return append


def _in_parts(engine: Engine, pack: Pack, limits: Limits) -> Append | None:
    """Each leaf grows by itself, or None where that is not possible or takes too much memory."""
    if not engine.branches:
        return None
    blocks = blocks_of(pack.paths)
    if copied(pack.paths, blocks) > limits.copies:
        return None
    branches = Branches(engine.cache.layers, pack, blocks, limits.generated)
    rows = np.arange(len(pack.paths))

    def append(alive: Array, tokens: Array, positions: Array) -> torch.Tensor:
        nonlocal rows
        branches.keep(torch.from_numpy(np.searchsorted(rows, alive)))
        rows = alive
        return engine.branch(branches, tokens, positions)

    return append
