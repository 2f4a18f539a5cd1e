"""Time until the first request, beside a stock task; and what the start-up hook adds."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import prefix_model
from bench.data import originals
from bench.rows import DifferError, Row, in_turn, turns

TASK = "magnifico_desc_plausible"
SIZES = (96, 192, 384)
STARTS = 10
OFF = {"LM_EVAL_EXT_AUTOLOAD": "0"}

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

INDEX = """
import time
import lm_eval.api.task
from lm_eval_ext._autoload import tasks_folder
began = time.perf_counter()
from lm_eval.tasks.manager import TaskManager
TaskManager({})
print(time.perf_counter() - began)
"""
OURS_ALONE = "include_defaults=False, include_path=tasks_folder()"

BIN = Path(sys.executable).parent
PROMPTS, STOCK = "prompts.jsonl", "stock"


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields rows for the hook, for a first request, and for ``lm-eval-ext run``."""
    yield start_of_python(rounds)
    yield index_of_tasks("lm-eval's index of all tasks", "", rounds)
    yield index_of_tasks("the index of our tasks alone", OURS_ALONE, rounds)
    originals("magnifico")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_stock_task(folder)
        yield hook(folder, rounds)
        for size in (max(2, round(size * share)) for size in SIZES):
            yield first_request(size, folder, rounds)
        yield run(folder, rounds)


def start_of_python(rounds: int) -> Row:
    """Python itself, which reads our start-up file at every start."""

    def start(*, without: bool) -> None:
        for _ in range(STARTS):
            call([sys.executable, "-S", "-c", START.format(without=without)], {})

    times, _, _ = in_turn(rounds, lambda: start(without=True), lambda: start(without=False))
    return Row("Python", STARTS, "starts", "without our start-up file", *times)


def index_of_tasks(work: str, arguments: str, rounds: int) -> Row:
    """An index of tasks with its imports, by the process's own clock.

    With the hook the index of all tasks includes ours.
    """
    times: tuple[list[float], list[float]] = ([], [])
    code = INDEX.format(arguments)
    for side in turns(rounds):
        times[side].append(float(call([sys.executable, "-c", code], (OFF, {})[side])))
    return Row(work, 1, "index", "the hook switched off", *times)


def hook(folder: Path, rounds: int) -> Row:
    """A stock task, to its first request, with and without the hook."""
    times, _, _ = in_turn(
        rounds,
        lambda: until_first_request(STOCK, 1, folder, OFF),
        lambda: until_first_request(STOCK, 1, folder, {}),
    )
    work = "lm_eval with a stock task, to the first request"
    return Row(work, 1, "document", "the hook switched off", *times)


def first_request(size: int, folder: Path, rounds: int) -> Row:
    """One of our tasks, and the same prompts as a stock task that reads them from a file."""
    times, _, _ = in_turn(
        rounds,
        lambda: until_first_request(STOCK, size, folder, {}),
        lambda: until_first_request(TASK, size, folder, {}),
    )
    work = f"lm_eval --tasks {TASK}, to the first request"
    baseline = "a stock task with the same prompts in a JSON file"
    return Row(work, size, "documents", baseline, *times)


def run(folder: Path, rounds: int) -> Row:
    """``lm-eval-ext run``, which indexes only what it uses, from start to end."""
    models = folder / "dummy.yaml"
    models.write_text("model: dummy\n", encoding="utf-8")
    number = iter(range(1000))

    def theirs() -> None:
        output = folder / f"lm_eval-{next(number)}"
        options = ["--log_samples", "--output_path", str(output)]
        call([str(BIN / "lm_eval"), *arguments("lieder_mini", 1), *options], {})

    def ours() -> None:
        output = folder / f"run-{next(number)}"
        options = ["--models", str(models), "--output", str(output)]
        command = [str(BIN / "lm-eval-ext"), "run", "--tasks", "lieder_mini", "--limit", "1"]
        call([*command, *options], {})
        assert list(output.rglob("results_*.json"))

    times, _, _ = in_turn(rounds, theirs, ours)
    return Row("lm-eval-ext run, start to end", 1, "document", "lm_eval", *times)


def write_stock_task(folder: Path) -> None:
    """Writes the same prompts as a plain YAML task of lm-eval, and fills its cache."""
    requests = prefix_model.requests_of(TASK, 1 << 30, 24)
    with (folder / PROMPTS).open("w", encoding="utf-8") as file:
        for _, (prompt, _) in requests:
            file.write(json.dumps({"prompt": prompt, "answer": "select 1"}) + "\n")
    (folder / f"{STOCK}.yaml").write_text(
        f"""task: {STOCK}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / PROMPTS}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n\\n"], do_sample: false}}
metric_list: [{{metric: exact_match}}]
metadata: {{version: 1}}
""",
        encoding="utf-8",
    )
    stock = prefix_model.requests_of(STOCK, 1 << 30, 24, folder)
    if [args[0] for _, args in stock] != [args[0] for _, args in requests]:
        raise DifferError("the stock task has other prompts")
    until_first_request(STOCK, 1, folder, {})


def until_first_request(task: str, limit: int, folder: Path, env: Mapping[str, str]) -> None:
    """Starts ``lm_eval`` and stops it when it has requests for the model."""
    command = [str(BIN / "lm_eval"), *arguments(task, limit), "--include_path", str(folder)]
    env = {"HF_DATASETS_CACHE": str(folder / "cache"), **env}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(env)
    )
    said = []
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if FIRST_REQUEST in line:
                process.kill()
                return
    sys.exit(f"lm_eval sent no request: {''.join(said[-5:])}")


def arguments(task: str, limit: int) -> list[str]:
    """The arguments of a command line with a model that costs nothing."""
    return ["--model", "dummy", "--tasks", task, "--limit", str(limit)]


def call(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Runs a command and returns what it printed; exits if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(env), check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The process's own environment, without two costs that users do not have.

    No hub is asked for anything, and modules are kept compiled, as pip installs them.
    """
    ours = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **ours, **env}
