"""Muon beside AdamW: which weights each has. That both resume is seen in test_train.py."""

from typing import Any

import pytest

from lm_eval_ext.training.optimizers import muon

SIZES: dict[str, dict[str, Any]] = {
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2,
           "decoder_start_token_id": 0},
    "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 8},
    "llama": {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
              "num_attention_heads": 2, "tie_word_embeddings": False},
}  # fmt: skip
OTHERS = ("shared", "lm_head", "wte", "wpe", "embed_tokens", "bias", "norm", "ln_")


def model(kind: str) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    config = AutoConfig.for_model(kind, vocab_size=12, **SIZES[kind])
    kinds = AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForCausalLM
    torch.manual_seed(1)
    return kinds.from_config(config)


@pytest.mark.parametrize("kind", SIZES)
def test_every_weight_is_trained_once_and_at_its_rate(kind: str) -> None:
    one = model(kind)
    found = muon(one, rate=0.1, others={"lr": 0.02, "betas": (0.9, 0.98)}, weight_decay=0.3)
    groups = {id(w): group for group in found.param_groups for w in group["params"]}
    named = dict(one.named_parameters())
    assert len(groups) == len(named)
    for name, weight in named.items():
        other = any(part in name for part in OTHERS)
        group = groups[id(weight)]
        assert (group["lr"], group["weight_decay"]) == ((0.02, 0.0) if other else (0.1, 0.3)), name
