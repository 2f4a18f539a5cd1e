"""Asks a model of any type for texts, outside a task: greedily, and resumable after a stop."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import one_line

SETTINGS = ("model", "model_args", "batch_size", "max_batch_size", "device",
            "apply_chat_template", "system_instruction")  # fmt: skip
"""Of lm-eval's options, those that decide about an answer to a prompt, or how it is computed."""

_GENERATION = {
    "until": ["\n\n", "\nQuestion:"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 128,
}  # fmt: skip


def digest(config: Any) -> str:
    """Of what decides about the answers, for the name of the file that keeps them."""
    said = [[key, getattr(config, key)] for key in SETTINGS if "batch" not in key]
    return hashlib.sha256(json.dumps([said, _GENERATION], default=str).encode()).hexdigest()[:12]


def ask(config: Any, prompts: Sequence[str], kept: Path) -> list[str]:
    """Answers in the order of the prompts, as one batch of ``generate_until`` requests.

    Args:
        config: lm-eval's ``EvaluatorConfig``.
        prompts: User turns if there is a chat template, else plain texts.
        kept: Where lm-eval keeps answers while it computes them; they are not computed again.

    Raises:
        OptionError: The model cannot be made, or has no chat template.
    """
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import CachingLM

    if not prompts:
        return []
    lm = _made(config)
    texts = list(prompts)
    if config.apply_chat_template:
        system = [{"role": "system", "content": config.system_instruction}]
        turns = [[*(system if config.system_instruction else []),
                  {"role": "user", "content": text}] for text in prompts]  # fmt: skip
        try:
            texts = [lm.apply_chat_template(one) for one in turns]
        except (NotImplementedError, ValueError) as error:
            raise OptionError(f"--apply_chat_template: {one_line(str(error), limit=200)}") from None
    cached = CachingLM(lm, str(kept))
    try:
        requests = [
            Instance("generate_until", {}, (text, dict(_GENERATION)), 0, ("answers", number, 1))
            for number, text in enumerate(texts)
        ]
        return [str(answer) for answer in cached.generate_until(requests)]
    finally:
        cached.dbdict.close()


def _made(config: Any) -> Any:
    import lm_eval.models  # noqa: F401 (registers them)
    from lm_eval.api.registry import get_model

    more = {key: getattr(config, key) for key in ("batch_size", "max_batch_size", "device")}
    args = config.model_args or {}
    try:
        kind = get_model(config.model)
        make = kind.create_from_arg_string if isinstance(args, str) else kind.create_from_arg_obj
        return make(args, more)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError, AssertionError) as error:
        raise OptionError(f"{config.model}: {one_line(str(error), limit=300)}") from None
