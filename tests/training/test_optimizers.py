"""Muon beside AdamW: which weights each has, their rates, and the state of both."""

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


def both(one: Any) -> Any:
    return muon(one, rate=0.1, others={"lr": 0.02, "betas": (0.9, 0.98)}, weight_decay=0.3)


@pytest.mark.parametrize("kind", SIZES)
def test_every_weight_is_trained_once_and_at_its_rate(kind: str) -> None:
    one = model(kind)
    rates = {id(w): g["lr"] for g in both(one).param_groups for w in g["params"]}
    found = {name: rates[id(weight)] for name, weight in one.named_parameters()}
    assert len(rates) == len(found)
    for name, rate in found.items():
        assert rate == (0.02 if any(part in name for part in OTHERS) else 0.1), name


def test_a_saved_state_goes_on_as_if_it_had_never_been_saved() -> None:
    import torch

    def step(one: Any, optimizer: Any, schedule: Any, number: int) -> None:
        ids = torch.tensor([[number, 3, 4]])
        one(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    def start() -> tuple[Any, Any, Any]:
        one = model("t5").eval()
        optimizer = both(one)
        return one, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (n + 1))

    whole, kept, resumed = start(), start(), start()
    for number in range(2):
        step(*whole, number)
        step(*kept, number)
    for part, saved in zip(resumed, kept, strict=True):
        part.load_state_dict(saved.state_dict())
    step(*whole, 2)
    step(*resumed, 2)
    assert [group["lr"] for group in resumed[1].param_groups] == [0.1 / 4, 0.02 / 4]
    for expected, weight in zip(whole[0].parameters(), resumed[0].parameters(), strict=True):
        assert torch.equal(expected, weight)
