"""``hf-prefix`` on real models, beside ``hf``, continuous batching of transformers, and servers.

``BENCH_MODELS`` has the models' folders, separated by colons; ``BENCH_DEVICE`` and ``BENCH_DTYPE``
say where and how they run (``cpu`` and ``float32`` unless set). ``BENCH_SERVERS`` names servers as
:mod:`bench.models` reads it. Loading a model, packing weights, starting a server and two other
requests are the start; only what follows is the work.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

from bench.data import UnavailableError
from bench.models import (
    NOISE,
    Answer,
    ModelRequest,
    Work,
    answers,
    completions,
    count_identical,
    model_of,
    requests_of,
    served,
    server_commands,
)
from bench.rows import Row

WORKS = (
    Work("magnifico_mini", "MAGNIFICo mini, 48 new tokens", 96, new_tokens=48),
    Work("lieder_mini", "LIEDER mini", 576),
    Work("magnifico_fewshot_plausible", "MAGNIFICo, few-shot, 48 new tokens", 24, new_tokens=48),
)
BATCHES = (1, 4, 16)
"""Batch sizes of ``hf``; the one that is fastest on the first requests is measured."""

_TRIAL = 16
_THREADS = 128

Ask: TypeAlias = Callable[[Sequence[ModelRequest]], Sequence[Answer]]


@dataclass(frozen=True)
class Peer:
    """Something that answers requests.

    Attributes:
        name: For the table.
        start: Starts it, and yields what answers.
        scores: Whether it gives the log-probability of a continuation.
    """

    name: str
    start: Callable[[], AbstractContextManager[Ask]]
    scores: bool = False


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yield a row for each model, piece of work and peer."""
    folders = list(filter(None, os.environ.get("BENCH_MODELS", "").split(os.pathsep)))
    if not folders:
        raise UnavailableError("BENCH_MODELS names no model's folder (see docs/measurements.md)")
    for folder in folders:
        for work in WORKS:
            try:
                requests = requests_of(work, share)
            except UnavailableError as error:
                sys.stderr.write(f"real: {work.title}: not measured: {error}\n")
                continue
            for peer in _peers(folder, requests):
                try:
                    yield _row(folder, work, requests, peer, rounds)
                except (UnavailableError, RuntimeError) as error:
                    sys.stderr.write(f"real: {peer.name}: not measured: {error}\n")


def _peers(folder: str, requests: Sequence[ModelRequest]) -> list[Peer]:
    """Return all that is measured beside hf-prefix."""
    batch = _fastest_batch(folder, requests)
    peers = [Peer(f"hf, batch size {batch}", partial(_process, "hf", folder, batch), scores=True)]
    for name, command in server_commands():
        peers.append(Peer(name, partial(_server, command, folder)))
    peers.append(Peer("generate_batch", partial(_process, CONTINUOUS, folder)))
    return peers


def _fastest_batch(folder: str, requests: Sequence[ModelRequest]) -> int:
    """Return the batch size with which ``hf`` is fastest on the first requests."""
    seconds: dict[int, float] = {}
    for batch in BATCHES:
        with _process("hf", folder, batch) as ask:
            ask(_warm_up(requests))
            began = time.perf_counter()
            ask(requests[:_TRIAL])
            seconds[batch] = time.perf_counter() - began
    return min(seconds, key=seconds.__getitem__)


def _warm_up(requests: Sequence[ModelRequest]) -> list[ModelRequest]:
    """Return two requests that begin alike, and otherwise than all others."""
    warm_up = []
    for request in requests[:2]:
        text, *arguments = request.arguments
        warm_up.append(ModelRequest(request.method, (f"Hello. {text}", *arguments)))
    return warm_up


@dataclass
class Side:
    """What was measured of the peer, or of hf-prefix.

    Attributes:
        start: Starts it, and yields what answers.
        starts: Seconds until it had answered two other requests, round by round.
        seconds: Seconds of the work, round by round.
        answers: Its last answers.
    """

    start: Callable[[], AbstractContextManager[Ask]]
    starts: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    answers: Sequence[Answer] = ()

    def measure(self, requests: Sequence[ModelRequest]) -> None:
        """Start it, have it do the work, and end it: idle servers may keep a core busy."""
        began = time.perf_counter()
        with self.start() as ask:
            ask(_warm_up(requests))
            started = time.perf_counter()
            self.answers = ask(requests)
            ended = time.perf_counter()
        self.starts.append(started - began)
        self.seconds.append(ended - started)


