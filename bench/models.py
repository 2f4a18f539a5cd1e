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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.error import URLError
from urllib.request import Request, urlopen

from bench.data import UnavailableError, originals
from bench.rows import DifferError, Measured, Row, in_turn


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
    Work("lieder_base", "LIEDER base", 576, 16, times=3),
    Work("lieder_base", "LIEDER base, GPT-2's shape", 576, 16, times=3, shape="gpt2"),
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

_VOCABULARY = 4096
_THREADS = 32
_NO_LIMIT = 1 << 30
_UNDECODABLE = "\N{REPLACEMENT CHARACTER}"


Answer: TypeAlias = "str | tuple[float, bool]"
"""A text, or a log-probability with a greedy flag."""


class ModelRequest(NamedTuple):
    """A request of lm-eval.

    Attributes:
        method: Its type, which is the name of a model's method.
        arguments: A context and a continuation, or a prompt and settings.
    """

    method: str
    arguments: tuple[Any, ...]

    @property
    def text(self) -> str:
        """The whole text, without settings."""
        return "".join(text for text in self.arguments if isinstance(text, str))


class Answered(NamedTuple):
    """A model's answers.

    Attributes:
        answers: One for each request.
        peak: The process's largest memory in MiB, without its parent's.
    """

    answers: list[Answer]
    peak: float


def prefix(rounds: int, share: float) -> Iterator[Row]:
    """Yield a row for each piece of work: ``hf`` and ``hf-prefix``, each in its own process."""
    for work in BESIDE_HF:
        requests = requests_of(work, share)
        with tempfile.TemporaryDirectory() as folder:
            save_model(requests, folder, work.shape)
            measured = _measure_beside_hf(work, folder, requests, rounds * work.times)
            sharing = _sharing(requests, folder)
        theirs, ours = measured.their_result, measured.our_result
        if not same(theirs.answers, ours.answers):
            raise DifferError(f"{work.title}: the answers of hf and hf-prefix differ")
        distinct = len(set(theirs.answers))
        if distinct < LEAST_DISTINCT * len(requests):
            raise DifferError(f"{work.title}: only {distinct} answers of hf are distinct")
        comparison = f"log-probabilities within {NOISE:g}"
        if work.new_tokens:
            comparison = "texts identical"
        yield Row(
            work=work.title,
            size=len(requests),
            baseline=f"hf, batch size {work.batch}",
            theirs=measured.theirs,
            ours=measured.ours,
            same=comparison,
            sharing=sharing,
            peak=[theirs.peak, ours.peak],
        )


def _measure_beside_hf(
    work: Work, folder: str, requests: list[ModelRequest], rounds: int
) -> Measured[Answered]:
    """Measure ``hf`` and ``hf-prefix``, each in its own process."""
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, spawn, _load, ("hf", folder, work, requests)) as theirs,
        ProcessPoolExecutor(1, spawn, _load, ("hf-prefix", folder, work, requests)) as ours,
    ):
        theirs.submit(_warm).result()
        ours.submit(_warm).result()
        return in_turn(
            rounds,
            lambda: theirs.submit(_answer).result(),
            lambda: ours.submit(_answer).result(),
        )


def same(theirs: Sequence[Answer], ours: Sequence[Answer]) -> bool:
    """Return whether texts are equal, or log-probabilities within noise with equal flags."""
    for their_answer, our_answer in zip(theirs, ours, strict=True):
        if not _is_same(their_answer, our_answer):
            return False
    return True


def _is_same(theirs: Answer, ours: Answer) -> bool:
    if isinstance(theirs, str) or isinstance(ours, str):
        return theirs == ours
    their_logprob, their_flag = theirs
    our_logprob, our_flag = ours
    return abs(their_logprob - our_logprob) < NOISE and their_flag == our_flag


_loaded: tuple[Any, list[ModelRequest]]
"""The model of a process, and the requests that it answers."""


def _load(model_type: str, folder: str, work: Work, requests: list[ModelRequest]) -> None:
    global _loaded  # noqa: PLW0603 - what an initializer leaves to the calls in its process
    _loaded = model_of(model_type, folder, work.batch), requests


def _warm() -> None:
    model, requests = _loaded
    answers(model, requests[:2])  # the first call of a kernel costs more than others


def _answer() -> Answered:
    model, requests = _loaded
    model_answers = answers(model, requests)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    return Answered(model_answers, peak_kib / 1024)


def model_of(
    model_type: str, folder: str, batch: int = 1, *, device: str = "cpu", **options: object
) -> Any:
    """Load a model."""
    from lm_eval.api.registry import get_model

    model_class = get_model(model_type)
    return model_class(folder, device=device, batch_size=batch, **options)


