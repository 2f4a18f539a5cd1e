"""How difficult a demonstration makes a question, by a model's probability of the right answer."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError
from lm_eval_ext.training.answers import processes
from lm_eval_ext.training.starting import load

BATCH = 32
"""Prompts at a time, as in the published script."""


class Judge:
    """An encoder-decoder that says which of several prompts makes an answer least probable."""

    def __init__(self, folder: Path) -> None:
        """Loads it.

        Raises:
            OptionError: There is no such model, or it only decodes.
        """
        self._model, self._tokenizer = load(folder)
        if not self._model.config.is_encoder_decoder:
            raise OptionError(f"data.judge: {folder} only decodes; name an encoder-decoder")
        self._model.to(processes().device).eval()

    def hardest(self, prompts: Sequence[str], answer: str) -> int:
        """The place of the prompt after which the answer is least probable."""
        found = [
            probability
            for place in range(0, len(prompts), BATCH)
            for probability in self._log_probabilities(prompts[place : place + BATCH], answer)
        ]
        return min(range(len(found)), key=found.__getitem__)

    def _log_probabilities(self, prompts: Sequence[str], answer: str) -> list[float]:
        import torch

        device = self._model.device
        read = self._tokenizer(list(prompts), return_tensors="pt", padding="longest").to(device)
        ids = self._tokenizer(answer, return_tensors="pt")["input_ids"].to(device)
        labels = ids.repeat(len(prompts), 1)
        with torch.no_grad():
            logits = self._model(
                input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels
            ).logits
        own = logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1))
        return [float(one) for one in own.sum((-1, -2))]


def kept(folder: Path, key: Any, make: Callable[[], Any]) -> Any:
    """What is made once, by one of a launcher's processes, and kept in the folder as JSON."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    file = folder / f"demonstrations-{digest[:16]}.json"
    with processes().main_process_first():
        if not file.is_file():
            with atomic_text(file) as out:
                out.write(json.dumps(make()))
    return json.loads(file.read_text(encoding="utf-8"))