def _row(folder: str, work: Work, requests: list[ModelRequest], peer: Peer, rounds: int) -> Row:
    """Measure a peer and hf-prefix in turn; both start anew, since servers remember prompts."""
    title = f"{Path(folder).name}: {work.title}"
    if not work.new_tokens and not peer.scores:
        # It gives no log-probabilities: the sentences are prompts, with one new token.
        title += " as prompts, 1 new token"
        settings = {"until": [], "max_gen_toks": 1}
        requests = [
            ModelRequest("generate_until", (request.text, settings)) for request in requests
        ]
    theirs = Side(peer.start)
    ours = Side(partial(_process, "hf-prefix", folder))
    for number in range(rounds):
        sides = [theirs, ours] if number % 2 == 0 else [ours, theirs]
        for side in sides:
            side.measure(requests)
    return Row(
        work=title,
        size=len(requests),
        baseline=peer.name,
        theirs=theirs.seconds,
        ours=ours.seconds,
        same=_compare(title, peer, theirs.answers, ours.answers),
        start=[median(theirs.starts), median(ours.starts)],
    )


def _compare(title: str, peer: Peer, theirs: Sequence[Answer], ours: Sequence[Answer]) -> str:
    """Return how the two results agree."""
    their_texts: list[str] = []
    our_texts: list[str] = []
    difference = 0.0
    for their_answer, our_answer in zip(theirs, ours, strict=True):
        if isinstance(their_answer, str) or isinstance(our_answer, str):
            their_texts.append(str(their_answer))
            our_texts.append(str(our_answer))
        else:
            difference = max(difference, abs(their_answer[0] - our_answer[0]))
    compared_with = f"({peer.name}, {title})"
    if our_texts:
        identical = count_identical(their_texts, our_texts)
        return f"{identical} of {len(our_texts)} texts identical {compared_with}"
    if difference < NOISE:
        return f"log-probabilities within {NOISE:g} {compared_with}"
    return f"log-probabilities up to {difference:.2g} apart {compared_with}"


CONTINUOUS = "continuous batching"
"""transformers' ``generate_batch``, which keeps keys and values in pages and shares prefixes."""

_ask: Ask
"""Of a model's process."""


@contextmanager
def _process(kind: str, folder: str, batch: int = 1) -> Iterator[Ask]:
    """Load a model in its own process; yield what asks it."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, _load, (kind, folder, batch)) as process:
        yield lambda requests: process.submit(_answer, requests).result()


def _load(kind: str, folder: str, batch: int) -> None:
    global _ask  # noqa: PLW0603 - what an initializer leaves to the calls in its process
    device = os.environ.get("BENCH_DEVICE", "cpu")
    dtype = os.environ.get("BENCH_DTYPE", "float32")
    if kind == CONTINUOUS:
        _ask = _continuous_batching(folder, device, dtype)
    else:
        _ask = partial(answers, model_of(kind, folder, batch, device=device, dtype=dtype))


def _answer(requests: Sequence[ModelRequest]) -> Sequence[Answer]:
    return _ask(requests)


def _continuous_batching(folder: str, device: str, dtype: str) -> Ask:
    """Load a model, and return what generates texts with ``generate_batch``."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="sdpa"
    ).to(device)

    def generate(requests: Sequence[ModelRequest]) -> list[str]:
        settings = requests[0].arguments[1]
        config = transformers.GenerationConfig(
            max_new_tokens=settings["max_gen_toks"],
            do_sample=False,
            eos_token_id=model.generation_config.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        prompts = [tokenizer.encode(request.text) for request in requests]
        outputs = model.generate_batch(
            prompts,
            config,
            # By default it takes nearly all memory that is free.
            transformers.ContinuousBatchingConfig(max_memory_percent=0.2),
        )
        if len(outputs) < len(prompts):
            raise RuntimeError(f"generate_batch gave {len(outputs)} of {len(prompts)} texts")
        texts = []
        # Their names end with their numbers.
        for name in sorted(outputs, key=lambda name: int(name.rpartition("_")[2])):
            text = tokenizer.decode(outputs[name].generated_tokens, skip_special_tokens=True)
            texts.append(_cut(text, settings["until"]))
        return texts

    return generate


def _cut(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first stop string; ``generate_batch`` knows none."""
    for stop in stops:
        text = text.partition(stop)[0]
    return text


@contextmanager
def _server(command: str, folder: str) -> Iterator[Ask]:
    """Start a server; yield what asks it."""
    with served(command, folder) as url:
        yield lambda requests: completions(url, folder, requests, _THREADS)
