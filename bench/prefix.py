"""``hf-prefix`` beside ``hf``: the same requests, each model in a process of its own."""

import json
import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.data import originals
from bench.rows import DifferError, Row, in_turn


@dataclass(frozen=True)
class Work:
    """Requests of a task.

    Attributes:
        task: Its name.
        title: Its name in the table.
        size: How many requests.
        batch: The batch size at which ``hf`` was fastest, of 1, 2, 4 ... 128.
        new_tokens: Most tokens of a generated text; 0 where probabilities are requested.
        times: Multiplies the rounds, for work of a second or two, which varies more.
        shape: Of the random model, as :func:`save_model` knows it.
    """

    task: str
    title: str
    size: int
    batch: int
    new_tokens: int = 0
    times: int = 1
    shape: str = "llama"


LIEDER = Work("lieder_base", "LIEDER base", 576, 16, times=3)
WORK = (
    Work("magnifico_desc_plausible", "MAGNIFICo, description", 384, 4, 24),
    Work("magnifico_fewshot_plausible", "MAGNIFICo, few-shot", 96, 1, 24),
    LIEDER,
    replace(LIEDER, title="LIEDER base, GPT-2's shape", shape="gpt2"),
)

NOISE = 1e-4
"""Largest difference of log-probabilities."""
LEAST_DISTINCT = 0.4
"""Share of the answers: equal texts prove little if a model answers every prompt alike."""
VOCABULARY, SEED = 4096, 7


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for each task and batch size."""
    for work in WORK:
        originals(work.task.partition("_")[0])
        count = max(2, round(work.size * share))
        requests = requests_of(work.task, count, work.new_tokens)
        with tempfile.TemporaryDirectory() as folder:
            save_model(requests, folder, work.shape)
            limit = _sharing(requests, folder)
            spawn = multiprocessing.get_context("spawn")
            theirs, ours = (
                ProcessPoolExecutor(1, spawn, _load, (kind, folder, requests))
                for kind in ("hf", "hf-prefix")
            )
            with theirs, ours:
                for pool in (theirs, ours):
                    pool.submit(int).result()  # loads its model
                asked = (partial(_asked, pool, work.batch) for pool in (theirs, ours))
                times, one, other = in_turn(rounds * work.times, *asked)
                more = f", {work.new_tokens} new tokens" if work.new_tokens else ""
                yield Row(
                    work=work.title + more,
                    size=count,
                    unit="requests",
                    baseline=f"hf, batch size {work.batch}",
                    theirs=times[0],
                    ours=times[1],
                    same=_checked(work.title, one[0], other[0]),
                    limit=limit,
                    peak=[one[1], other[1]],
                    note="; ".join(other[2]),
                )


def _checked(title: str, one: list[Any], other: list[Any]) -> str:
    """In which respect answers are the same.

    Raises:
        DifferError: They differ, or are too much alike to prove anything.
    """
    if not same(one, other):
        raise DifferError(f"{title}: the answers of hf and hf-prefix differ")
    distinct = len({json.dumps(answer) for answer in one})
    if distinct < len(one) * LEAST_DISTINCT:
        raise DifferError(f"{title}: only {distinct} of {len(one)} answers are distinct")
    return "texts identical" if isinstance(one[0], str) else f"log-probabilities within {NOISE:g}"


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether texts are equal, or log-probabilities within noise with equal greedy flags."""
    if isinstance(one[0], str):
        return one == other
    return all(abs(a - b) < NOISE and x == y for (a, x), (b, y) in zip(one, other, strict=True))


_loaded: tuple[Any, str, list[Any]]
"""Of a model's process: the model, its method, the requests."""


def _load(kind: str, folder: str, requests: list[Any]) -> None:
    global _loaded  # noqa: PLW0603 - what an initializer leaves to the calls in its process
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    model: Any = get_model(kind)(folder, device="cpu", batch_size=1)
    instances = [Instance(type_, {}, tuple(args), 0) for type_, args in requests]
    _loaded = model, requests[0][0], instances
    # The first call of a kernel costs more than others.
    getattr(model, requests[0][0])(instances[:2], disable_tqdm=True)
    if sharing := getattr(model, "sharing", None):
        sharing._said.clear()  # two requests are too few for a remark; the next run makes its own


def _asked(pool: ProcessPoolExecutor, batch_size: int) -> tuple[list[Any], float, list[str]]:
    return pool.submit(_answer, batch_size).result()


def _answer(batch_size: int) -> tuple[list[Any], float, list[str]]:
    """Answers all requests; returns the answers, the peak of memory in MiB, and remarks."""
    model, method, instances = _loaded
    model.batch_size_per_gpu = batch_size
    answers = getattr(model, method)(instances, disable_tqdm=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sharing = getattr(model, "sharing", None)
    return answers, peak, sorted(sharing._said) if sharing else []


def requests_of(task: str, count: int, new_tokens: int, folder: str = "") -> list[Any]:
    """Returns the first requests of a task as ``[type, arguments]``.

    Args:
        task: Its name.
        count: How many; fewer if it has fewer.
        new_tokens: Most tokens of a generated text.
        folder: The folder of its YAML, if it is not one of ours.
    """
    from lm_eval_ext.runs.tasks import own_manager

    loaded = own_manager([folder] if folder else [], {}).load([task])["tasks"][task]
    loaded.build_all_requests(rank=0, world_size=1)
    found = loaded.instances[:count]
    for one in found:
        if one.request_type == "generate_until":
            one.arguments = (one.args[0], {**one.args[1], "max_gen_toks": new_tokens})
    return [[one.request_type, one.args] for one in found]


def save_model(requests: list[Any], folder: str, shape: str = "llama") -> None:
    """Saves a random model with a BPE of the requests.

    The shape is ``llama``, or ``gpt2`` (learned positions, full attention heads); both have six
    layers of width 256 and about 6 million parameters.
    """
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    torch.manual_seed(SEED)
    core = ByteLevelBPETokenizer()
    core.train_from_iterator(
        [_text(args) for _, args in requests][::8], VOCABULARY, special_tokens=["<pad>", "</s>"],
        show_progress=False,
    )  # fmt: skip
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=core._tokenizer, pad_token="<pad>", eos_token="</s>", model_max_length=8192
    ).save_pretrained(folder)
    shared = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    config: Any = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=704, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=8192, **shared,
    )  # fmt: skip
    if shape == "gpt2":
        config = transformers.GPT2Config(
            n_embd=256, n_layer=6, n_head=8, n_positions=1024, **shared
        )
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)  # with the initial ones it answers every prompt nearly alike
    model.save_pretrained(folder)


def _sharing(requests: list[Any], folder: str) -> float:
    """Returns the limit: tokens per token that must be read once prefixes are shared."""
    import transformers

    from lm_eval_ext.models.prefix.tree import grow, ratio

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = (tokenizer.encode(_text(args)) for _, args in requests)
    if requests[0][0] == "loglikelihood":
        read = (tokens[:-1] for tokens in read)  # the last one is only predicted
    return ratio(grow((number, tokens, 0) for number, tokens in enumerate(read)))


def _text(args: Any) -> str:
    return "".join(part for part in args if isinstance(part, str))
