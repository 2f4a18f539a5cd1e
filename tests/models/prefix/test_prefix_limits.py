"""When hf-prefix falls back to hf and says so; how much it computes and holds; partial caching."""

import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest
import torch
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
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

from lm_eval_ext.errors import OptionError
from lm_eval_ext.models.prefix import growing, packed, passes, progress, sharing
from lm_eval_ext.models.prefix import model as prefix_model
from lm_eval_ext.models.prefix.engine import Engine, Pass, Slots
from lm_eval_ext.models.prefix.progress import RequestsBar
from lm_eval_ext.models.prefix.runs import Rows
from lm_eval_ext.models.prefix.tree import IntArray, build_tree

pytestmark = pytest.mark.slow

LENGTH = 4
"""Tokens of a text."""

SETTINGS: dict[str, object] = {"until": ["\n"], "max_gen_toks": LENGTH}
ENDLESS = SETTINGS | {"until": []}
ARGUMENTS: dict[str, object] = {"device": "cpu", "dtype": "float32", "batch_size": 4}


def build(family: str, folder: Path, **arguments: object) -> tuple[HFLM, HFLM]:
    """Build hf and hf-prefix of a family with the same arguments."""
    path = prefix_models.make(family, folder / family)
    plain = HFLM(path, **ARGUMENTS | arguments)
    return plain, get_model("hf-prefix")(path, **ARGUMENTS | arguments)


def build_with_bound(folder: Path, mebibytes: object) -> HFLM:
    """Build hf-prefix with a bound on its memory."""
    path = prefix_models.make("llama", folder / "llama")
    return get_model("hf-prefix")(path, **ARGUMENTS, prefix_cache_mb=mebibytes)


def scored(count: int = 3) -> list[Instance]:
    return scoring_requests(few_shot(count), (" 7", " a cat"))


def generated(count: int, settings: Mapping[str, object] = SETTINGS) -> list[Instance]:
    return text_requests(few_shot(count), settings)


def only_message(caplog: pytest.LogCaptureFixture) -> str:
    """Return the only message of hf-prefix."""
    (message,) = [message for message in caplog.messages if "hf-prefix" in message]
    return message


