"""hf-prefix beside hf, both in float32: the same log-probabilities, greedy flags and texts."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from lm_eval.models.huggingface import HFLM
from support import prefix_models
from support.prefix_models import (
    few_shot,
    instances,
    same_logprobs,
    same_texts,
    scoring_requests,
    text_requests,
)

from lm_eval_ext.models.prefix import engine, growing, sharing
from lm_eval_ext.models.prefix.growing import GrowingTexts
from lm_eval_ext.models.prefix.model import PrefixHFLM

pytestmark = pytest.mark.slow

Models = Callable[..., tuple[HFLM, PrefixHFLM]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Return a function that builds hf and hf-prefix of a family with the same arguments."""
    folder = tmp_path_factory.mktemp("prefix")

    @cache
    def saved(family: str) -> str:
        return prefix_models.make(family, folder / family)

    def build(family: str, **arguments: Any) -> tuple[HFLM, PrefixHFLM]:
        defaults: dict[str, Any] = {"device": "cpu", "dtype": "float32", "max_batch_size": 2}
        path = saved(family)
        return HFLM(path, **defaults | arguments), PrefixHFLM(path, **defaults | arguments)

    return build


def nothing_was_left_to_hf(caplog: pytest.LogCaptureFixture) -> bool:
    """Return whether hf-prefix has not said that hf answers in its place."""
    return not any(re.search("as hf does|left to hf", message) for message in caplog.messages)


@pytest.mark.parametrize(
    ("family", "batch_size"),
    [
        *itertools.product(prefix_models.SHARING + prefix_models.SOUND, [8]),
        ("gpt2", 1),
        ("mistral", 1),
        ("llama", "auto"),
    ],
)
def test_few_shot_prompts_have_hfs_answers(
    family: str, batch_size: int | str, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    """All families, batches of 1, and lm-eval's choice of a batch size."""
    both = models(family, batch_size=batch_size)
    choices = [" 7", " 12", " about a hundred", " it depends on the cats"]
    same_logprobs(both, scoring_requests(few_shot(6), choices))
    settings = {"until": ["\n", "Question:"], "max_gen_toks": 12}
    texts = same_texts(both, text_requests(few_shot(13), settings))
    if family not in prefix_models.SOUND:
        assert len(set(texts)) > 1
    assert nothing_was_left_to_hf(caplog)


@pytest.mark.usefixtures("kept_cache")
@pytest.mark.parametrize("family", prefix_models.SHARING)
@pytest.mark.parametrize(
    ("task", "limit"), [("lieder_mini", 8), ("magnifico_mini", 6), ("conceptual_mini", 8)]
)
def test_our_tasks_have_hfs_answers(family: str, task: str, limit: int, models: Models) -> None:
    """Log-probabilities and texts, as the task requests them."""
    both = models(family, batch_size=8)
    requests = prefix_models.task_requests(task, limit)
    if requests[0].request_type == "loglikelihood":
        same_logprobs(both, requests)
        return
    for request in requests:
        request.arguments = (request.args[0], {**request.args[1], "max_gen_toks": 8})
    same_texts(both, requests)


@pytest.mark.parametrize("family", prefix_models.SHARING)
def test_truncated_prompts_have_hfs_answers(
    family: str, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    """Truncated from the left, prompts lose what they shared; some here are, some are not."""
    both = models(family, batch_size=8, max_length=160)
    prompts = [*few_shot(4), *(prompt[60:] for prompt in few_shot(8))]
    is_long = [len(both[0].tok_encode(prompt)) > 150 for prompt in prompts]
    assert any(is_long)
    assert not all(is_long)
    same_logprobs(both, scoring_requests(prompts, (" 7", " the cats")))
    same_texts(both, text_requests(prompts, {"until": ["\n"], "max_gen_toks": 10}))
    assert nothing_was_left_to_hf(caplog)
    assert caplog.text.count("cut on the left") == 2


BOS_OPTIONS = pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"add_bos_token": True}, id="with BOS"),
        pytest.param({"add_bos_token": False}, id="without BOS"),
        pytest.param({}, id="as the tokenizer has it"),
    ],
)

CROSSED = list(itertools.product(("The dog", "The dog is", ""), (" is", " a", " is a cat")))
SPLIT_DIFFERENTLY = [("The dog", " is a"), ("The dog is", " a"), ("The", " dog is a")]


@pytest.mark.parametrize(
    ("logits_cache", "pairs"),
    [
        (True, CROSSED),
        # With the cache, lm-eval 0.4.13 scores the shorter continuation elsewhere.
        (False, SPLIT_DIFFERENTLY),
    ],
    ids=["crossed, with a cache", "split differently, without a cache"],
)
def test_contexts_that_begin_each_other_have_hfs_answers(
    logits_cache: bool, pairs: list[tuple[str, str]], models: Models
) -> None:
    """Inputs may be equal but for the last token, or equal and split in different places."""
    both = models("llama", batch_size=2, logits_cache=logits_cache)
    same_logprobs(both, instances("loglikelihood", *pairs, *pairs[:2]))


@BOS_OPTIONS
def test_the_beginning_of_sequence_is_there_once(
    arguments: dict[str, bool], models: Models
) -> None:
    """Whether the tokenizer, an option or the prompt has it."""
    prompts = [*few_shot(4), *("<s>" + prompt for prompt in few_shot(3))]
    both = models("llama", batch_size=1, **arguments)
    same_texts(both, text_requests(prompts, {"until": [], "max_gen_toks": 6}))


