"""Whether two checkouts ask and score the same: a fingerprint of every task.

    python tests/fingerprints.py -o before.json              # in the old checkout
    python tests/fingerprints.py --against before.json       # in the new one

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
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))
DATA = Path.cwd().parent / "shared" / "data"
SCORED = 200
"""Documents of each task that get made-up answers."""


def main() -> None:
    """Writes the fingerprints, or compares them and ends with status 1 where any differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="write the fingerprints to this file")
    parser.add_argument("--against", type=Path, help="compare with the fingerprints in this file")
    parser.add_argument("--limit", type=int, help="documents of each task; all if left out")
    parser.add_argument("--only", default="", help="tasks whose names start with this")
    options = parser.parse_args()
    if DATA.is_dir():
        os.environ.setdefault("LM_EVAL_EXT_DATA", str(DATA))
    found = fingerprints(options.limit, options.only)
    if options.output:
        options.output.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
    if options.against:
        before = json.loads(options.against.read_text(encoding="utf-8"))
        different = [one for one in {*before, *found} if before.get(one) != found.get(one)]
        for name in sorted(different):
            say(f"{name}: {before.get(name)} before, {found.get(name)} now")
        requests = sum(task.get("requests", 0) for task in found.values())
        say(f"{len(found)} tasks, {requests:,} requests, {len(different)} differ")
        sys.exit(bool(different))


def fingerprints(limit: int | None, prefix: str) -> dict[str, Any]:
    """By task; one whose data are unavailable says why."""
    from lm_eval.tasks import TaskManager

    from lm_eval_ext._autoload import tasks_folder
    from lm_eval_ext.errors import LmEvalExtError

    manager = TaskManager(include_defaults=False, include_path=tasks_folder())
    found: dict[str, Any] = {}
    for name in sorted(name for name in manager.all_subtasks if name.startswith(prefix)):
        try:
            found[name] = fingerprint(manager.load(name)["tasks"][name], limit)
        except LmEvalExtError as error:
            found[name] = {"unavailable": type(error).__name__}
        say(f"{name}: {found[name]}")
    return found


def fingerprint(task: Any, limit: int | None) -> dict[str, Any]:
    """What a task asks, and what made-up answers score."""
    some = min(limit or SCORED, SCORED)
    chat = {
        "apply_chat_template": True, "tokenizer_name": "",
        "chat_template": lambda turns, **_: json.dumps(turns),
    }  # fmt: skip

    def asked(documents: int | None, **how: Any) -> str:
        task.build_all_requests(limit=documents, rank=0, world_size=1, **how)
        return digest([[i.request_type, i.doc_id, i.idx, i.arguments] for i in task.instances])

    found = {
        "asked in a chat": asked(some, **chat),
        "asked": asked(limit),
        "requests": len(task.instances),
        "signature": task.dump_config()["metadata"]["signature"],
        "documents": digest(list(task.eval_docs) if limit is None else []),
    }
    asked(some)
    return {**found, "scores": digest(scores(task))}


def scores(task: Any) -> dict[str, Any]:
    """The metrics of answers of which some are right, some wrong and some empty."""
    from lm_eval.evaluator_utils import _compute_task_aggregations

    rng = random.Random(0)
    for instance in task.instances:
        if instance.request_type == "loglikelihood":
            instance.resps.append((-30 * rng.random(), False))
        else:
            right = str(task.doc_to_target(instance.doc))
            made = [right, f"The answer: {right}", right[::-1], "", "x"]
            instance.resps.append(made[instance.doc_id % len(made)])
    task.apply_filters()
    raw: dict[tuple[str, str], list[Any]] = {}
    for _, group in groupby(task.instances, lambda one: one.doc_id):
        instances = list(group)
        for key in instances[0].filtered_resps:
            answers = [instance.filtered_resps[key] for instance in instances]
            for metric, value in task.process_results(instances[0].doc, answers).items():
                raw.setdefault((metric, key), []).append(value)
    metrics, _ = _compute_task_aggregations(task, raw, bootstrap_iters=10)
    return dict(metrics)


def digest(value: Any) -> str:
    """Of anything that JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def say(line: str) -> None:
    """To stderr, at once."""
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
