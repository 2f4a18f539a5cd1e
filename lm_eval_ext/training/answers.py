"""Greedy answers of a model, as lm-eval's ``hf`` model gets them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.training.material import Material, Pair


def processes() -> Any:
    """Which of a launcher's processes this one is, as accelerate's ``PartialState``.

    Without an accelerator it must be told so, or every process takes itself for the only one.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available())


def answers(
    model: Any, tokenizer: Any, sources: Sequence[str], *, batch_size: int, most: int
) -> list[str]:
    """Asks for answers of at most so many tokens, greedily; all processes share the work.

    Prompts are padded on the left, and special tokens of answers left out, as lm-eval does.
    """
    import torch
    from accelerate.utils import gather_object

    state = processes()
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    mine = order[state.process_index :: state.num_processes]
    causal = not model.config.is_encoder_decoder
    side, tokenizer.padding_side = tokenizer.padding_side, "left"
    training = model.training
    model.eval()
    found: list[tuple[int, str]] = []
    try:
        for start in range(0, len(mine), batch_size):
            places = mine[start : start + batch_size]
            batch = tokenizer(
                [sources[place] for place in places], return_tensors="pt", padding="longest"
            ).to(model.device)
            with torch.no_grad():
                ids = model.generate(
                    input_ids=batch["input_ids"],
                    attention_mask=batch["attention_mask"],
                    do_sample=False,
                    num_beams=1,
                    max_new_tokens=most,
                    pad_token_id=tokenizer.pad_token_id,
                )
            ids = ids[:, batch["input_ids"].shape[1] :] if causal else ids
            texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
            found += zip(places, texts, strict=True)
    finally:
        tokenizer.padding_side = side
        model.train(training)
    if state.num_processes > 1:
        found = gather_object(found)
    by_place = dict(found)
    return [by_place[place] for place in range(len(sources))]


def answers_of(
    folder: Path, sources: Sequence[str], *, most: int, batch_size: int = 32
) -> list[str]:
    """Asks the model of a folder, such as an auxiliary model whose answers become prompts."""
    from lm_eval_ext.training.starting import load

    model, tokenizer = load(folder)
    model.to(processes().device)
    return answers(model, tokenizer, sources, batch_size=batch_size, most=most)


def scores(
    model: Any, tokenizer: Any, pairs: Sequence[Pair], material: Material, *, batch_size: int
) -> list[float]:
    """The score of the answer to each example, 0 to 1."""
    targets = tokenizer([target for _, target in pairs])["input_ids"]
    # An answer may be longer than every right one, which then shows.
    most = max(map(len, targets), default=0) + 8
    texts = answers(model, tokenizer, [s for s, _ in pairs], batch_size=batch_size, most=most)
    return [material.score(text, target) for text, (_, target) in zip(texts, pairs, strict=True)]
