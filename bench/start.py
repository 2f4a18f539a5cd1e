"""Time until the first request, beside a stock task; and what the start-up hook adds."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.data import originals
from bench.prefix import requests_of
from bench.rows import DifferError, Row, in_turn

TASK, STOCK = "magnifico_desc_plausible", "stock"
SIZES = (96, 192, 384)
STARTS = 10

FIRST_REQUEST = "Running generate_until requests"
"""What lm-eval logs just before it hands the requests to the model."""

START = """
import site
read = site.addpackage
def read_others(folder, name, known):
    return known if name == "lm_eval_ext_autoload.pth" else read(folder, name, known)
if {without}:
    site.addpackage = read_others
site.main()
"""
"""Python's start with ``-S``, then what that skips, with or without our start-up file."""

STOCK_TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {prompts}}}}}
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: answer
generation_kwargs: {{until: ["\\n\\n"], do_sample: false}}
metric_list: [{{metric: exact_match}}]
metadata: {{version: 1}}
"""

BIN = Path(sys.executable).parent
# No hub is asked for anything, and modules are kept compiled, as pip installs them.
ENVIRONMENT = {
    **os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "",
}  # fmt: skip


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields rows for the hook, for a first request, and for ``lm-eval-ext run``."""
    yield start_of_python(rounds)
    originals("magnifico")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_stock_task(folder)
        for size in (max(2, round(size * share)) for size in SIZES):
            both = (partial(until_first_request, task, size, folder) for task in (STOCK, TASK))
            times, _, _ = in_turn(rounds, *both)
            work = f"lm_eval --tasks {TASK}, to the first request"
            baseline = "a stock task with the same prompts in a JSON file"
            yield Row(work, size, "documents", baseline, *times)
        yield run(folder, rounds)


def start_of_python(rounds: int) -> Row:
    """Python itself, which reads our start-up file at every start."""

    def start(*, without: bool) -> None:
        for _ in range(STARTS):
            call([sys.executable, "-S", "-c", START.format(without=without)])

    times, _, _ = in_turn(rounds, lambda: start(without=True), lambda: start(without=False))
    return Row("Python", STARTS, "starts", "without our start-up file", *times)


def run(folder: Path, rounds: int) -> Row:
    """``lm-eval-ext run``, which indexes only what it uses, from start to end."""
    model = folder / "dummy.yaml"
    model.write_text("model: dummy\n", encoding="utf-8")
    asked = ["--tasks", "lieder_mini", "--limit", "1"]
    lm_eval = [str(BIN / "lm_eval"), "--model", "dummy", "--log_samples", *asked, "--output_path"]
    ours = [str(BIN / "lm-eval-ext"), "run", "--models", str(model), *asked, "--output"]
    outputs = (str(folder / f"output-{number}") for number in range(2 * rounds))
    times, _, _ = in_turn(
        rounds, lambda: call([*lm_eval, next(outputs)]), lambda: call([*ours, next(outputs)])
    )
    return Row("lm-eval-ext run, start to end", 1, "document", "lm_eval", *times)


def write_stock_task(folder: Path) -> None:
    """Writes the same prompts as a plain YAML task of lm-eval, and fills its cache."""
    prompts = [prompt for _, (prompt, _) in requests_of(TASK, 1 << 30, 24)]
    file = folder / "prompts.jsonl"
    lines = (json.dumps({"prompt": prompt, "answer": "select 1"}) + "\n" for prompt in prompts)
    file.write_text("".join(lines), encoding="utf-8")
    text = STOCK_TASK.format(name=STOCK, prompts=file)
    (folder / f"{STOCK}.yaml").write_text(text, encoding="utf-8")
    if [prompt for _, (prompt, _) in requests_of(STOCK, 1 << 30, 24, str(folder))] != prompts:
        raise DifferError("the stock task has other prompts")
    until_first_request(STOCK, 1, folder)


def until_first_request(task: str, limit: int, folder: Path) -> None:
    """Starts ``lm_eval`` and stops it when it has requests for the model."""
    command = [str(BIN / "lm_eval"), "--model", "dummy", "--tasks", task, "--limit", str(limit)]
    process = subprocess.Popen(
        [*command, "--include_path", str(folder)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
        env={**ENVIRONMENT, "HF_DATASETS_CACHE": str(folder / "cache")},
    )  # fmt: skip
    said = []
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if FIRST_REQUEST in line:
                process.kill()
                return
    sys.exit(f"lm_eval sent no request: {''.join(said[-5:])}")


def call(command: Sequence[str]) -> None:
    """Runs a command; exits if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
