"""From texts to token ids: examples with answers, and blocks of corrupted text."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line
from lm_eval_ext.training.material import Pair
from lm_eval_ext.training.recipe import Spans, Training

IGNORED = -100
"""Marks what no loss is computed on: a causal model's prompt, and padding."""

Row = dict[str, list[int]]
"""``input_ids`` and ``labels`` of an example."""

_BATCH = 1000
"""Texts that are encoded at a time; affects memory only."""


def encode(
    pairs: Sequence[Pair], tokenizer: Any, training: Training, *, encoder_decoder: bool
) -> tuple[list[Row], int]:
    """Token ids of examples, as lm-eval's ``hf`` model encodes prompts and decodes answers.

    Answers end with EOS. A causal model's prompt has no loss.

    Returns:
        The rows, and how many of them were cut to the recipe's lengths.
    """
    rows, cut = [], 0
    longest, most = training.max_source_length, training.max_target_length
    for place in range(0, len(pairs), _BATCH):
        part = pairs[place : place + _BATCH]
        sources = tokenizer([source for source, _ in part])["input_ids"]
        targets = tokenizer([target for _, target in part], add_special_tokens=encoder_decoder)[
            "input_ids"
        ]
        for source, target in zip(sources, targets, strict=True):
            ended = target[-1:] == [tokenizer.eos_token_id]
            answer = target if ended else [*target, tokenizer.eos_token_id]
            cut += len(source) > longest or len(answer) > most
            answer = answer[:most]
            # lm-eval cuts from the left, too.
            prompt = source[-longest:]
            if encoder_decoder:
                rows.append({"input_ids": prompt, "labels": answer})
            else:
                labels = [IGNORED] * len(prompt) + answer
                rows.append({"input_ids": prompt + answer, "labels": labels})
    return rows, cut


def corrupted(
    texts: Sequence[str], tokenizer: Any, training: Training, *, seed: int
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Blocks of running text, corrupted: to train on, and held out.

    Args:
        texts: Documents, in the order in which they are used; EOS stands between them.
        tokenizer: Has the sentinels ``<extra_id_0>`` and so on.
        training: Says how much of the text is used, how it is corrupted, and how many blocks are
            asked for; a block that comes again is corrupted anew.
        seed: Decides what is corrupted.

    Raises:
        OptionError: There is less text than asked for, or there are too few sentinels.
    """
    spans = training.spans
    assert spans is not None
    wanted, end = int(spans.tokens), tokenizer.eos_token_id
    ids: list[int] = []
    for text in texts:
        if len(ids) >= wanted:
            break
        ids += [*tokenizer(text, add_special_tokens=False)["input_ids"], end]
    if len(ids) < wanted:
        raise OptionError(
            f"training.spans.tokens is {wanted:,}, and the text has {len(ids):,}: ask for fewer, "
            "or name more text"
        )
    places = range(0, wanted, spans.block)
    blocks = [ids[place : min(place + spans.block, wanted)] for place in places]
    blocks = [block for block in blocks if len(block) > 1]
    held = round(len(blocks) * spans.held_out)
    known = tokenizer.get_vocab()
    sentinels = [known[name] for n in range(spans.block) if (name := f"<extra_id_{n}>") in known]
    most = max(1, round(spans.block * spans.density / spans.length))
    if len(sentinels) < most:
        raise OptionError(
            f"a block of {spans.block} tokens needs {most} sentinels (<extra_id_0> ...), and the "
            f"tokenizer has {len(sentinels)}: choose a smaller training.spans.block"
        )
    kept = blocks[held:]
    passes = -(-training.batch * (training.max_steps or 0) // len(kept)) if kept else 0
    return (
        Corrupted(kept * passes, spans, sentinels, end, seed),
        Corrupted(blocks[:held], spans, sentinels, end, seed),
    )


@dataclass(frozen=True)
class Corrupted(Sequence[Row]):
    """Blocks, each corrupted anew wherever it comes again.

    What is corrupted depends on the place alone, so that a training that resumes sees the same.
    """

    blocks: Sequence[list[int]]
    spans: Spans
    sentinels: Sequence[int]
    eos: int
    seed: int

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        rng = random.Random(f"{self.seed} {place}")
        return corrupt(self.blocks[place], self.spans, self.sentinels, self.eos, rng)


def corrupt(
    block: list[int], spans: Spans, sentinels: Sequence[int], eos: int, rng: random.Random
) -> Row:
    """Replaces random spans by sentinels; the answer is each sentinel and what it stands for."""
    noise = min(max(round(len(block) * spans.density), 1), len(block) - 1)
    count = max(1, min(round(noise / spans.length), noise, len(block) - noise))
    source: list[int] = []
    answer: list[int] = []
    place = 0
    kept, lost = _parts(len(block) - noise, count, rng), _parts(noise, count, rng)
    for sentinel, before, gone in zip(sentinels, kept, lost, strict=False):
        source += [*block[place : place + before], sentinel]
        place += before
        answer += [sentinel, *block[place : place + gone]]
        place += gone
    return {"input_ids": [*source, eos], "labels": [*answer, eos]}


def _parts(total: int, count: int, rng: random.Random) -> list[int]:
    """Random numbers from 1 that make up a total, every way equally likely."""
    cuts = [0, *sorted(rng.sample(range(1, total), count - 1)), total]
    return [after - before for before, after in pairwise(cuts)]


def problems(tokenizer: Any, pairs: Iterable[Pair]) -> Iterator[str]:
    """What a tokenizer does wrong: answers that do not come back, prompts with unknown tokens."""
    pairs = list(pairs)
    for place in range(0, len(pairs), _BATCH):
        part = pairs[place : place + _BATCH]
        targets = [target for _, target in part]
        encoded = tokenizer(targets, add_special_tokens=False)["input_ids"]
        decoded = tokenizer.batch_decode(encoded, skip_special_tokens=True)
        for before, after in zip(targets, decoded, strict=True):
            if before != after:
                shown = one_line(repr(before), limit=120)
                yield f"the answer {shown} comes back as {one_line(repr(after), limit=120)}"
        unknown = tokenizer.unk_token_id
        if unknown is None or unknown == tokenizer.eos_token_id:
            continue
        for (source, _), ids in zip(
            part, tokenizer([source for source, _ in part])["input_ids"], strict=True
        ):
            if unknown in ids:
                yield f"the prompt {one_line(repr(source), limit=120)} has unknown tokens"
