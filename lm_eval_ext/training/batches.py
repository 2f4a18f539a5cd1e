"""From texts to token ids: examples with answers, and blocks of corrupted text."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line
from lm_eval_ext.training.material import Pair
from lm_eval_ext.training.recipe import Training

IGNORED = -100
"""Marks what no loss is computed on: a causal model's prompt, and padding."""

Row = dict[str, list[int]]
"""``input_ids`` and ``labels`` of an example."""

DENSITY, LENGTH = 0.15, 3.0
"""Of span corruption: the share of tokens that is replaced, and the mean length of a span (T5,
section 3.1.4)."""


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
    for source, target in pairs:
        prompt = tokenizer(source)["input_ids"]
        answer = tokenizer(target, add_special_tokens=encoder_decoder)["input_ids"]
        if answer[-1:] != [tokenizer.eos_token_id]:
            answer.append(tokenizer.eos_token_id)
        cut += len(prompt) > longest or len(answer) > most
        prompt, answer = prompt[-longest:], answer[:most]  # lm-eval cuts from the left, too
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
        training: Says how much of the text is used, and how many blocks are asked for; a block
            that comes again is corrupted anew.
        seed: Decides what is corrupted.

    Raises:
        OptionError: There is less text than asked for, or the tokenizer has too few sentinels.
    """
    spans = training.spans
    assert spans is not None
    wanted, end = int(spans.tokens), tokenizer.eos_token_id
    ids: list[int] = []
    for text in texts:
        if len(ids) < wanted:
            ids += [*tokenizer(text, add_special_tokens=False)["input_ids"], end]
    if len(ids) < wanted:
        raise OptionError(
            f"training.spans.tokens is {wanted:,}, and the text has {len(ids):,}: ask for fewer, "
            "or name more text"
        )
    del ids[wanted:]
    starts = range(0, wanted - 1, spans.block)  # a block has two tokens or more
    blocks = [ids[start : start + spans.block] for start in starts]
    held = round(len(blocks) * spans.held_out)
    names = [f"<extra_id_{number}>" for number in range(1 + spans.block // 20)]
    if not tokenizer.get_vocab().keys() >= set(names):
        raise OptionError(
            f"a block of {spans.block} tokens needs {len(names)} sentinels (<extra_id_0> ...), "
            "and the tokenizer has fewer: choose a smaller training.spans.block"
        )
    sentinels = tokenizer.convert_tokens_to_ids(names)
    kept = blocks[held:]
    passes = -(-training.batch * (training.max_steps or 1) // len(kept)) if kept else 0
    return (
        Corrupted(kept * passes, sentinels, end, seed),
        Corrupted(blocks[:held], sentinels, end, seed),
    )


@dataclass(frozen=True)
class Corrupted(Sequence[Row]):
    """Blocks, each corrupted anew wherever it comes again.

    What is corrupted depends on the place alone, so that a training that resumes sees the same.
    The answer is each sentinel and what it stands for.
    """

    blocks: Sequence[list[int]]
    sentinels: Sequence[int]
    eos: int
    seed: int

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        block, rng = self.blocks[place], random.Random(f"{self.seed} {place}")
        noise = min(max(round(len(block) * DENSITY), 1), len(block) - 1)
        count = max(1, min(round(noise / LENGTH), noise, len(block) - noise))
        kept, lost = (_parts(total, count, rng) for total in (len(block) - noise, noise))
        source: list[int] = []
        answer: list[int] = []
        rest = iter(block)
        for sentinel, before, gone in zip(self.sentinels, kept, lost, strict=False):
            source += [*islice(rest, before), sentinel]
            answer += [sentinel, *islice(rest, gone)]
        return {"input_ids": [*source, self.eos], "labels": [*answer, self.eos]}


def _parts(total: int, count: int, rng: random.Random) -> list[int]:
    """Random numbers from 1 that make up a total, every way equally likely."""
    cuts = [0, *sorted(rng.sample(range(1, total), count - 1)), total]
    return [after - before for before, after in pairwise(cuts)]


def problems(tokenizer: Any, pairs: Iterable[Pair]) -> Iterator[str]:
    """What a tokenizer does wrong: answers that do not come back, prompts with unknown tokens."""
    unknown = {tokenizer.unk_token_id} - {tokenizer.eos_token_id}
    for source, target in pairs:
        answer = tokenizer(target, add_special_tokens=False)["input_ids"]
        if (back := tokenizer.decode(answer, skip_special_tokens=True)) != target:
            shown = one_line(repr(target), limit=120)
            yield f"the answer {shown} comes back as {one_line(repr(back), limit=120)}"
        if unknown & set(tokenizer(source)["input_ids"]):
            yield f"the prompt {one_line(repr(source), limit=120)} has unknown tokens"
