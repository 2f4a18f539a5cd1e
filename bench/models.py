"""``hf-prefix`` beside ``hf`` and beside servers; lm-eval's start with this plugin and without."""

import json
import multiprocessing
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from bench.data import UnavailableError, originals
from bench.rows import DifferError, Row, Times, in_turn


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
    batch: int = 1
    new_tokens: int = 0
    times: int = 1
    shape: str = "llama"


BESIDE_HF = (
    Work("magnifico_desc_plausible", "MAGNIFICo, description, 24 new tokens", 384, 4, 24),
    Work("magnifico_fewshot_plausible", "MAGNIFICo, few-shot, 24 new tokens", 96, 1, 24),
    lieder := Work("lieder_base", "LIEDER base", 576, 16, times=3),
    replace(lieder, title="LIEDER base, GPT-2's shape", shape="gpt2"),
)
BESIDE_SERVERS = (
    Work("magnifico_desc_plausible", "MAGNIFICo, description, 8 new tokens", 24, 1, 8),
    Work("magnifico_fewshot_plausible", "MAGNIFICo, few-shot, 8 new tokens", 8, 1, 8),
    Work("lieder_base", "LIEDER base, 1 new token", 144, 1, 1),
)
"""Less, since some servers take seconds for each prompt; none of them scores a continuation."""
NOISE = 1e-4
"""Largest difference of log-probabilities."""
LEAST_DISTINCT = 0.4
"""Share of the answers: equal texts prove little if a model answers every prompt alike."""


def prefix(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for each piece of work: ``hf`` and ``hf-prefix``, each in its own process."""
    for work in BESIDE_HF:
        requests = requests_of(work, share)
        with tempfile.TemporaryDirectory() as folder:
            save_model(requests, folder, work.shape)
            spawn = multiprocessing.get_context("spawn")
            with (
                ProcessPoolExecutor(1, spawn, _load, ("hf", folder, work, requests)) as theirs,
                ProcessPoolExecutor(1, spawn, _load, ("hf-prefix", folder, work, requests)) as ours,
            ):
                theirs.submit(_warm).result()
                ours.submit(_warm).result()
                times, one, other = in_turn(
                    rounds * work.times,
                    lambda: theirs.submit(_answer).result(),
                    lambda: ours.submit(_answer).result(),
                )
            if not same(one[0], other[0]):
                raise DifferError(f"{work.title}: the answers of hf and hf-prefix differ")
            distinct = len(set(one[0]))
            if distinct < LEAST_DISTINCT * len(requests):
                raise DifferError(f"{work.title}: only {distinct} answers of hf are distinct")
            equal = "texts identical" if work.new_tokens else f"log-probabilities within {NOISE:g}"
            sharing, peak = _sharing(requests, folder), [one[1], other[1]]
            hf = f"hf, batch size {work.batch}"
            yield Row(work.title, len(requests), hf, *times, equal, sharing, peak)


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether texts are equal, or log-probabilities within noise with equal greedy flags."""
    if isinstance(one[0], str):
        return one == other
    return all(abs(a - b) < NOISE and x == y for (a, x), (b, y) in zip(one, other, strict=True))


_loaded: tuple[Any, list[Any]]
"""Of a model's process: the model, the requests."""


def _load(kind: str, folder: str, work: Work, requests: list[Any]) -> None:
    global _loaded  # noqa: PLW0603 - what an initializer leaves to the calls in its process
    _loaded = model_of(kind, folder, work.batch), requests


def _warm() -> None:
    answers(_loaded[0], _loaded[1][:2])  # the first call of a kernel costs more than others


def _answer() -> tuple[list[Any], float]:
    """Returns all answers, and this process's peak of memory in MiB, without its parent's."""
    found, status = answers(*_loaded), Path("/proc/self/status").read_text(encoding="utf-8")
    return found, int(status.partition("VmHWM:")[2].split()[0]) / 1024


def model_of(kind: str, folder: str, batch: int = 1) -> Any:
    """Loads a model."""
    from lm_eval.api.registry import get_model

    model: Any = get_model(kind)
    return model(folder, device="cpu", batch_size=batch)


def answers(model: Any, requests: list[Any]) -> list[Any]:
    """Returns a model's answers to requests of one kind."""
    from lm_eval.api.instance import Instance

    asked = [Instance(kind, {}, tuple(arguments), 0) for kind, arguments in requests]
    found: list[Any] = getattr(model, requests[0][0])(asked, disable_tqdm=True)
    return found


def requests_of(work: Work, share: float = 1, folder: str = "") -> list[Any]:
    """Returns the first requests of a task, ours or in the folder, as ``[type, arguments]``."""
    from lm_eval_ext.runs.tasks import our_task_manager

    if not folder:
        originals(work.task.partition("_")[0])
    task = our_task_manager([folder] if folder else [], {}).load([work.task])["tasks"][work.task]
    task.build_all_requests(rank=0, world_size=1)
    found = []
    for one in task.instances[: max(2, round(work.size * share))]:
        if one.request_type == "generate_until":
            one.arguments = (one.args[0], {**one.args[1], "max_gen_toks": work.new_tokens})
        found.append([one.request_type, one.args])
    return found


def save_model(requests: list[Any], folder: str, shape: str) -> None:
    """Saves a random model of six layers of width 256 with a BPE of the requests.

    The shape is ``llama``, or ``gpt2`` (learned positions, full attention heads).
    """
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    torch.manual_seed(7)
    texts, special = [_text(args) for _, args in requests[::8]], ["<pad>", "</s>"]
    core = ByteLevelBPETokenizer()
    core.train_from_iterator(texts, 4096, special_tokens=special, show_progress=False)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=core._tokenizer, pad_token="<pad>", eos_token="</s>", model_max_length=8192
    ).save_pretrained(folder)
    shared = {"vocab_size": 4096, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
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
    """Returns the tokens for each distinct one."""
    import transformers

    from lm_eval_ext.models.prefix.tree import build_tree, sharing_ratio

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # The last token of a continuation is only predicted.
    end = -1 if requests[0][0] == "loglikelihood" else None
    tokens = [tokenizer.encode(_text(args))[:end] for _, args in requests]
    return sharing_ratio(build_tree((number, one, 0) for number, one in enumerate(tokens)))


def _text(args: Any) -> str:
    return "".join(part for part in args if isinstance(part, str))


def peers(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for each piece of work and server.

    ``BENCH_SERVERS`` has a line ``NAME: COMMAND`` for each server; ``{model}`` in the command is
    the folder with the model, ``{port}`` the port at which it answers as OpenAI's completions do.
    """
    servers = os.environ.get("BENCH_SERVERS", "").strip().splitlines()
    if not servers:
        raise UnavailableError("BENCH_SERVERS has no commands (see docs/measurements.md)")
    for work in BESIDE_SERVERS:
        settings = {"until": [], "max_gen_toks": work.new_tokens}
        requests = [
            ["generate_until", (_text(args), settings)] for _, args in requests_of(work, share)
        ]
        with tempfile.TemporaryDirectory() as folder:
            save_model(requests, folder, work.shape)
            ours = partial(answers, model_of("hf-prefix", folder), requests)
            ours()
            for name, _, command in (line.partition(":") for line in servers):
                times: Times = ([], [])
                for _ in range(rounds * work.times):
                    with served(command, folder) as url:  # anew: it remembers prompts
                        completions(url, folder, [["", ("Hello", settings)]])
                        found, one, other = in_turn(
                            1, partial(completions, url, folder, requests), ours
                        )
                    for kept, new in zip(times, found, strict=True):
                        kept.extend(new)
                # Bytes that are no text are written in different ways.
                pairs = [
                    [text.replace("�", "") for text in pair]
                    for pair in zip(one, other, strict=True)
                ]
                same = sum(a == b for a, b in pairs)
                equal = f"{same} of {len(pairs)} texts identical ({name}, {work.title})"
                if same == len(pairs):
                    equal = "texts identical"
                yield Row(work.title, len(requests), name, *times, equal)


@contextmanager
def served(command: str, folder: str) -> Iterator[str]:
    """Runs a server on a free port; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [word.format(model=folder, port=port) for word in shlex.split(command)]
    null = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=null, stderr=null) as process:
        try:
            while process.poll() is None:
                try:
                    urlopen(f"http://127.0.0.1:{port}/health", timeout=60).close()
                    break
                except URLError:
                    time.sleep(0.2)
            else:
                raise UnavailableError(f"a server ended: {command.strip()}")
            yield f"http://127.0.0.1:{port}/v1/completions"
        finally:
            process.terminate()


def completions(url: str, folder: str, requests: list[Any]) -> list[str]:
    """Asks a server for texts, 32 at a time."""

    def one(request: Any) -> str:
        prompt, settings = request[1]
        body = {"model": folder, "prompt": prompt, "max_tokens": settings["max_gen_toks"]}
        data = json.dumps(body | {"temperature": 0}).encode()
        asked = Request(url, data, {"Content-Type": "application/json"})
        with urlopen(asked, timeout=600) as reply:
            text: str = json.load(reply)["choices"][0]["text"]
        return text

    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(one, requests))


