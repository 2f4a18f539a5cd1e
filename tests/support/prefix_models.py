"""Tiny random models of several families, and requests for them."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lm_eval.api.instance import Instance

from support.families import with_bytes

if TYPE_CHECKING:
    from lm_eval.models.huggingface import HFLM

LENGTH = 1024

SHARING = ("gpt2", "llama", "mistral")
"""Plain positions; rotary with grouped-query attention; sliding windows that are shorter than most
prompts."""

SOUND = (
    "afmoe", "gemma", "gpt_neox", "nemotron", "olmo2", "opt", "phi", "qwen2", "qwen3", "stablelm"
)  # fmt: skip

OTHERS = (
    "gemma2", "gpt_oss", "bloom", "gpt_neo", "mamba", "lfm2", "jamba", "llama4_text", "phi3",
    "gemma3_text", "phimoe", "diffllama", "roberta",
)  # fmt: skip
"""Attention scores with a cap, or a sink; positions by distance of slots; local attention by slots;
a state instead of a cache, in all layers or some; chunks; positions by the longest text, in all
layers or some; a window that only a mask has; two attentions in a layer; positions behind a token.
"""

ROPE = {
    "rope_type": "longrope", "original_max_position_embeddings": 64, "rope_theta": 1e4,
    "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
}  # fmt: skip
FAMILY_KEYS: dict[str, dict[str, object]] = {
    "mistral": {"sliding_window": 24},
    "afmoe": {"num_experts": 8},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["local"], 2]], "window_size": 16},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "jamba": {
        "num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "llama4_text": {"attention_chunk_size": 32, "num_local_experts": 2},
    "phi3": {"rope_parameters": ROPE},
    "gemma3_text": {
        "head_dim": 8, "layer_types": ["full_attention"] * 2,
        "rope_parameters": {"full_attention": ROPE},
    },
    "phimoe": {"sliding_window": 400},
}  # fmt: skip


def make(family: str, folder: Path) -> str:
    """Save a random model and its tokenizer; the weights are the same every time."""
    import torch
    import transformers

    tokenizer = with_bytes(bos=family in ("llama", "mistral", "gemma2"))
    tokenizer.model_max_length = LENGTH
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        family, vocab_size=len(tokenizer), bos_token_id=2, eos_token_id=1, pad_token_id=0,
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH, **FAMILY_KEYS.get(family, {}),
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)  # initial weights give nearly the same probability everywhere
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def instances(request_type: str, *arguments: tuple[object, ...]) -> list[Instance]:
    """Return requests of one type, with these arguments."""
    requests = []
    for request_arguments in arguments:
        requests.append(
            Instance(request_type=request_type, doc={}, arguments=request_arguments, idx=0)
        )
    return requests


def scoring_requests(prompts: Iterable[str], continuations: Sequence[str]) -> list[Instance]:
    """Return a request for the log-probability of each continuation after each prompt."""
    return instances("loglikelihood", *itertools.product(prompts, continuations))


def text_requests(prompts: Iterable[str], settings: Mapping[str, object]) -> list[Instance]:
    """Return a request for a text after each prompt."""
    return instances("generate_until", *((prompt, dict(settings)) for prompt in prompts))


def task_requests(name: str, limit: int) -> list[Instance]:
    """Return the requests of a task's first documents."""
    from lm_eval.tasks import TaskManager

    from lm_eval_ext.task_folder import tasks_folder

    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    task = next(iter(manager.load([name])["tasks"].values()))
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    return list(task.instances)


NOISE = 1e-4
"""The largest difference of two log-probabilities that counts as none."""

TwoModels = tuple["HFLM", "HFLM"]
"""hf and hf-prefix, with the same weights."""


def same_logprobs(models: TwoModels, requests: list[Instance]) -> None:
    """Assert that both models give the same log-probabilities and greedy flags."""
    plain, sharing = models
    expected = plain.loglikelihood(requests, disable_tqdm=True)
    answers = sharing.loglikelihood(requests, disable_tqdm=True)
    expected_logprobs, expected_flags = zip(*expected, strict=True)
    logprobs, greedy_flags = zip(*answers, strict=True)
    assert logprobs == pytest.approx(expected_logprobs, abs=NOISE)
    assert greedy_flags == expected_flags


def same_texts(models: TwoModels, requests: list[Instance]) -> list[str]:
    """Assert that both models give the same texts; return them."""
    plain, sharing = models
    expected = plain.generate_until(requests, disable_tqdm=True)
    texts: list[str] = sharing.generate_until(requests, disable_tqdm=True)
    assert texts == expected
    return texts


def few_shot(count: int) -> list[str]:
    """Return prompts like a stock few-shot task's, with questions of unequal length.

    All have the same examples, and some have the same question.
    """
    examples = ""
    for n in range(5):
        examples += f"Question: What is {n} and {n + 3}?\nAnswer: {2 * n + 3}\n\n"
    prompts = []
    for n in range(count):
        summands = " and ".join(str(n * k) for k in range(2, 3 + n % 4))
        prompts.append(f"{examples}Question: What is {summands}?\nAnswer:")
    return prompts