def answers(model: Any, requests: Sequence[ModelRequest]) -> list[Answer]:
    """Return a model's answers to requests of one type."""
    from lm_eval.api.instance import Instance

    instances = [Instance(request.method, {}, request.arguments, 0) for request in requests]
    method = getattr(model, requests[0].method)
    model_answers: list[Answer] = method(instances, disable_tqdm=True)
    return model_answers


def texts(model: Any, requests: list[ModelRequest]) -> list[str]:
    """Return the texts that a model writes."""
    return [str(answer) for answer in answers(model, requests)]


def requests_of(work: Work, share: float = 1, folder: str = "") -> list[ModelRequest]:
    """Return the first requests of a task, ours or in the folder."""
    from lm_eval_ext.runs.tasks import our_task_manager

    task_folders = []
    if folder:
        task_folders.append(folder)
    elif not work.task.endswith("_mini"):
        originals(work.task.partition("_")[0])
    manager = our_task_manager(task_folders, {})
    task = manager.load([work.task])["tasks"][work.task]
    task.build_all_requests(rank=0, world_size=1)
    requests = []
    for instance in task.instances[: max(2, round(work.size * share))]:
        arguments = instance.args
        if instance.request_type == "generate_until":
            prompt, settings = arguments
            arguments = (prompt, {**settings, "max_gen_toks": work.new_tokens})
        requests.append(ModelRequest(instance.request_type, tuple(arguments)))
    return requests


def save_model(requests: list[ModelRequest], folder: str, shape: str) -> None:
    """Save a random model of six layers of width 256 with a BPE of the requests.

    The shape is ``llama``, or ``gpt2`` (learned positions, full attention heads).
    """
    import torch
    import transformers

    torch.manual_seed(7)
    _save_tokenizer([request.text for request in requests[::8]], folder)
    model = transformers.AutoModelForCausalLM.from_config(_model_config(shape))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)  # with the initial ones it answers every prompt nearly alike
    model.save_pretrained(folder)


def _save_tokenizer(prompts: list[str], folder: str) -> None:
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    core = ByteLevelBPETokenizer()
    core.train_from_iterator(
        prompts, _VOCABULARY, special_tokens=["<pad>", "</s>"], show_progress=False
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=core._tokenizer, pad_token="<pad>", eos_token="</s>", model_max_length=8192
    ).save_pretrained(folder)


def _model_config(shape: str) -> Any:
    import transformers

    tokens = {"vocab_size": _VOCABULARY, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    if shape == "gpt2":
        return transformers.GPT2Config(n_embd=256, n_layer=6, n_head=8, n_positions=1024, **tokens)
    return transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=8192,
        **tokens,
    )


def _sharing(requests: list[ModelRequest], folder: str) -> float:
    """Return the tokens for each distinct one."""
    import transformers

    from lm_eval_ext.models.prefix.tree import build_tree, sharing_ratio

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    # The last token of a continuation is only predicted.
    end = None
    if requests[0].method == "loglikelihood":
        end = -1
    sequences = []
    for number, request in enumerate(requests):
        sequences.append((number, tokenizer.encode(request.text)[:end], 0))
    return sharing_ratio(build_tree(sequences))


def peers(rounds: int, share: float) -> Iterator[Row]:
    """Yield a row for each piece of work and server.

    ``BENCH_SERVERS`` has a line ``NAME: COMMAND`` for each server; ``{model}`` in the command is
    the folder with the model, ``{port}`` the port at which it answers as OpenAI's completions do.
    """
    servers = server_commands()
    if not servers:
        raise UnavailableError("BENCH_SERVERS has no commands (see docs/measurements.md)")
    for work in BESIDE_SERVERS:
        settings = {"until": [], "max_gen_toks": work.new_tokens}
        requests = []
        for request in requests_of(work, share):
            requests.append(ModelRequest("generate_until", (request.text, settings)))
        with tempfile.TemporaryDirectory() as folder:
            save_model(requests, folder, work.shape)
            ours = partial(texts, model_of("hf-prefix", folder), requests)
            ours()
            for name, command in servers:
                measured = _measure_beside_server(
                    command, folder, requests, ours, rounds * work.times
                )
                yield _server_row(work, name, measured)


def server_commands() -> list[tuple[str, str]]:
    """Return name and command of each server in ``BENCH_SERVERS``."""
    servers = []
    for line in os.environ.get("BENCH_SERVERS", "").strip().splitlines():
        name, _, command = line.partition(":")
        servers.append((name, command))
    return servers


