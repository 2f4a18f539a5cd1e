"""Whether two checkouts ask and score the same: a fingerprint of every task.

    python tests/fingerprints.py > before.txt               # in the old checkout
    python tests/fingerprints.py | diff before.txt -        # in the new one

For each task: the signature, the documents, every request with its generation settings (as they
are, and after a chat template), and the metrics of made-up answers. The package is taken from the
current folder, so that a copy of this file serves an older checkout as well. All requests of all
tasks take some ten minutes of CPU; ``--limit`` takes a trial of each only.
"""

import argparse
import hashlib
import json
import os
import random
import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))
DATA = Path.cwd().parent / "shared" / "data"
SCORED = 200
"""Documents of each task that get made-up answers."""


def main() -> None:
    """Print a line for each task; one whose data are unavailable says why."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, help="documents of each task; all if left out")
    parser.add_argument("--only", default="", help="tasks whose names start with this")
    options = parser.parse_args()
    if DATA.is_dir():
        os.environ.setdefault("LM_EVAL_EXT_DATA", str(DATA))
    from lm_eval.tasks import TaskManager

    from lm_eval_ext.errors import LmEvalExtError

    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    for name in sorted(name for name in manager.all_subtasks if name.startswith(options.only)):
        try:
            fingerprinted = fingerprint(manager.load(name)["tasks"][name], options.limit)
        except LmEvalExtError as error:
            fingerprinted = {"unavailable": type(error).__name__}
        print(name, json.dumps(fingerprinted), flush=True)  # noqa: T201


def tasks_folder() -> Path:
    """Return the folder of task files; older checkouts have its function in another module."""
    try:
        module = import_module("lm_eval_ext.task_folder")
    except ImportError:
        module = import_module("lm_eval_ext._autoload")
    folder: Path = module.tasks_folder()
    return folder


def fingerprint(task: Any, limit: int | None) -> dict[str, Any]:
    """Return digests of a task's requests, documents and scores of made-up answers."""
    trial_size = min(limit or SCORED, SCORED)
    chat = {
        "apply_chat_template": True, "tokenizer_name": "",
        "chat_template": lambda turns, **_: json.dumps(turns),
    }  # fmt: skip

    def digest_of_requests(documents: int | None, **options: Any) -> str:
        task.build_all_requests(limit=documents, rank=0, world_size=1, **options)
        return digest([[i.request_type, i.doc_id, i.idx, i.arguments] for i in task.instances])

    fingerprints = {
        "asked in a chat": digest_of_requests(trial_size, **chat),
        "asked": digest_of_requests(limit),
        "requests": len(task.instances),
        "signature": task.dump_config()["metadata"]["signature"],
        "documents": digest(list(task.eval_docs) if limit is None else []),
    }
    digest_of_requests(trial_size)
    return {**fingerprints, "scores": digest(scores(task))}


def scores(task: Any) -> dict[str, Any]:
    """Return the metrics of answers of which some are right, some wrong and some empty."""
    from lm_eval.evaluator_utils import _compute_task_aggregations

    rng = random.Random(0)
    for instance in task.instances:
        if instance.request_type == "loglikelihood":
            instance.resps.append((-30 * rng.random(), False))
        else:
            right = str(task.doc_to_target(instance.doc))
            variants = [right, f"The answer: {right}", right[::-1], "", "x"]
            instance.resps.append(variants[instance.doc_id % len(variants)])
    task.apply_filters()
    raw: dict[tuple[str, str], list[Any]] = {}
    for _, group in groupby(task.instances, lambda request: request.doc_id):
        instances = list(group)
        for key in instances[0].filtered_resps:
            answers = [instance.filtered_resps[key] for instance in instances]
            for metric, value in task.process_results(instances[0].doc, answers).items():
                raw.setdefault((metric, key), []).append(value)
    metrics, _ = _compute_task_aggregations(task, raw, bootstrap_iters=10)
    return dict(metrics)


def digest(value: Any) -> str:
    """Return a short hash of a value that JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
