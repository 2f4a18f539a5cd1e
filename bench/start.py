"""Time until the first request, beside lm-eval without this plugin."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.prefix import requests_of
from bench.rows import DifferError, Row, in_turn

TASK, STOCK = "lieder_mini", "stock"

FIRST_REQUEST = "Running loglikelihood requests"
"""What lm-eval logs just before it hands the requests to the model."""

STOCK_TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {requests}}}}}
test_split: test
output_type: loglikelihood
target_delimiter: ""
doc_to_text: context
doc_to_target: continuation
metric_list: [{{metric: acc}}]
metadata: {{version: 1}}
"""


def rows(rounds: int, share: float) -> Iterator[Row]:
    """Yields a row for a first request."""
    del share
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        count = write_stock_task(folder)
        both = (
            partial(until_first_request, STOCK, folder, LM_EVAL_EXT_AUTOLOAD="0"),
            partial(until_first_request, TASK, folder),
        )
        times, _, _ = in_turn(rounds, *both)
        work = f"lm_eval --tasks {TASK}, to the first request"
        baseline = "a stock task with the same requests in a JSON file, without this plugin"
        yield Row(work, count, "requests", baseline, *times)


def write_stock_task(folder: Path) -> int:
    """Writes the same requests as a plain YAML task of lm-eval, and fills its cache."""
    requests = [args for _, args in requests_of(TASK, 1 << 30, 0)]
    file = folder / "requests.jsonl"
    lines = (json.dumps({"context": one, "continuation": other}) + "\n" for one, other in requests)
    file.write_text("".join(lines), encoding="utf-8")
    text = STOCK_TASK.format(name=STOCK, requests=file)
    (folder / f"{STOCK}.yaml").write_text(text, encoding="utf-8")
    if [args for _, args in requests_of(STOCK, 1 << 30, 0, str(folder))] != requests:
        raise DifferError("the stock task has other requests")
    until_first_request(STOCK, folder)
    return len(requests)


def until_first_request(task: str, folder: Path, **environment: str) -> None:
    """Starts ``lm_eval`` and stops it when it has requests for the model."""
    command = [str(Path(sys.executable).parent / "lm_eval"), "--model", "dummy", "--tasks", task]
    # No hub is asked for anything, and modules are kept compiled, as pip installs them.
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
    cache = {"HF_DATASETS_CACHE": str(folder / "cache")}
    process = subprocess.Popen(
        [*command, "--include_path", str(folder)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=os.environ | offline | cache | environment,
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
