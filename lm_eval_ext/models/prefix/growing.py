"""Texts that grow together, by one token a step.

The leaves of a group grow in runs of neighbours (:func:`divide_into_runs`). Each run has a copy of
the keys and values that its leaves attend to, so the next group may be computed while it grows.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from lm_eval_ext.models.prefix.engine import Engine, Pass, PassPart, Slots
from lm_eval_ext.models.prefix.progress import TokenProgress
from lm_eval_ext.models.prefix.runs import GrowingText, Run, divide_into_runs
from lm_eval_ext.models.prefix.stops import Stops
from lm_eval_ext.models.prefix.tree import Leaf, Pack
from lm_eval_ext.text import counted

ENOUGH_TEXTS = 128
"""While so many texts grow, the next group waits: matrix products gain little by more rows."""

PATIENCE_S = 60.0
"""Seconds without an answer after which the next group waits for one. Otherwise, a slow machine
would read all prompts for many minutes before it completes an answer, and an interruption would
lose all of it."""


class GrowingTexts:
    """Texts that grow, of one group or several.

    Args:
        engine: The model.
        length: The most tokens of a text.
        stops: The ends of texts.
        progress: Counts the tokens of all prompts.
    """

    def __init__(self, engine: Engine, length: int, stops: Stops, progress: TokenProgress) -> None:
        self.runs: list[Run] = []
        self._engine = engine
        self._length = length
        self._stops = stops
        self._progress = progress
        self._answered_at = time.monotonic()

    @property
    def slot_count(self) -> int:
        """The slots that all runs take."""
        return sum(run.slot_count for run in self.runs)

    def has_room(self, slot_count: int, max_slots: int) -> bool:
        """Return whether another group may start beside the texts that grow.

        Args:
            slot_count: The group's slots, which its runs will need at least.
            max_slots: The most slots that all runs may take.
        """
        if not self.runs:
            return True
        if time.monotonic() - self._answered_at > PATIENCE_S:
            return False
        text_count = sum(len(run.texts) for run in self.runs)
        return self.slot_count + slot_count <= max_slots and text_count < ENOUGH_TEXTS

    def start(
        self, leaves: Sequence[Leaf], pack: Pack, slots: Slots, max_slots: int
    ) -> Iterator[tuple[int, list[int]]]:
        """Compute a group's leaves and the first token of each text; yield complete texts.

        Runs for which there is no room wait until others are complete.

        Args:
            leaves: The group.
            pack: Its slots.
            slots: Its kept ones are computed. The others may be overwritten afterwards.
            max_slots: The most slots that all runs may take, unless a single text takes more.
        """
        last_slots = np.array([path[-1] for path in pack.paths])  # ascending: leaves differ
        tokens: list[int] = []
        for logits in self._engine.read(slots, pack, last_slots, self._progress):
            tokens += logits.argmax(-1).tolist()
        texts = []
        for leaf, token in zip(leaves, tokens, strict=True):
            texts.append(GrowingText(leaf, [token]))
        is_growing = self._are_growing(texts)
        yield from self._answers(texts, is_growing)
        growing = np.flatnonzero(is_growing)
        paths = [pack.paths[number] for number in growing]
        # The last token of a text is not read.
        for layout in divide_into_runs(paths, self._length - 1, max_slots):
            while self.runs and self.slot_count + layout.slot_count > max_slots:
                yield from self.step()
            run_texts = [texts[number] for number in growing[layout.first : layout.end]]
            run_paths = paths[layout.first : layout.end]
            self.runs.append(Run(layout, run_texts, run_paths, slots))

    def step(self) -> Iterator[tuple[int, list[int]]]:
        """Append a token to each text; yield those that are complete then."""
        texts = [text for run in self.runs for text in run.texts]
        longest = max(len(text.tokens) for text in texts)
        answers = counted(len(texts), "answer")
        self._engine.report(f"Writing {answers}, {longest:,} of at most {self._length:,} tokens")
        logits = compute_step(self._engine, self.runs)
        for text, token in zip(texts, logits.argmax(-1).tolist(), strict=True):
            text.tokens.append(token)
        is_growing = self._are_growing(texts)
        begin = 0
        for run in self.runs:
            end = begin + len(run.texts)
            run.keep(is_growing[begin:end])
            begin = end
        self.runs = [run for run in self.runs if run.texts]
        yield from self._answers(texts, is_growing)

    def _are_growing(self, texts: Sequence[GrowingText]) -> list[bool]:
        """Return for each text whether it is not complete."""
        is_complete = self._stops.complete([text.tokens for text in texts])
        is_growing = []
        for text, is_stopped in zip(texts, is_complete, strict=True):
            is_growing.append(not is_stopped and len(text.tokens) < self._length)
        return is_growing

    def _answers(
        self, texts: Sequence[GrowingText], is_growing: Sequence[bool]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield each key of the complete texts with the generated tokens, and note the time."""
        for text, grows in zip(texts, is_growing, strict=True):
            if not grows:
                self._answered_at = time.monotonic()
                for key in text.leaf.keys:
                    yield key, text.tokens


def compute_step(engine: Engine, runs: Sequence[Run]) -> torch.Tensor:
    """Compute the last tokens of all texts of some runs; return the logits, text by text."""
    tokens: list[int] = []
    positions: list[int] = []
    parts: list[PassPart] = []
    for run in runs:
        parts.append(run.step(len(tokens)))
        for text in run.texts:
            tokens.append(text.tokens[-1])
            positions.append(text.position)
    needed = np.arange(len(tokens))
    return engine.forward(np.array(tokens), np.array(positions), Pass(parts, needed))
