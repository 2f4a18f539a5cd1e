"""When hf-prefix falls back to hf and says so; how much it computes; partial caching."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import prefix_models
import pytest
import torch
from lm_eval.models.huggingface import HFLM
from prefix_models import instances
from test_prefix_answers import few_shot, same_logprobs, same_texts

from lm_eval_ext.errors import OptionError
from lm_eval_ext.models.prefix.engine import Engine, Slots
from lm_eval_ext.models.prefix.model import PrefixHFLM

pytestmark = pytest.mark.slow

SETTINGS = {"until": ["\n"], "max_gen_toks": 4}


def build(family: str, folder: Path, **arguments: Any) -> tuple[HFLM, PrefixHFLM]:
    path = prefix_models.make(family, folder / family)
    arguments = {"device": "cpu", "dtype": "float32", "batch_size": 4} | arguments
    return HFLM(path, **arguments), PrefixHFLM(path, **arguments)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith("hf-prefix")]


@pytest.mark.parametrize("family", prefix_models.OTHERS)
def test_other_models_are_left_to_hf_with_one_message(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = build(family, tmp_path)
    requests = instances("loglikelihood", *((p, c) for p in few_shot(3) for c in (" 7", " a cat")))
    same_logprobs(both, requests)
    same_texts(both, instances("generate_until", *((p, SETTINGS) for p in few_shot(3))))
    assert len(said(caplog)) == 1
    assert "cannot share prefixes" in said(caplog)[0]


def test_prompts_that_share_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    both = build("gpt2", tmp_path)
    requests = instances("loglikelihood", *((f"{n} dogs", f" own {n} cats") for n in range(9)))
    same_logprobs(both, requests)
    same_logprobs(both, requests)
    assert len(said(caplog)) == 1
    assert "too few" in said(caplog)[0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"do_sample": True, "temperature": 0.7}, "sampling"),
        ({"num_beams": 2}, "num_beams"),
        ({"repetition_penalty": 1.3}, "repetition_penalty"),
    ],
)
def test_other_generation_settings(
    settings: dict[str, Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = build("gpt2", tmp_path)
    requests = instances("generate_until", *((p, SETTINGS | settings) for p in few_shot(4)))
    texts = []
    for model in both:
        torch.manual_seed(3)
        texts.append(model.generate_until(requests, disable_tqdm=True))
    assert texts[0] == texts[1]
    assert len(said(caplog)) == 1
    assert reason in said(caplog)[0]


def test_a_models_own_repetition_penalty_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = build("gpt2", tmp_path)
    requests = instances("generate_until", *((p, SETTINGS) for p in few_shot(4)))
    for model in both:
        model.model.generation_config.repetition_penalty = 1.7
    same_texts(both, requests)
    assert "repetition_penalty" in said(caplog)[0]


def test_an_encoder_decoder_is_left_to_hf(tiny_models: Path) -> None:
    arguments: dict[str, Any] = {"device": "cpu", "dtype": "float32", "batch_size": 4}
    folder = str(tiny_models / "t5")
    both = HFLM(folder, **arguments), PrefixHFLM(folder, **arguments)
    same_logprobs(both, instances("loglikelihood", *((p, " yes") for p in few_shot(3))))
    same_texts(both, instances("generate_until", *((p, SETTINGS) for p in few_shot(3))))


def test_rolling_log_likelihood_is_hfs(tmp_path: Path) -> None:
    hf, ours = build("gpt2", tmp_path, max_length=64)
    requests = instances("loglikelihood_rolling", *((prompt,) for prompt in few_shot(3)))
    assert ours.loglikelihood_rolling(requests) == pytest.approx(hf.loglikelihood_rolling(requests))


class Hook:
    """Notes what lm-eval's partial cache is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def add_partial(self, kind: str, arguments: Any, answer: Any) -> None:
        self.rows.append((kind, repr(arguments), answer))


