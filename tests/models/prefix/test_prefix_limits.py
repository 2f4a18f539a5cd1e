"""When hf-prefix falls back to hf and says so; how much it computes and holds; partial caching."""

from pathlib import Path
from typing import Any
from weakref import WeakSet

import prefix_models
import pytest
import torch
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.models.huggingface import HFLM
from prefix_models import few_shot, instances, same_logprobs, same_texts

from lm_eval_ext.errors import OptionError
from lm_eval_ext.models.prefix import sharing
from lm_eval_ext.models.prefix.engine import Slots

pytestmark = pytest.mark.slow

SETTINGS = {"until": ["\n"], "max_gen_toks": 4}
ENDLESS = SETTINGS | {"until": []}
ARGUMENTS: dict[str, Any] = {"device": "cpu", "dtype": "float32", "batch_size": 4}


def build(family: str, folder: Path, **arguments: Any) -> tuple[HFLM, Any]:
    path, ours = prefix_models.make(family, folder / family), get_model("hf-prefix")
    plain = {key: value for key, value in arguments.items() if key != "prefix_cache_mb"}
    return HFLM(path, **ARGUMENTS | plain), ours(path, **ARGUMENTS | arguments)  # type: ignore[call-arg]


def scored(count: int = 3) -> list[Instance]:
    return instances("loglikelihood", *((p, c) for p in few_shot(count) for c in (" 7", " a cat")))


def generated(count: int, settings: dict[str, Any] = SETTINGS) -> list[Instance]:
    return instances("generate_until", *((p, settings) for p in few_shot(count)))


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The one message."""
    (message,) = [r.getMessage() for r in caplog.records if "hf-prefix" in r.getMessage()]
    return message


@pytest.mark.parametrize("family", prefix_models.OTHERS)
def test_other_models_are_left_to_hf_with_one_message(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a dtype whose noise hides what they do otherwise."""
    both = build(family, tmp_path, dtype="bfloat16")
    same_texts(both, instances("generate_until", *[("A", SETTINGS)] * 3))
    assert said(caplog)
    same_logprobs(both, scored())
    same_texts(both, generated(3))
    assert "cannot share prefixes" in said(caplog)


