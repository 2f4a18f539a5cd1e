"""Greedy generation, group by group: the leaves of a group grow together, one token a step."""

from collections.abc import Iterator

import numpy as np

from lm_eval_ext.models.prefix.engine import Engine
from lm_eval_ext.models.prefix.pack import Pack, lay_out
from lm_eval_ext.models.prefix.plan import Limits, cut
from lm_eval_ext.models.prefix.stops import Stops
from lm_eval_ext.models.prefix.tree import Tree


def generate(
    engine: Engine, tree: Tree[int], limits: Limits, stops: Stops
) -> Iterator[tuple[int, list[int]]]:
    """Yields each key with the tokens generated for it, at most ``limits.generated``."""
    path = np.arange(0)
    for group in cut(tree, limits):
        engine.keep(path[: group.kept])
        pack = lay_out(group)
        texts = _grow(engine, pack, limits.generated, stops)
        for leaf, text in zip(group.leaves, texts, strict=True):
            for key in leaf.keys:
                yield key, text
        path = pack.paths[-1]


def _grow(engine: Engine, pack: Pack, length: int, stops: Stops) -> list[list[int]]:
    last = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
    texts: list[list[int]] = [[] for _ in last]
    slot = pack.kept + len(pack.tokens)
    seen = np.zeros((len(last), slot + len(last) * length), dtype=bool)
    for number, path in enumerate(pack.paths):
        seen[number, path] = True
    depths = np.array([len(path) for path in pack.paths])
    tokens = np.concatenate(
        [logits.argmax(-1).cpu().numpy() for _, logits in engine.read(pack, last)]
    )
    alive = np.arange(len(last))
    for step in range(length):
        for row, token in zip(alive, tokens, strict=True):
            texts[row].append(int(token))
        going_on = ~np.array(stops.complete([texts[row] for row in alive]))
        alive, tokens = alive[going_on], tokens[going_on]
        if not len(alive) or step + 1 == length:
            break
        slots = slot + np.arange(len(alive))
        slot += len(alive)
        seen[alive, slots] = True
        logits = engine.forward(
            tokens, depths[alive] + step, seen[alive, :slot], np.arange(len(alive))
        )
        tokens = logits.argmax(-1).cpu().numpy()
    return texts
