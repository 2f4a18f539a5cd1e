"""The process that evaluates one model: lm-eval's own command line, with four differences.

Where all tasks are ours or the user's, no others are indexed. The results file also says which run
it is of, and how many tokens requests and answers have. Servers are asked more patiently
(:mod:`.servers`). It ends when the process that started it ends, even if that was killed, so that
no orphaned evaluation keeps a GPU.

    python -m lm_eval_ext.runs.child KEYS CONFIG WEIGHTS
"""

import _thread
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

GRACE_S = 10
"""Seconds that an evaluation may take to end by itself."""


def main() -> None:
    """Runs ``lm_eval run --config CONFIG``."""
    keys, config, weights = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from lm_eval_ext._autoload import install, watch
    from lm_eval_ext.runs import servers

    install()
    watch(servers.MODULE, servers.be_patient, "servers are asked as lm-eval does it")
    sys.argv = ["lm_eval", "run", "--config", config]
    import lm_eval.evaluator
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.tasks._index import TaskIndex

    lm_eval.evaluator.evaluate = noting(lm_eval.evaluator.evaluate, keys, weights)
    TaskIndex.build = staticmethod(own_first(TaskIndex.build, keys))
    cli_evaluate()


def _end_with_parent() -> None:
    """Waits for the end of stdin, a pipe that is closed when the parent process ends."""
    while os.read(0, 1024):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE_S)
    os._exit(130)


def own_first(build: Callable[..., Any], names: Collection[str]) -> Callable[..., Any]:
    """lm-eval's index of ours and the user's tasks, and of all 14,000 where a name is elsewhere.

    That takes seconds. A file of tasks is in no index.
    """
    from lm_eval_ext.task_folder import tasks_folder

    def build_few(paths: Sequence[Path], **options: Any) -> Any:
        few = build([Path(tasks_folder()), *paths[1:]], **options)
        indexed = {name for name in names if not name.endswith(".yaml")}
        return few if indexed <= few.keys() else build(paths, **options)

    return build_few


def noting(
    evaluate: Callable[..., Any], keys: Mapping[str, str], weights: str = ""
) -> Callable[..., Any]:
    """Return lm-eval's ``evaluate``, whose results also have the keys, weights and tokens.

    lm-eval counts no tokens. The model's own tokenizer counts them after the evaluation, whether
    a response was computed or came from the cache: it is what the task takes.
    """

    def evaluate_and_note(*args: Any, **options: Any) -> Any:
        from lm_eval_ext.log import get_logger
        from lm_eval_ext.results.files import KEYS, TOKENS, WEIGHTS

        results = evaluate(*args, **options)
        if not results:  # of another rank
            return results
        results[KEYS] = keys
        if weights:
            results[WEIGHTS] = weights
        lm = options["lm"]
        if not (hasattr(lm, "tok_encode") and lm.tokenizer):  # dummy has a tokenizer at the hub
            return results
        try:
            results[TOKENS] = {
                task: _count(samples, lm.tok_encode)
                for task, samples in results.get("samples", {}).items()
            }
        except Exception as error:  # noqa: BLE001 - a strange tokenizer must not cost the results
            get_logger(__name__).warning("tokens are not counted: %s", error)
        return results

    return evaluate_and_note


def _count(samples: list[Mapping[str, Any]], encode: Callable[[str], list[int]]) -> dict[str, int]:
    """Tokens of the requests and of the answers; each document once, whatever its filters.

    A context and its continuation are one request, which has one BOS where the tokenizer adds it.
    An answer has none.
    """
    bos = len(encode(""))
    asked = answered = 0
    for sample in samples:
        if sample["filter"] != samples[0]["filter"]:
            continue
        for request in sample["arguments"]:
            asked += len(encode("".join(text for text in request if isinstance(text, str))))
        for answers in sample["resps"]:
            answered += sum(len(encode(text)) - bos for text in answers if isinstance(text, str))
    return {"input": asked, "output": answered}


if __name__ == "__main__":
    main()