@pytest.mark.parametrize("family", prefix_models.OTHERS)
def test_other_models_are_left_to_hf_with_one_message(
    family: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All their requests get hf's answers; noise of the dtype hides what they do otherwise."""
    monkeypatch.setattr(prefix_model, "lacks_instructions", lambda _dtype: False)  # a message more
    both = build(family, tmp_path, dtype="bfloat16")
    same_texts(both, instances("generate_until", *[("A", SETTINGS)] * 3))
    assert only_message(caplog)
    same_logprobs(both, scored())
    same_texts(both, generated(3))
    assert "cannot share prefixes" in only_message(caplog)


def scale_logits(model: HFLM) -> None:
    """Make a tiny model's logits larger than those of any pretrained one."""
    with torch.no_grad():
        model.model.get_output_embeddings().weight.mul_(1000)


def test_a_model_with_large_logits_shares(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Rounding moves log-probabilities by a share of the logits, which is no fault."""
    _, sharing_model = build("llama", tmp_path)
    scale_logits(sharing_model)
    sharing_model.loglikelihood(scored())
    assert not [message for message in caplog.messages if "cannot share" in message]


def test_a_model_with_large_logits_that_attends_otherwise_does_not_share(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault moves log-probabilities by more than rounding does."""
    _, sharing_model = build("llama", tmp_path)
    scale_logits(sharing_model)
    compute = Engine.forward

    def compute_at_wrong_positions(
        engine: Engine, tokens: IntArray, positions: IntArray, pass_: Pass
    ) -> torch.Tensor:
        return compute(engine, tokens, positions * 2, pass_)

    monkeypatch.setattr(Engine, "forward", compute_at_wrong_positions)
    sharing_model.loglikelihood(scored())
    assert "log-probabilities differ by" in only_message(caplog)


def test_ranks_with_automatic_batches_are_left_to_hf(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They choose a batch size together, so no rank may leave it out."""
    monkeypatch.setattr(HFLM, "world_size", 2)
    _, model = build("llama", tmp_path, batch_size="auto")

    def generate_as_hf(*_: object, **__: object) -> list[str]:
        return ["hf's"] * 3

    monkeypatch.setattr(HFLM, "generate_until", generate_as_hf)
    assert model.generate_until(generated(3)) == ["hf's"] * 3
    assert "several processes" in only_message(caplog)


@pytest.mark.parametrize("is_too_long", [False, True], ids=["empty", "too long"])
def test_a_continuation_that_hf_refuses_is_refused(tmp_path: Path, is_too_long: bool) -> None:
    """Both models assert that there is a continuation and that it fits."""
    for model in build("llama", tmp_path):
        continuation = [6] * (model.max_length + 1) if is_too_long else []
        with pytest.raises(AssertionError):
            model._loglikelihood_tokens([(None, [5], continuation)] * 2, disable_tqdm=True)


def test_a_length_that_hf_refuses_is_refused(tmp_path: Path) -> None:
    """Both models need room for a token."""
    for model in build("llama", tmp_path):
        with pytest.raises(ValueError, match="max_length"):
            model.generate_until(generated(3, SETTINGS | {"max_gen_toks": 0}))


def test_an_empty_prompt_among_others_is_continued(tmp_path: Path) -> None:
    """Its text is hf's."""
    empty = instances("generate_until", ("", SETTINGS))
    same_texts(build("gpt2", tmp_path), generated(3) + empty)


def test_texts_whose_prompts_share_nothing_are_generated_by_ourselves_on_a_processor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are packed, and texts that are complete cost nothing more; on a GPU hf is as fast."""
    both = build("gpt2", tmp_path)
    requests = text_requests([f"{number} dogs" for number in range(9)], SETTINGS)
    same_texts(both, requests)
    assert "hf-prefix" not in caplog.text
    monkeypatch.setattr(both[1].sharing.engine, "device", torch.device("cuda"))
    leaves = build_tree([(number, (number, 20 + number), 1) for number in range(9)])
    assert not both[1].sharing.pays(leaves, LENGTH)
    assert "too few" in only_message(caplog)


def test_prompts_that_share_nothing_are_left_to_hf_with_one_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The message comes once, however often they are scored."""
    both = build("gpt2", tmp_path)
    texts = [(f"{n} dogs", f" own {n} cats") for n in range(9)]
    requests = instances("loglikelihood", *texts)
    same_logprobs(both, requests)
    same_logprobs(both, requests)
    assert "too few" in only_message(caplog)


@pytest.mark.parametrize(
    ("settings", "penalty_of_model", "reason"),
    [
        pytest.param({"do_sample": True, "temperature": 0.7}, 1.0, "sampling", id="sampling"),
        pytest.param({"num_beams": 2}, 1.0, "num_beams", id="beams"),
        pytest.param(
            {"repetition_penalty": 1.3}, 1.0, "repetition_penalty", id="penalty of a request"
        ),
        pytest.param({}, 1.7, "repetition_penalty", id="penalty of the model"),
    ],
)
def test_anything_but_greedy_texts_is_left_to_hf(
    settings: dict[str, object],
    penalty_of_model: float,
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whether a request or the model asks for it, the texts are hf's, and a message says why."""
    requests = generated(4, SETTINGS | settings)
    texts_of_models = []
    for model in build("gpt2", tmp_path):
        if penalty_of_model != 1:
            model.model.generation_config.repetition_penalty = penalty_of_model
        torch.manual_seed(3)
        texts_of_models.append(model.generate_until(requests, disable_tqdm=True))
    expected, texts = texts_of_models
    assert texts == expected
    assert reason in only_message(caplog)


def test_an_encoder_decoder_and_rolling_log_likelihood_are_hfs(
    tiny_models: Path, tmp_path: Path
) -> None:
    """Their requests get hf's answers."""
    folder = str(tiny_models / "t5")
    both = HFLM(folder, **ARGUMENTS), get_model("hf-prefix")(folder, **ARGUMENTS)
    same_logprobs(both, scored())
    same_texts(both, generated(3))
    prompts = [(prompt,) for prompt in few_shot(3)]
    rolling = instances("loglikelihood_rolling", *prompts)
    plain, sharing_model = build("gpt2", tmp_path, max_length=64)
    expected = plain.loglikelihood_rolling(rolling)
    assert sharing_model.loglikelihood_rolling(rolling) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "activities"),
    [
        pytest.param("loglikelihood", ["Scoring texts, 0 of "], id="scoring"),
        pytest.param(
            "generate_until",
            [
                "Packing the weights: ",
                "Reading prompts, 0 of ",
                f"Writing 3 answers, 1 of at most {LENGTH} tokens: ",
            ],
            id="generating",
        ),
    ],
)
def test_the_progress_bar_says_what_is_computed_before_the_first_answer(
    method: str,
    activities: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What requests share is computed first, while the number of answers stays at 0."""
    monkeypatch.setattr(progress, "DESCRIBE_S", -1.0)
    _, model = build("llama", tmp_path)
    requests = scored() if method == "loglikelihood" else generated(3, ENDLESS)
    capsys.readouterr()
    getattr(model, method)(requests)
    bars = capsys.readouterr().err.split("\r")
    before_first_answer = [bar for bar in bars if f" 0/{len(requests)} " in bar]
    for activity in ["Checking that prefixes can be shared: ", *activities]:
        assert any(bar.startswith(activity) for bar in before_first_answer), activity
    assert bars[-1].startswith(f"Running {method} requests: 100%")


def test_requests_that_are_left_to_hf_leave_no_bar_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """hf shows a bar of its own; ours would stay at 0 %."""

    def generate_as_hf(*_: object, **__: object) -> list[str]:
        return ["hf's"] * 3

    monkeypatch.setattr(HFLM, "generate_until", generate_as_hf)
    _, model = build("llama", tmp_path)
    model.sharing = sharing.Sharing(model.sharing.engine, 1, "an obstacle")
    capsys.readouterr()
    assert model.generate_until(generated(3)) == ["hf's"] * 3
    *_, last_text = capsys.readouterr().err.strip("\r\n").split("\r")
    assert not last_text.strip(), "the bar is cleared"


class Hook:
    """A stand-in for lm-eval's partial cache that notes what is added.

    Attributes:
        logprobs: The log-probability of each request.
        answers: The text of each request, or whether its continuation is the most probable one.
    """

    def __init__(self) -> None:
        self.logprobs: dict[str, float] = {}
        self.answers: dict[str, str | bool] = {}

    def add_partial(
        self, request_type: str, arguments: object, answer: str | tuple[float, bool]
    ) -> None:
        key = f"{request_type} {arguments}"
        if isinstance(answer, str):
            self.answers[key] = answer
        else:
            self.logprobs[key], self.answers[key] = answer


def test_partial_results_are_cached_as_by_hf(tmp_path: Path) -> None:
    """The cache gets the same arguments and answers."""
    hooks = []
    for model in build("llama", tmp_path):
        model.cache_hook = Hook()
        model.loglikelihood(scored(), disable_tqdm=True)
        model.generate_until(generated(3), disable_tqdm=True)
        hooks.append(model.cache_hook)
    hook_of_hf, hook = hooks
    assert len(hook_of_hf.logprobs) == 6
    assert len(hook_of_hf.answers) == 9
    assert hook.logprobs == pytest.approx(hook_of_hf.logprobs, abs=prefix_models.NOISE)
    assert hook.answers == hook_of_hf.answers


def make_machine_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let groups be as small, and wait as soon, as where a pass takes minutes."""
    monkeypatch.setattr(passes, "READ_S", 0.0)
    monkeypatch.setattr(passes, "BLOCK", 1)
    monkeypatch.setattr(growing, "PATIENCE_S", -1.0)


@pytest.mark.parametrize("method", ["loglikelihood", "generate_until"])
def test_a_slow_machine_stores_answers_before_it_has_read_all_prompts(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption at the fourth group loses no answer of those before it, and the evaluation
    that goes on has the same texts."""
    _, model = build("llama", tmp_path)
    prompts = few_shot(8)
    if method == "loglikelihood":
        requests = scoring_requests(prompts, [" 7"])
    else:
        requests = text_requests(prompts, ENDLESS)
    expected = getattr(model, method)(requests, disable_tqdm=True)
    make_machine_slow(monkeypatch)
    read = Engine.read
    groups: list[int] = []

    def read_or_interrupt(self: Engine, slots: Slots, *rest: Any) -> Iterator[torch.Tensor]:
        groups.append(slots.size)
        if len(groups) == 4:
            raise KeyboardInterrupt
        return read(self, slots, *rest)

    model.cache_hook = hook = Hook()
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "read", read_or_interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, method)(requests, disable_tqdm=True)
    assert len(hook.answers) == 3, "an answer for each group that was complete"
    remaining = []
    remaining_answers = []
    for request, answer in zip(requests, expected, strict=True):
        if f"{method} {request.args}" not in hook.answers:
            remaining.append(request)
            remaining_answers.append(answer)
    assert len(remaining) == len(requests) - 3
    answers = getattr(model, method)(remaining, disable_tqdm=True)
    if method == "loglikelihood":
        logprobs = [logprob for logprob, _ in answers]
        expected_logprobs = [logprob for logprob, _ in remaining_answers]
        assert logprobs == pytest.approx(expected_logprobs, abs=prefix_models.NOISE)
    else:
        assert answers == remaining_answers


def test_progress_counts_the_tokens_of_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of a few prompts does not look like all that there is to read."""
    _, model = build("llama", tmp_path)
    model.generate_until(text_requests(few_shot(2), ENDLESS), disable_tqdm=True)
    make_machine_slow(monkeypatch)
    prompts = few_shot(8)
    total = count_prefixes(model.tok_encode(prompt) for prompt in prompts)
    activities: list[str] = []
    monkeypatch.setattr(RequestsBar, "describe", lambda _, activity: activities.append(activity))
    model.generate_until(text_requests(prompts, ENDLESS), disable_tqdm=True)
    read = [text for text in activities if text.startswith("Reading prompts")]
    assert len(read) == len(prompts)
    assert len(set(read)) == len(prompts), "the number grows from group to group"
    assert all(text.endswith(f" of {total:,} tokens") for text in read)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_every_distinct_token_is_computed_once(
    batch_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are counted pass by pass; the usual attention is put back."""
    _, model = build("llama", tmp_path, batch_size=batch_size)
    usual_attention = model.model.config._attn_implementation
    prompts = few_shot(24)
    pairs = scoring_requests(prompts, [" 7"])
    model.loglikelihood(pairs, disable_tqdm=True)  # the check is made once
    distinct_in_prompts = count_prefixes(model.tok_encode(prompt) for prompt in prompts)
    distinct_in_pairs = count_prefixes(model.tok_encode(prompt + " 7")[:-1] for prompt in prompts)
    counts: list[int] = []
    forward = Engine.forward

    def forward_and_count(
        self: Engine, tokens: IntArray, positions: IntArray, prefix_pass: Pass
    ) -> torch.Tensor:
        counts.append(len(tokens))
        return forward(self, tokens, positions, prefix_pass)

    monkeypatch.setattr(Engine, "forward", forward_and_count)
    model.generate_until(text_requests(prompts, ENDLESS), disable_tqdm=True)
    # After the prompts each step appends a token to all texts, whatever the batch size.
    texts = len(set(prompts))
    assert counts == [distinct_in_prompts, texts, texts, texts]
    counts.clear()
    model.loglikelihood(pairs, disable_tqdm=True)
    assert counts == [distinct_in_pairs]
    counts.clear()
    monkeypatch.setattr(sharing, "GROUP", 64)  # what groups have in common is kept
    model.loglikelihood(pairs, disable_tqdm=True)
    assert len(counts) > 5
    assert sum(counts) < 1.1 * distinct_in_pairs
    assert model.model.config._attn_implementation == usual_attention


def count_prefixes(sequences: Iterable[list[int]]) -> int:
    """Count the different beginnings of some sequences."""
    prefixes = set()
    for sequence in sequences:
        for end in range(1, len(sequence) + 1):
            prefixes.add(tuple(sequence[:end]))
    return len(prefixes)


@pytest.mark.parametrize("mebibytes", [0.05, 0.2, 1.0])
def test_a_bound_on_memory_holds(
    mebibytes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for all slots that exist at a time; a single prompt may exceed it. None is kept."""
    model = build_with_bound(tmp_path, mebibytes)
    prompts = few_shot(24)
    longest = max(prompts, key=len)
    prompts += [f"{longest} {number}" for number in range(200)]  # short leaves of a long path
    requests = text_requests(prompts, ENDLESS)
    expected = model.generate_until(requests, disable_tqdm=True)
    alive: WeakSet[Slots | Rows] = WeakSet()
    sizes: list[int] = []

    def note_sizes(kind: Any) -> None:
        initialize = kind.__init__

        def initialize_and_note(memory: Slots | Rows, *arguments: object) -> None:
            initialize(memory, *arguments)
            alive.add(memory)
            sizes.append(sum(each.size for each in alive))

        monkeypatch.setattr(kind, "__init__", initialize_and_note)

    note_sizes(Slots)
    note_sizes(Rows)
    assert model.generate_until(requests, disable_tqdm=True) == expected
    assert not any(memory.size for memory in alive)
    slot_bytes = model.sharing._slot_bytes
    longest_text = max(len(model.tok_encode(prompt)) for prompt in prompts) + LENGTH
    single_prompt = sharing.COPIES * longest_text * slot_bytes
    assert max(sizes) * slot_bytes <= max(mebibytes * (1 << 20), single_prompt)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_packed_only_while_texts_are_generated(dtype: str, tmp_path: Path) -> None:
    """Copies of all linear layers count towards the bound; the layers are as before afterwards."""
    if packed.lacks_instructions(getattr(torch, dtype)):
        pytest.skip(f"this processor has no instructions for {dtype}, so nothing is packed")
    _, model = build("llama", tmp_path, dtype=dtype)
    model.sharing.bound = 16 << 20
    modules = model.model.modules()
    layers = [module for module in modules if isinstance(module, torch.nn.Linear)]
    states = torch.ones(3, layers[0].in_features, dtype=layers[0].weight.dtype)
    before = layers[0](states)
    model.loglikelihood(scored(), disable_tqdm=True)
    assert model.sharing.engine.packed.nbytes == 0
    model.generate_until(generated(3), disable_tqdm=True)
    copied_bytes = model.sharing.engine.packed.nbytes
    assert copied_bytes == sum(layer.weight.nbytes for layer in layers)
    assert model.sharing.bound == (16 << 20) - copied_bytes
    assert not any("forward" in vars(layer) for layer in layers)
    assert torch.equal(layers[0](states), before)
    with pytest.raises(RuntimeError, match="stopped"), model.sharing.engine.packed.in_use():
        assert all("forward" in vars(layer) for layer in layers)
        raise RuntimeError("stopped")
    assert not any("forward" in vars(layer) for layer in layers)


@pytest.mark.parametrize(
    ("dtype", "machine", "is_supported", "is_slow"),
    [
        pytest.param("bfloat16", "x86_64", False, True, id="no instructions"),
        pytest.param("bfloat16", "x86_64", True, False, id="instructions"),
        pytest.param("float32", "x86_64", False, False, id="float32"),
        pytest.param("bfloat16", "aarch64", False, False, id="another processor"),
    ],
)
def test_a_dtype_that_the_processor_only_emulates_is_said_once_and_not_packed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    dtype: str,
    machine: str,
    is_supported: bool,
    is_slow: bool,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    operations = SimpleNamespace(_is_mkldnn_bf16_supported=lambda: is_supported)
    monkeypatch.setattr(torch.ops, "mkldnn", operations)
    _, model = build("llama", tmp_path, dtype=dtype)
    line = "hf-prefix: this processor has no instructions for bfloat16, so prompts take"
    if not is_slow:
        assert line not in caplog.text
        return
    model.generate_until(generated(3), disable_tqdm=True)
    assert caplog.text.count(line) == 1
    assert model.sharing.engine.packed.nbytes == 0


def multiply_and_cut(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "relu", [], "")
    return product


def fail_to_multiply(*_: object, **__: object) -> torch.Tensor:
    raise RuntimeError("could not create a primitive")


def lack_product(*_: object, **__: object) -> torch.Tensor:
    raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute")


@pytest.mark.parametrize(
    "change",
    ["little memory", "other processor", "wrong product", "failing product", "other torch"],
)
def test_weights_that_cannot_be_packed_stay_as_they_are(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Prefixes are shared all the same, with hf's answers."""
    both = build("llama", tmp_path)
    if change == "little memory":
        both[1].sharing.bound = 2000
    elif change == "other processor":
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    elif change == "wrong product":
        monkeypatch.setattr(packed, "_linear", multiply_and_cut)
    elif change == "failing product":
        monkeypatch.setattr(packed, "_linear", fail_to_multiply)
    else:
        monkeypatch.setattr(packed, "_linear", lack_product)
    same_logprobs(both, scored())
    same_texts(both, generated(3))
    assert both[1].sharing.engine.packed.nbytes == 0
    assert "hf-prefix" not in caplog.text


@pytest.mark.parametrize("bound", ["0", "-3", "much", "inf", 0, True])
def test_an_unusable_bound_is_refused_in_one_line(bound: object, tmp_path: Path) -> None:
    """The error names the option."""
    with pytest.raises(OptionError, match="prefix_cache_mb") as caught:
        build_with_bound(tmp_path, bound)
    assert "\n" not in str(caught.value)


def test_the_time_that_is_left_goes_by_the_average_not_by_the_last_burst() -> None:
    """A batch is answered at once: the pause before it is not the time of each of its answers."""
    bar = progress.RequestsBar("generate_until", 10, is_hidden=False)
    assert bar._bar.smoothing == 0
    bar.close()


def test_a_short_pass_does_not_count_as_the_speed() -> None:
    """The last pass of a group may have a few tokens, and take nearly as long as a full one."""
    speed = progress.ReadingSpeed()
    assert speed.tokens_per_second == math.inf
    speed.add(2000, 10.0)
    speed.add(3, 1.0)
    assert speed.tokens_per_second == pytest.approx(2003 / 11)