def test_ranks_with_automatic_batches_are_left_to_hf(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They choose a batch size together, so no rank may leave it out."""
    monkeypatch.setattr(HFLM, "world_size", 2)
    _, ours = build("llama", tmp_path, batch_size="auto")
    monkeypatch.setattr(HFLM, "generate_until", lambda *_, **__: ["hf's"] * 3)
    assert ours.generate_until(generated(3)) == ["hf's"] * 3
    assert "several processes" in said(caplog)


def test_what_hf_refuses_is_refused(tmp_path: Path) -> None:
    for model in build("llama", tmp_path):
        for continuation in ([], [6] * (model.max_length + 1)):
            with pytest.raises(AssertionError):
                model._loglikelihood_tokens([(None, [5], continuation)] * 2, disable_tqdm=True)
        with pytest.raises(ValueError, match="max_length"):
            model.generate_until(generated(3, SETTINGS | {"max_gen_toks": 0}))
    empty = instances("generate_until", ("", SETTINGS))
    same_texts(build("gpt2", tmp_path), generated(3) + empty)


def test_prompts_that_share_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    both = build("gpt2", tmp_path)
    requests = instances("loglikelihood", *((f"{n} dogs", f" own {n} cats") for n in range(9)))
    same_logprobs(both, requests)
    same_logprobs(both, requests)
    assert "too few" in said(caplog)


@pytest.mark.parametrize(
    ("settings", "of_model", "reason"),
    [
        ({"do_sample": True, "temperature": 0.7}, 1.0, "sampling"),
        ({"num_beams": 2}, 1.0, "num_beams"),
        ({"repetition_penalty": 1.3}, 1.0, "repetition_penalty"),
        ({}, 1.7, "repetition_penalty"),
    ],
)
def test_other_generation_settings(
    settings: dict[str, Any],
    of_model: float,
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    both = build("gpt2", tmp_path)
    texts = []
    for model in both:
        if of_model != 1:
            model.model.generation_config.repetition_penalty = of_model
        torch.manual_seed(3)
        texts.append(model.generate_until(generated(4, SETTINGS | settings), disable_tqdm=True))
    assert texts[0] == texts[1]
    assert reason in said(caplog)


def test_an_encoder_decoder_and_rolling_log_likelihood_are_hfs(
    tiny_models: Path, tmp_path: Path
) -> None:
    folder, ours = str(tiny_models / "t5"), get_model("hf-prefix")
    both: Any = HFLM(folder, **ARGUMENTS), ours(folder, **ARGUMENTS)
    same_logprobs(both, scored())
    same_texts(both, generated(3))
    rolling = instances("loglikelihood_rolling", *((prompt,) for prompt in few_shot(3)))
    one, other = (m.loglikelihood_rolling(rolling) for m in build("gpt2", tmp_path, max_length=64))
    assert one == pytest.approx(other)


class Hook:
    """Notes what lm-eval's partial cache is given."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def add_partial(self, kind: str, arguments: Any, answer: Any) -> None:
        logprob, greedy = answer if isinstance(answer, tuple) else (0.0, answer)
        self.rows[f"{kind} {arguments}"] = logprob
        self.rows[f"{kind} {arguments} greedy"] = greedy


def test_partial_results_are_cached_as_by_hf(tmp_path: Path) -> None:
    notes = []
    for model in build("llama", tmp_path):
        model.cache_hook = Hook()
        model.loglikelihood(scored(), disable_tqdm=True)
        model.generate_until(generated(3), disable_tqdm=True)
        notes.append(model.cache_hook.rows)
    assert len(notes[0]) == 18
    assert notes[1] == pytest.approx(notes[0], abs=prefix_models.NOISE)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_every_distinct_token_is_computed_once(
    batch_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where keys and values are kept; and the usual attention is put back."""
    _, ours = build("llama", tmp_path, batch_size=batch_size)
    usual = ours.model.config._attn_implementation
    pairs = instances("loglikelihood", *((p, " 7") for p in few_shot(24)))
    ours.loglikelihood(pairs, disable_tqdm=True)  # the check is made once
    read = [[ours.tok_encode(p) for p in few_shot(24)],
            [ours.tok_encode(p + " 7")[:-1] for p in few_shot(24)]]  # fmt: skip
    distinct = [
        len({tuple(one[:end]) for one in some for end in range(1, len(one) + 1)}) for some in read
    ]
    counts: list[int] = []
    write = Slots.write

    def counting(self: Slots, layer: int, at: Any, *states: torch.Tensor) -> Any:
        counts.extend([states[0].shape[-2]] * (layer == 0))
        return write(self, layer, at, *states)

    monkeypatch.setattr(Slots, "write", counting)
    ours.generate_until(generated(24, ENDLESS), disable_tqdm=True)
    # After the prompts each step appends a token to all texts, whatever the batch size.
    assert counts == [distinct[0]] + [len(set(few_shot(24)))] * 3
    counts.clear()
    ours.loglikelihood(pairs, disable_tqdm=True)
    assert counts == [distinct[1]]
    counts.clear()
    monkeypatch.setattr(sharing, "GROUP", 64)  # what groups have in common is kept
    ours.loglikelihood(pairs, disable_tqdm=True)
    assert len(counts) > 5
    assert sum(counts) < 1.1 * distinct[1]
    assert ours.model.config._attn_implementation == usual


@pytest.mark.parametrize("mebibytes", [0.05, 0.2, 1.0])
def test_a_bound_on_memory_holds(
    mebibytes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all slots that exist at a time; a single prompt may exceed it. Nothing is kept."""
    _, ours = build("llama", tmp_path, prefix_cache_mb=mebibytes)
    prompts = few_shot(24)
    prompts += [f"{max(prompts, key=len)} {n}" for n in range(200)]  # short leaves of a long path
    asked = instances("generate_until", *((prompt, ENDLESS) for prompt in prompts))
    free = ours.generate_until(asked, disable_tqdm=True)
    alive: WeakSet[Slots] = WeakSet()
    sizes: list[int] = []
    usual = Slots.__init__

    def noting(self: Slots, size: int) -> None:
        usual(self, size)
        alive.add(self)
        sizes.append(sum(one.size for one in alive))

    monkeypatch.setattr(Slots, "__init__", noting)
    assert ours.generate_until(asked, disable_tqdm=True) == free
    held = max(sizes) * ours.sharing._slot_bytes
    assert not any(one.size for one in alive)
    prompt = max(len(ours.tok_encode(p)) for p in prompts) + ENDLESS["max_gen_toks"]
    assert held <= max(mebibytes * (1 << 20), sharing.COPIES * prompt * ours.sharing._slot_bytes)


@pytest.mark.parametrize("value", ["0", "-3", "much", "inf", 0, True])
def test_an_unusable_bound_is_refused_in_one_line(value: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="prefix_cache_mb") as caught:
        build("gpt2", tmp_path, prefix_cache_mb=value)
    assert "\n" not in str(caught.value)
