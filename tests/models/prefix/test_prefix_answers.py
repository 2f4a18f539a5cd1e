"""hf-prefix beside hf, both in float32: the same log-probabilities, greedy flags and texts."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import prefix_models
import pytest
from lm_eval.models.huggingface import HFLM
from prefix_models import few_shot, instances, same_logprobs, same_texts

from lm_eval_ext.models.prefix import engine, sharing
from lm_eval_ext.models.prefix.model import PrefixHFLM

pytestmark = pytest.mark.slow

Models = Callable[..., tuple[HFLM, PrefixHFLM]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Builds hf and hf-prefix of a family with the same arguments."""
    folder = tmp_path_factory.mktemp("prefix")

    @cache
    def saved(family: str) -> str:
        return prefix_models.make(family, folder / family)

    def build(family: str, **arguments: Any) -> tuple[HFLM, PrefixHFLM]:
        arguments = {"device": "cpu", "dtype": "float32", "max_batch_size": 2} | arguments
        path = saved(family)
        return HFLM(path, **arguments), PrefixHFLM(path, **arguments)

    return build


def shared_for_sure(caplog: pytest.LogCaptureFixture) -> bool:
    """Nothing was left to hf."""
    return not any(re.search("as hf does|left to hf", r.getMessage()) for r in caplog.records)


