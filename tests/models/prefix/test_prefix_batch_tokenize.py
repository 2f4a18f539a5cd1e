"""Texts that are encoded ahead have the tokens that HFLM gives them one by one."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from lm_eval.models.huggingface import HFLM
from prefix_models import instances
from test_prefix_limits import build

from lm_eval_ext.models.prefix import batch_tokenize
from lm_eval_ext.models.prefix.batch_tokenize import Text, TokenPrefetch, can_batch, texts_of
from lm_eval_ext.models.prefix.model import PrefixHFLM

pytestmark = pytest.mark.slow

CONTEXTS = ("The dog is", "The dog is  ", "", "<s>The dog", " \n", "a\n\n", "这道菜", "</s> x")
CONTINUATIONS = (" a cat", "a cat", " ", "<s> the", " 叫什么", "</s>")
PAIRS = list(product(CONTEXTS, CONTINUATIONS))


def asked_for(model: HFLM, pairs: list[tuple[str, str]]) -> list[Any]:
    """What a model is given to compute, for requests of these pairs."""
    found: list[Any] = []

    def taken(requests: Any, **_: Any) -> list[Any]:
        found.extend(requests)
        return [(0.0, False)] * len(requests)

    model._loglikelihood_tokens = taken  # type: ignore[method-assign]
    model.loglikelihood(instances("loglikelihood", *pairs), disable_tqdm=True)
    return found


@pytest.mark.parametrize("batch", [1, 7, 1024])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("arguments", [{}, {"add_bos_token": True}, {"add_bos_token": False}])
def test_the_tokens_are_hfs(
    family: str,
    arguments: dict[str, Any],
    batch: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_tokenize, "BATCH", batch)
    hf, ours = build(family, tmp_path, **arguments)
    assert asked_for(ours, PAIRS) == asked_for(hf, PAIRS)


def test_an_encoder_decoders_tokens_are_hfs(tiny_models: Path) -> None:
    models = [kind(str(tiny_models / "t5"), device="cpu") for kind in (HFLM, PrefixHFLM)]
    assert asked_for(models[1], PAIRS) == asked_for(models[0], PAIRS)


def test_every_text_is_foreseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be encoded by itself, which nobody would notice but the clock."""
    _, ours = build("llama", tmp_path)
    alone: list[str] = []
    single = HFLM.tok_encode

    def noted(self: HFLM, string: str, *args: Any, **kwargs: Any) -> Any:
        alone.append(string)
        return single(self, string, *args, **kwargs)

    monkeypatch.setattr(HFLM, "tok_encode", noted)
    asked_for(ours, PAIRS)
    assert alone == []


def test_nothing_is_held_while_the_model_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ours = build("gpt2", tmp_path)
    held: list[Any] = []
    monkeypatch.setattr(
        type(ours.sharing), "pays", lambda *_: held.append(ours._tokens) or False, raising=True
    )
    ours.loglikelihood(instances("loglikelihood", ("The dog", " is")), disable_tqdm=True)
    assert held == [None]


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ours = build("gpt2", tmp_path)

    def failing(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(HFLM, "_encode_pair", failing)
    with pytest.raises(MemoryError):
        ours.loglikelihood(instances("loglikelihood", ("The dog", " is")), disable_tqdm=True)
    assert ours._tokens is None


def test_a_tokenizer_with_a_way_of_its_own_is_asked_text_by_text(tmp_path: Path) -> None:
    """As CodeLlama's, whose place to fill in counts in a single text only."""
    hf, ours = build("gpt2", tmp_path)
    usual = type(ours.tokenizer)
    assert can_batch(ours.tokenizer)

    class Filling(usual):  # type: ignore[misc, valid-type]
        def _encode_plus(self, text: Any, **options: Any) -> Any:
            if isinstance(text, str):
                text = text.replace("dog", "cat")
            return super()._encode_plus(text, **options)

    for model in (hf, ours):
        model.tokenizer.__class__ = Filling
    assert not can_batch(ours.tokenizer)
    assert asked_for(ours, PAIRS) == asked_for(hf, PAIRS)
    assert not can_batch(object()), "one that does not say whether it is fast"


def test_long_texts_come_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_tokenize, "CHARACTERS", 25)
    sizes: list[int] = []

    def encode(texts: list[Text]) -> list[list[int]]:
        sizes.append(len(texts))
        return [[0]] * len(texts)

    texts: list[Text] = [(f"{n:010}", None) for n in range(7)]
    some = TokenPrefetch(texts, encode)
    assert all(some.get(text) == [0] for text in texts)
    assert sizes == [3, 3, 1]


def test_only_the_next_texts_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_tokenize, "BATCH", 4)
    calls: list[list[Text]] = []

    def encode(texts: list[Text]) -> list[list[int]]:
        calls.append(texts)
        return [[int(text)] for text, _ in texts]

    texts = list(texts_of(((f"{n // 2}", f"{n}") for n in range(6)), causal=True))
    some = TokenPrefetch(texts, encode)
    assert [some.get(text) for text in texts] == [[int(text)] for text, _ in texts]
    assert len(calls) == 3
    assert max(map(len, calls)) <= 4
    assert some.get(("7", None)) is None
    assert some.get(texts[0]) is None, "the first ones are dropped by now"


def test_a_caller_may_change_its_tokens() -> None:
    some = TokenPrefetch([("a", None)], lambda texts: [[1, 2] for _ in texts])
    first = some.get(("a", None))
    assert first is not None
    first.append(3)
    assert some.get(("a", None)) == [1, 2]