def test_partial_results_are_cached_as_by_hf(tmp_path: Path) -> None:
    both = build("llama", tmp_path)
    pairs = instances("loglikelihood", *((p, c) for p in few_shot(3) for c in (" 7", " a cat")))
    prompts = instances("generate_until", *((p, SETTINGS) for p in few_shot(3)))
    notes = []
    for model in both:
        model.cache_hook = Hook()
        model.loglikelihood(pairs, disable_tqdm=True)
        model.generate_until(prompts, disable_tqdm=True)
        notes.append(sorted(model.cache_hook.rows, key=lambda row: row[:2]))
    assert [row[:2] for row in notes[0]] == [row[:2] for row in notes[1]]
    assert [row[2] for row in notes[0] if row[0] == "generate_until"] == [
        row[2] for row in notes[1] if row[0] == "generate_until"
    ]


def test_every_distinct_token_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where keys and values are kept; and the usual attention is put back."""
    _, ours = build("llama", tmp_path)
    usual = ours.model.config._attn_implementation
    pairs = instances("loglikelihood", *((p, " 7") for p in few_shot(8)))
    ours.loglikelihood(pairs, disable_tqdm=True)  # the check is made once
    counts: list[int] = []
    write = Slots.write

    def counting(self: Slots, layer: int, at: Any, *states: torch.Tensor) -> Any:
        counts.append(states[0].shape[-2] if layer == 0 else 0)
        return write(self, layer, at, *states)

    monkeypatch.setattr(Slots, "write", counting)
    ours.loglikelihood(pairs, disable_tqdm=True)
    tokens = [tuple(ours.tok_encode(prompt + " 7"))[:-1] for prompt in few_shot(8)]
    distinct = {one[:end] for one in tokens for end in range(1, len(one) + 1)}
    assert sum(counts) == len(distinct)
    assert ours.model.config._attn_implementation == usual


@pytest.mark.parametrize("mebibytes", [0.05, 0.2, 1.0])
def test_a_bound_on_memory_holds(
    mebibytes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all slots that exist at a time; a single prompt may exceed it."""
    path = prefix_models.make("llama", tmp_path / "llama")
    ours = PrefixHFLM(path, device="cpu", prefix_cache_mb=mebibytes)
    requests = instances("generate_until", *((p, SETTINGS | {"until": []}) for p in few_shot(24)))
    free = ours.generate_until(requests, disable_tqdm=True)
    sizes: list[int] = []
    monkeypatch.setattr(Slots, "__init__", _noting(Slots.__init__, sizes))
    assert ours.generate_until(requests, disable_tqdm=True) == free
    held = max(map(sum, pairwise(sizes))) * ours.sharing._slot_bytes
    prompt = max(len(ours.tok_encode(p)) for p in few_shot(24)) + SETTINGS["max_gen_toks"]
    assert held <= max(mebibytes * (1 << 20), 3 * prompt * ours.sharing._slot_bytes)


def _noting(usual: Any, sizes: list[int]) -> Any:
    def init(self: Slots, size: int) -> None:
        sizes.append(size)
        usual(self, size)

    return init


@pytest.mark.parametrize("value", ["0", "-3", "much", 0])
def test_an_unusable_bound_is_refused_in_one_line(value: Any, tmp_path: Path) -> None:
    path = prefix_models.make("gpt2", tmp_path / "gpt2")
    with pytest.raises(OptionError, match="prefix_cache_mb") as caught:
        PrefixHFLM(path, device="cpu", prefix_cache_mb=value)
    assert "\n" not in str(caught.value)


def test_lm_eval_knows_the_name() -> None:
    from lm_eval.api.registry import get_model

    assert get_model("hf-prefix") is PrefixHFLM


def test_texts_grow_together_whatever_the_batch_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in passes: the prompts are read in one, then each appends a token to all texts."""
    requests = instances("generate_until", *((p, SETTINGS | {"until": []}) for p in few_shot(24)))
    path = prefix_models.make("llama", tmp_path / "llama")
    ours = PrefixHFLM(path, device="cpu", batch_size=1)
    ours.generate_until(requests, disable_tqdm=True)  # the check is made once
    passes: list[int] = []
    forward = Engine.forward

    def counting(self: Engine, tokens: Any, *others: Any) -> torch.Tensor:
        passes.append(len(tokens))
        return forward(self, tokens, *others)

    monkeypatch.setattr(Engine, "forward", counting)
    ours.generate_until(requests, disable_tqdm=True)
    assert passes[1:] == [len(set(few_shot(24)))] * (SETTINGS["max_gen_toks"] - 1)