STOCK_TASK = """task: stock
dataset_path: json
dataset_kwargs: {{data_files: {{test: {}}}}}
test_split: test
output_type: loglikelihood
target_delimiter: ""
doc_to_text: context
doc_to_target: continuation
metric_list: [{{metric: acc}}]
metadata: {{version: 1}}
"""


def start(rounds: int, _share: float) -> Iterator[Row]:
    """Yields a row: lm-eval's start, beside a task of its own with the same requests."""
    requests = [args for _, args in requests_of(Work("lieder_mini", "", 1 << 30))]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        lines = (json.dumps({"context": one, "continuation": two}) for one, two in requests)
        (folder / "requests.jsonl").write_text("\n".join(lines), encoding="utf-8")
        task = STOCK_TASK.format(folder / "requests.jsonl")
        (folder / "stock.yaml").write_text(task, encoding="utf-8")
        found = requests_of(Work("stock", "", len(requests)), folder=temporary)
        if [args for _, args in found] != requests:
            raise DifferError("the stock task has other requests")
        stock = partial(until_first_request, "stock", folder, LM_EVAL_EXT_AUTOLOAD="0")
        stock()  # fills the cache of its data
        times, _, _ = in_turn(rounds, stock, partial(until_first_request, "lieder_mini", folder))
    baseline = "a stock task with the same requests in a JSON file, without this plugin"
    yield Row("lm_eval --tasks lieder_mini, to the first request", len(requests), baseline, *times)


def until_first_request(task: str, folder: Path, **environment: str) -> None:
    """Starts ``lm_eval`` and stops it when it has requests for the model."""
    program = str(Path(sys.executable).with_name("lm_eval"))
    command = [program, "--model", "dummy", "--tasks", task]
    # No hub is asked for anything, and modules are kept compiled, as pip installs them.
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "HF_DATASETS_CACHE": str(folder / "cache")}
    command += ["--include_path", str(folder)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        said = []
        for line in process.stderr or ():
            said.append(line)
            if "Running loglikelihood requests" in line:  # just before the model has them
                process.kill()
                return
    sys.exit(f"lm_eval sent no request: {''.join(said[-5:])}")
