"""Tiny random models of several families, and requests for them."""

from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance
from support.families import with_bytes

LENGTH = 1024

SHARING = ("gpt2", "llama", "mistral")
"""Plain positions; rotary with grouped-query attention; sliding windows that are shorter than most
prompts."""

OTHERS = ("gemma2", "gpt_oss", "bloom", "gpt_neo", "mamba", "lfm2", "jamba", "llama4", "phi3")
"""Attention scores with a cap, or a sink; positions by distance of slots; local attention by slots;
a state instead of a cache, in all layers or some; chunks; positions by the longest text."""


def make(family: str, folder: Path) -> str:
    """Saves a random model and its tokenizer; the same weights every time."""
    import torch
    import transformers

    tokenizer: Any = with_bytes(bos=family in ("llama", "mistral", "gemma2"))
    tokenizer.model_max_length = LENGTH
    torch.manual_seed(7)
    config = _config(family, len(tokenizer))
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)  # initial weights give nearly the same probability everywhere
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def _config(family: str, size: int) -> Any:
    import transformers as t

    ids = {"vocab_size": size, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
    shape: dict[str, Any] = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": LENGTH,
        **ids,
    }  # fmt: skip
    rope = {
        "rope_type": "longrope", "original_max_position_embeddings": 64, "rope_theta": 1e4,
        "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
    }  # fmt: skip
    return {
        "gpt2": lambda: t.GPT2Config(n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2, **ids),
        "llama": lambda: t.LlamaConfig(**shape),
        "mistral": lambda: t.MistralConfig(sliding_window=24, **shape),
        "gemma2": lambda: t.Gemma2Config(
            sliding_window=24, head_dim=8, query_pre_attn_scalar=8, **shape
        ),
        "gpt_oss": lambda: t.GptOssConfig(head_dim=8, num_local_experts=4, **shape),
        "bloom": lambda: t.BloomConfig(hidden_size=32, n_layer=2, n_head=2, **ids),
        "gpt_neo": lambda: t.GPTNeoConfig(
            hidden_size=32, num_layers=2, num_heads=2, attention_types=[[["local"], 2]],
            window_size=16, max_position_embeddings=LENGTH, **ids,
        ),
        "mamba": lambda: t.MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=8, **ids),
        "lfm2": lambda: t.Lfm2Config(layer_types=["conv", "full_attention"], **shape),
        "jamba": lambda: t.JambaConfig(
            num_experts=2, attn_layer_period=2, attn_layer_offset=1, mamba_d_state=8,
            mamba_dt_rank=4, use_mamba_kernels=False, **shape,
        ),
        "llama4": lambda: t.Llama4TextConfig(
            head_dim=8, attention_chunk_size=32, num_local_experts=2, intermediate_size_mlp=64,
            **shape,
        ),
        "phi3": lambda: t.Phi3Config(rope_parameters=rope, **shape),
    }[family]()  # fmt: skip


def instances(kind: str, *arguments: tuple[Any, ...]) -> list[Instance]:
    """Requests of one kind."""
    return [
        Instance(request_type=kind, doc={}, arguments=one, idx=0)  # type: ignore[arg-type]
        for one in arguments
    ]


def of_task(name: str, limit: int) -> list[Instance]:
    """The requests of a task's first documents."""
    from lm_eval.tasks import TaskManager

    from lm_eval_ext._autoload import tasks_folder

    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    task = next(iter(manager.load([name])["tasks"].values()))
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    return list(task.instances)


NOISE = 1e-4


def same_logprobs(models: tuple[Any, Any], requests: list[Instance]) -> None:
    """Asserts that both models give the same log-probabilities and greedy flags."""
    expected, found = (model.loglikelihood(requests, disable_tqdm=True) for model in models)
    for part in (0, 1):
        assert [one[part] for one in found] == pytest.approx(
            [one[part] for one in expected], abs=NOISE
        )


def same_texts(models: tuple[Any, Any], requests: list[Instance]) -> list[str]:
    """Asserts that both models give the same texts; returns them."""
    expected, found = (model.generate_until(requests, disable_tqdm=True) for model in models)
    assert found == expected
    return found


def few_shot(count: int) -> list[str]:
    """Prompts like a stock few-shot task's: the same examples, questions of unequal length."""
    examples = "".join(
        f"Question: What is {n} and {n + 3}?\nAnswer: {2 * n + 3}\n\n" for n in range(5)
    )
    return [
        f"{examples}Question: What is {' and '.join(str(n * k) for k in range(2, 3 + n % 4))}?\n"
        "Answer:"
        for n in range(count)
    ]
