"""``hf-prefix`` beside programs that a user could take instead, with the same weights.

Beside continuous batching (``generate_batch``, the engine of ``transformers serve``); beside
``llama-server`` where ``LLAMA_SERVER`` is its path and ``LLAMA_CPP`` llama.cpp's sources, whose
script writes the GGUF with a Python that has ``gguf`` and ``torch`` (``GGUF_PYTHON``); beside vLLM
with prefix caching where it is installed. None of these scores LIEDER's continuations: they give no
log-probabilities of a prompt, or ask the model once for each.
"""

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from bench.data import UnavailableError, originals
from bench.prefix import WORK, requests_of, save_model
from bench.rows import Row, in_turn

SHAPES = ((WORK[0], 24), (WORK[1], 8))
NEW_TOKENS = 8
ROOM = 4096
"""Tokens of a prompt and its text, at most."""

CONVERT = """
import runpy, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
import conversion.base
# It knows tokenizers by a digest of what they make of a text; this one splits words as GPT-2's.
conversion.base.TextModel.get_vocab_base_pre = lambda *_: "gpt-2"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0] + "/convert_hf_to_gguf.py", run_name="__main__")
"""

Answer = Callable[[], list[list[int]]]


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for each shape and peer."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    for work, size in SHAPES:
        originals(work.task.partition("_")[0])
        count = max(2, round(size * share))
        requests = requests_of(work.task, count, NEW_TOKENS)
        for _, (_, settings) in requests:
            settings["until"] = []  # each program ends texts in a way of its own
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            save_model(requests, folder, work.shape)
            model: Any = get_model("hf-prefix")(folder, device="cpu", batch_size=1)
            asked = [Instance(kind, {}, tuple(args), 0) for kind, args in requests]
            prompts = [model.tok_encode(args[0]) for _, args in requests]
            ours = partial(model.generate_until, asked, disable_tqdm=True)
            ours()
            for name, answer in peers(folder, prompts, model.model, stack):
                times, theirs, texts = in_turn(rounds, answer, ours)
                equal = sum(
                    model.tok_decode(one) == other for one, other in zip(theirs, texts, strict=True)
                )
                yield Row(
                    work=f"{work.title}, {NEW_TOKENS} new tokens",
                    size=count,
                    unit="requests",
                    baseline=name,
                    theirs=times[0],
                    ours=times[1],
                    same=f"{equal} of {count} texts identical ({name}, {work.title})",
                )


def peers(
    folder: str, prompts: list[list[int]], model: Any, stack: ExitStack
) -> Iterator[tuple[str, Answer]]:
    """Yields the programs that are here, and what generates with them."""
    yield "continuous batching", partial(continuous, model, prompts)
    if server := os.environ.get("LLAMA_SERVER"):
        for slots in (1, 4):
            url = stack.enter_context(llama_server(server, folder, slots))
            yield f"llama-server, {slots} slots", partial(completions, url, slots, prompts)
    if find_spec("vllm"):
        yield "vLLM, prefix caching", vllm(folder, prompts)


def continuous(model: Any, prompts: list[list[int]]) -> list[list[int]]:
    """Generates with transformers' continuous batching."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    found = model.generate_batch(
        prompts,
        generation_config=GenerationConfig(
            max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=-1
        ),
        # More is not needed, and clearing most of the memory would take most of the time.
        continuous_batching_config=ContinuousBatchingConfig(max_memory_percent=0.1),
    )
    return [found[f"req_{number}"].generated_tokens for number in range(len(prompts))]


def vllm(folder: str, prompts: list[list[int]]) -> Answer:
    """Loads vLLM, for a machine with a GPU."""
    library = import_module("vllm")  # no extra of ours: it needs a GPU
    engine = library.LLM(folder, enable_prefix_caching=True)
    settings = library.SamplingParams(temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True)
    asked = [{"prompt_token_ids": one} for one in prompts]
    return lambda: [list(one.outputs[0].token_ids) for one in engine.generate(asked, settings)]


@contextmanager
def llama_server(program: str, folder: str, slots: int) -> Iterator[str]:
    """Runs a server with the weights as a GGUF in float32; yields its address."""
    file = Path(folder, "model.gguf")
    if not file.exists():
        python = [os.environ["GGUF_PYTHON"], "-c", CONVERT, os.environ["LLAMA_CPP"], folder]
        subprocess.run([*python, "--outtype", "f32", "--outfile", str(file)], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["-c", slots * ROOM, "-np", slots, "-fa", "off", "--port", port]
    kinds = ["--cache-type-k", "f32", "--cache-type-v", "f32"]
    command = [program, "-m", file, *options, *kinds]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            while True:
                try:
                    urlopen(f"{url}/health", timeout=60).close()
                    break
                except URLError as error:
                    if process.poll() is not None:
                        raise UnavailableError(f"{program} ended") from error
                    time.sleep(0.2)
            yield url
        finally:
            process.terminate()


def completions(url: str, slots: int, prompts: list[list[int]]) -> list[list[int]]:
    """Asks a server, as many prompts at a time as it has slots."""

    def one(prompt: list[int]) -> list[int]:
        asked = {
            "prompt": prompt, "n_predict": NEW_TOKENS, "temperature": 0, "cache_prompt": True,
            "ignore_eos": True, "return_tokens": True,
        }  # fmt: skip
        request = Request(f"{url}/completion", json.dumps(asked).encode())
        with urlopen(request, timeout=600) as reply:
            tokens: list[int] = json.load(reply)["tokens"]
        return tokens

    with ThreadPoolExecutor(slots) as pool:
        return list(pool.map(one, prompts))
