"""Greedy answers of a model, from lm-eval's own ``hf`` model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def processes() -> Any:
    """Which of a launcher's processes this one is, as accelerate's ``PartialState``.

    Without an accelerator it must be told so, or every process takes itself for the only one.
    """
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.accelerator.is_available())


def answers_of(
    folder: Path,
    prompts: Sequence[str],
    *,
    most: int,
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[str]:
    """Asks the model of a folder as ``lm_eval --model hf`` does; all processes share the work.

    Args:
        folder: The model's, in the Hugging Face format.
        prompts: Longer ones are cut on the left, as lm-eval cuts them.
        most: Tokens of an answer.
        batch_size: Prompts at a time.
        max_length: As in lm-eval's ``model_args``.
    """
    from accelerate.utils import gather_object
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    state = processes()
    options = {"until": [], "do_sample": False, "max_gen_toks": most}
    mine = range(state.process_index, len(prompts), state.num_processes)
    asked = [Instance("generate_until", {}, (prompts[place], options), place) for place in mine]
    model = HFLM(
        str(folder), device=str(state.device), batch_size=batch_size, max_length=max_length
    )
    found = list(zip(mine, model.generate_until(asked, disable_tqdm=True), strict=True))
    return [text for _, text in sorted(gather_object(found))]