@pytest.mark.parametrize(
    ("family", "batch_size"),
    [
        *((family, 8) for family in prefix_models.SHARING + prefix_models.SOUND),
        ("gpt2", 1),
        ("mistral", 1),
        ("llama", "auto"),
    ],
)
def test_few_shot(
    family: str, batch_size: Any, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    both = models(family, batch_size=batch_size)
    choices = [" 7", " 12", " about a hundred", " it depends on the cats"]
    same_logprobs(
        both,
        instances("loglikelihood", *((p, choice) for p in few_shot(6) for choice in choices)),
    )
    settings = {"until": ["\n", "Question:"], "max_gen_toks": 12}
    texts = same_texts(both, instances("generate_until", *((p, settings) for p in few_shot(13))))
    assert family in prefix_models.SOUND or len(set(texts)) > 1
    assert shared_for_sure(caplog)


@pytest.mark.usefixtures("kept_cache")
@pytest.mark.parametrize("family", prefix_models.SHARING)
@pytest.mark.parametrize(
    ("task", "limit"), [("lieder_mini", 8), ("magnifico_mini", 6), ("conceptual_mini", 8)]
)
def test_our_tasks(family: str, task: str, limit: int, models: Models) -> None:
    both = models(family, batch_size=8)
    requests = prefix_models.of_task(task, limit)
    if requests[0].request_type == "loglikelihood":
        same_logprobs(both, requests)
        return
    for request in requests:
        request.arguments = (request.args[0], {**request.args[1], "max_gen_toks": 8})
    same_texts(both, requests)


@pytest.mark.parametrize("family", prefix_models.SHARING)
def test_truncated_prompts(family: str, models: Models, caplog: pytest.LogCaptureFixture) -> None:
    """Truncated from the left, prompts lose what they shared; some here are, some are not."""
    both = models(family, batch_size=8, max_length=160)
    prompts = [*few_shot(4), *(prompt[60:] for prompt in few_shot(8))]
    assert {len(both[0].tok_encode(prompt)) > 150 for prompt in prompts} == {True, False}
    same_logprobs(
        both,
        instances("loglikelihood", *((p, c) for p in prompts for c in (" 7", " the cats"))),
    )
    settings = {"until": ["\n"], "max_gen_toks": 10}
    same_texts(both, instances("generate_until", *((p, settings) for p in prompts)))
    assert shared_for_sure(caplog) and caplog.text.count("cut on the left") == 2


@pytest.mark.parametrize("logits_cache", [True, False])
def test_contexts_that_begin_each_other(logits_cache: bool, models: Models) -> None:
    """Equal inputs with different last tokens; equal tokens, split in different places."""
    both = models("llama", batch_size=2, logits_cache=logits_cache)
    pairs = [(c, t) for c in ("The dog", "The dog is", "") for t in (" is", " a", " is a cat")]
    if not logits_cache:  # with it, lm-eval 0.4.13 scores the shorter continuation elsewhere
        pairs = [("The dog", " is a"), ("The dog is", " a"), ("The", " dog is a")]
    same_logprobs(both, instances("loglikelihood", *pairs, *pairs[:2]))


@pytest.mark.parametrize("arguments", [{"add_bos_token": True}, {"add_bos_token": False}, {}])
def test_beginning_of_sequence(arguments: dict[str, Any], models: Models) -> None:
    settings = {"until": [], "max_gen_toks": 6}
    prompts = [*few_shot(4), *("<s>" + prompt for prompt in few_shot(3))]
    same_texts(models("llama", batch_size=1, **arguments),
               instances("generate_until", *((p, settings) for p in prompts)))  # fmt: skip


def test_texts_end_where_hfs_do(models: Models) -> None:
    """A frequent stop sequence, a short one after one token, none at all, and equal prompts."""
    both = models("gpt2", batch_size=8)
    free = both[0].generate_until(
        instances("generate_until", *((p, {"until": [], "max_gen_toks": 20}) for p in few_shot(6))),
        disable_tqdm=True,
    )
    frequent = max(set("".join(free)), key="".join(free).count)
    for until in ([frequent], [free[0][3:6], free[1][:1]], [], frequent):
        prompts = few_shot(6) + few_shot(2)
        lengths = (1, 2, 20)  # answers come back in order though settings differ
        settings = [{"until": until, "max_gen_toks": length} for length in lengths]
        requests = [(p, one) for p in prompts for one in settings]
        same_texts(both, instances("generate_until", *requests))


@pytest.mark.parametrize("family", prefix_models.SHARING)
def test_any_sizes_of_groups_passes_and_blocks(
    family: str, models: Models, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short texts, in many small pieces; some begin in the middle of a leaf."""
    both = models(family, batch_size=4)
    pairs = [(f"The {n}", f" dog {m}{' is' * (m % 3)}") for n in range(9) for m in range(5)]
    settings = {"until": [], "max_gen_toks": 5}
    for group, size, block in ((1, 16, 5), (40, 16, 5), (1000, 64, 64), (300, 7, 3)):
        monkeypatch.setattr(sharing, "GROUP", group)
        monkeypatch.setattr(engine, "PASS", size)
        monkeypatch.setattr(engine, "BLOCK", block)
        same_logprobs(both, instances("loglikelihood", *pairs))
        same_texts(both, instances("generate_until", *((p, settings) for p in few_shot(5))))
    assert shared_for_sure(caplog)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 1)])
def test_texts_of_unequal_length_from_two_beginnings(
    dtype: str, size: int, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    """Two runs, of which one loses leaves while the other grows."""
    both = models("llama", batch_size=size, dtype=dtype)
    prompts = [f"{'The dog is here. ' * 12}{p}" for p in few_shot(4)] + few_shot(7)
    settings = {"until": ["e", "\n"], "max_gen_toks": 9}
    texts = [
        model.generate_until(
            instances("generate_until", *((p, settings) for p in prompts)), disable_tqdm=True
        )
        for model in both
    ]
    assert shared_for_sure(caplog)
    assert len({len(text) for text in texts[1]}) > 1
    # In short dtypes the two round differently.
    alike = sum(one == other for one, other in zip(*texts, strict=True))
    assert alike == len(prompts) if dtype == "float32" else alike > 0


CONTEXTS = ("The dog is", "The dog is  ", "", "<s>The dog", " \n", "a\n\n", "这道菜", "</s> x")
CONTINUATIONS = (" a cat", "a cat", " ", "<s> the", " 叫什么", "</s>")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("arguments", [{}, {"add_bos_token": True}, {"add_bos_token": False}])
def test_texts_that_are_encoded_together_have_hfs_tokens(
    family: str, arguments: dict[str, Any], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [(one, other) for one in CONTEXTS for other in CONTINUATIONS]
    asked: list[Any] = []

    def taken(_self: HFLM, requests: list[Any], **_: Any) -> list[Any]:
        asked.append([(context, continuation) for _, context, continuation in requests])
        return [(0.0, False)] * len(requests)

    monkeypatch.setattr(HFLM, "_loglikelihood_tokens", taken)
    monkeypatch.setattr(PrefixHFLM, "_loglikelihood_tokens", taken)
    for model in models(family, **arguments):
        model.loglikelihood(instances("loglikelihood", *pairs), disable_tqdm=True)
    assert asked[0] == asked[1]