def _measure_beside_server(
    command: str,
    folder: str,
    requests: list[ModelRequest],
    ours: Callable[[], list[str]],
    rounds: int,
) -> Measured[list[str]]:
    """Measure a server, which starts anew for each round since it remembers prompts."""
    warm_up = ModelRequest("generate_until", ("Hello", requests[0].arguments[1]))
    their_seconds: list[float] = []
    our_seconds: list[float] = []
    for _ in range(rounds):
        with served(command, folder) as url:
            completions(url, folder, [warm_up])
            measured = in_turn(1, partial(completions, url, folder, requests), ours)
        their_seconds += measured.theirs
        our_seconds += measured.ours
    return Measured(their_seconds, our_seconds, measured.their_result, measured.our_result)


def _server_row(work: Work, server: str, measured: Measured[list[str]]) -> Row:
    """Return the row of a server, with the number of texts that are identical."""
    count = len(measured.their_result)
    identical = count_identical(measured.their_result, measured.our_result)
    comparison = "texts identical"
    if identical < count:
        comparison = f"{identical} of {count} texts identical ({server}, {work.title})"
    return Row(work.title, count, server, measured.theirs, measured.ours, comparison)


def count_identical(their_texts: Sequence[str], our_texts: Sequence[str]) -> int:
    """Return how many texts are identical."""
    identical = 0
    for theirs, ours in zip(their_texts, our_texts, strict=True):
        # Bytes that are no text are written in different ways.
        identical += theirs.replace(_UNDECODABLE, "") == ours.replace(_UNDECODABLE, "")
    return identical


@contextmanager
def served(command: str, folder: str) -> Iterator[str]:
    """Run a server on a free port; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [word.format(model=folder, port=port) for word in shlex.split(command)]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not _answers_at(f"{address}/health"):
                if process.poll() is not None:
                    raise UnavailableError(f"a server ended: {command.strip()}")
                time.sleep(0.2)
            yield f"{address}/v1/completions"
        finally:
            process.terminate()


def _answers_at(url: str) -> bool:
    try:
        urlopen(url, timeout=60).close()
    except URLError:
        return False
    return True


def completions(
    url: str, folder: str, requests: Sequence[ModelRequest], threads: int = _THREADS
) -> list[str]:
    """Ask a server for texts, so many at a time."""

    def complete(request: ModelRequest) -> str:
        prompt, settings = request.arguments
        body = {
            "model": folder,
            "prompt": prompt,
            "max_tokens": settings["max_gen_toks"],
            "temperature": 0,
        }
        if settings["until"]:
            body["stop"] = settings["until"]
        data = json.dumps(body).encode()
        query = Request(url, data, {"Content-Type": "application/json"})
        with urlopen(query, timeout=600) as reply:
            text: str = json.load(reply)["choices"][0]["text"]
        return text

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(complete, requests))


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
    """Yield a row: lm-eval's start, beside a task of its own with the same requests."""
    requests = requests_of(Work("lieder_mini", "", _NO_LIMIT))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        lines = []
        for request in requests:
            context, continuation = request.arguments
            lines.append(json.dumps({"context": context, "continuation": continuation}))
        data_file = folder / "requests.jsonl"
        data_file.write_text("\n".join(lines), encoding="utf-8")
        task = STOCK_TASK.format(data_file)
        (folder / "stock.yaml").write_text(task, encoding="utf-8")
        stock_requests = requests_of(Work("stock", "", len(requests)), folder=temporary)
        stock_arguments = [request.arguments for request in stock_requests]
        if stock_arguments != [request.arguments for request in requests]:
            raise DifferError("the stock task has other requests")
        stock = partial(until_first_request, "stock", folder, LM_EVAL_EXT_AUTOLOAD="0")
        stock()  # fills the cache of its data
        measured = in_turn(rounds, stock, partial(until_first_request, "lieder_mini", folder))
    yield Row(
        work="lm_eval --tasks lieder_mini, to the first request",
        size=len(requests),
        baseline="a stock task with the same requests in a JSON file, without this plugin",
        theirs=measured.theirs,
        ours=measured.ours,
    )


def until_first_request(task: str, folder: Path, **environment: str) -> None:
    """Start ``lm_eval`` and stop it when it has requests for the model."""
    program = str(Path(sys.executable).with_name("lm_eval"))
    command = [program, "--model", "dummy", "--tasks", task, "--include_path", str(folder)]
    environment |= {
        # No hub is asked for anything, and modules are kept compiled, as pip installs them.
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "HF_DATASETS_CACHE": str(folder / "cache"),
    }
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ) as process:
        lines = []
        for line in process.stderr or ():
            lines.append(line)
            if "Running loglikelihood requests" in line:  # just before the model has them
                process.kill()
                return
    sys.exit(f"lm_eval sent no request: {''.join(lines[-5:])}")