def test_texts_end_where_hfs_do(models: Models) -> None:
    """So with a frequent stop sequence, short ones, none and a bare one, and equal prompts."""
    both = models("gpt2", batch_size=8)
    requests = text_requests(few_shot(6), {"until": [], "max_gen_toks": 20})
    texts = both[0].generate_until(requests, disable_tqdm=True)
    letters = Counter("".join(texts))
    frequent = max(sorted(letters), key=letters.__getitem__)
    prompts = few_shot(6) + few_shot(2)
    for until in ([frequent], [texts[0][3:6], texts[1][:1]], [], frequent):
        # Answers come back in order though settings differ.
        settings = [{"until": until, "max_gen_toks": length} for length in (1, 2, 20)]
        same_texts(both, instances("generate_until", *itertools.product(prompts, settings)))


@dataclass(frozen=True)
class Sizes:
    """Bounds on the tokens of a group of texts, of a pass through the model, and of a block."""

    group: int
    single_pass: int
    block: int


@pytest.mark.parametrize("family", prefix_models.SHARING)
@pytest.mark.parametrize(
    "sizes",
    [Sizes(1, 16, 5), Sizes(40, 16, 5), Sizes(1000, 64, 64), Sizes(300, 7, 3)],
    ids=lambda sizes: f"groups of {sizes.group}",
)
def test_sizes_of_groups_passes_and_blocks_change_no_answer(
    family: str,
    sizes: Sizes,
    models: Models,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Short texts are computed in many small pieces; some begin in the middle of a leaf."""
    both = models(family, batch_size=4)
    pairs = []
    for n in range(9):
        for m in range(5):
            pairs.append((f"The {n}", f" dog {m}" + " is" * (m % 3)))
    monkeypatch.setattr(sharing, "GROUP", sizes.group)
    monkeypatch.setattr(engine, "PASS", sizes.single_pass)
    monkeypatch.setattr(engine, "BLOCK", sizes.block)
    same_logprobs(both, instances("loglikelihood", *pairs))
    same_texts(both, text_requests(few_shot(5), {"until": [], "max_gen_toks": 5}))
    assert nothing_was_left_to_hf(caplog)


@pytest.mark.parametrize(("dtype", "batch_size"), [("float32", 4), ("bfloat16", 1)])
def test_texts_of_unequal_length_from_two_beginnings_are_hfs(
    dtype: str, batch_size: int, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    """There are two runs, of which one loses leaves while the other grows."""
    plain, sharing_model = models("llama", batch_size=batch_size, dtype=dtype)
    prompts = ["The dog is here. " * 12 + prompt for prompt in few_shot(4)] + few_shot(7)
    requests = text_requests(prompts, {"until": ["e", "\n"], "max_gen_toks": 9})
    expected = plain.generate_until(requests, disable_tqdm=True)
    texts = sharing_model.generate_until(requests, disable_tqdm=True)
    assert nothing_was_left_to_hf(caplog)
    assert len({len(text) for text in texts}) > 1
    if dtype == "float32":
        assert texts == expected
    else:
        # In short dtypes the two round differently.
        assert any(text == text_of_hf for text, text_of_hf in zip(texts, expected, strict=True))


@pytest.mark.parametrize("enough_texts", [1, 5, 128])
@pytest.mark.parametrize("megabytes", [0.05, 64], ids=["little memory", "much memory"])
def test_groups_join_texts_that_still_grow(
    enough_texts: int,
    megabytes: float,
    models: Models,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many texts of how many groups grow together, each is hf's."""
    both = models("llama", batch_size=4)
    both[1].sharing.bound = int(megabytes * (1 << 20))
    monkeypatch.setattr(sharing, "GROUP", 60)
    monkeypatch.setattr(growing, "ENOUGH_TEXTS", enough_texts)
    joined: list[bool] = []
    start = GrowingTexts.start

    def start_and_note(self: GrowingTexts, *group: Any) -> Any:
        joined.append(bool(self.runs))
        return start(self, *group)

    monkeypatch.setattr(GrowingTexts, "start", start_and_note)
    prompts = ["The dog is here. " * 3 + prompt for prompt in few_shot(4)] + few_shot(12)
    settings = {"until": ["4", "w"], "max_gen_toks": 16}
    texts = same_texts(both, text_requests(prompts, settings))
    assert len({len(text) for text in texts}) > 1
    assert nothing_was_left_to_hf(caplog)
    assert len(joined) > 3
    assert any(joined) is (enough_texts > 1 and megabytes > 1)


TokenRequest = tuple[tuple[str, str], list[int], list[int]]
"""The texts of a request, and the tokens of its context and of its continuation."""

CONTEXTS = ("The dog is", "The dog is  ", "", "<s>The dog", " \n", "a\n\n", "这道菜", "</s> x")
CONTINUATIONS = (" a cat", "a cat", " ", "<s> the", " 叫什么", "</s>")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@BOS_OPTIONS
def test_texts_that_are_encoded_together_have_hfs_tokens(
    family: str, arguments: dict[str, bool], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both models score the same pairs of tokens, at any borders of words."""
    pairs = list(itertools.product(CONTEXTS, CONTINUATIONS))
    tokens_of_models: list[list[tuple[list[int], list[int]]]] = []

    def note_tokens(
        _self: HFLM, requests: list[TokenRequest], **_options: object
    ) -> list[tuple[float, bool]]:
        tokens = [(context, continuation) for _, context, continuation in requests]
        tokens_of_models.append(tokens)
        return [(0.0, False)] * len(requests)

    monkeypatch.setattr(HFLM, "_loglikelihood_tokens", note_tokens)
    monkeypatch.setattr(PrefixHFLM, "_loglikelihood_tokens", note_tokens)
    for model in models(family, **arguments):
        model.loglikelihood(instances("loglikelihood", *pairs), disable_tqdm=True)
    expected, tokens = tokens_of_models
    assert tokens == expected
