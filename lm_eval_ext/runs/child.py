"""The process that evaluates one model: lm-eval's own command line, with four differences.

- Where all tasks are ours or the user's, no others are indexed.
- The results file also says which run it is of, and how many tokens requests and answers have.
- Servers are asked more patiently (:mod:`.servers`).
- The process ends when the one that started it ends, even if that was killed, so that no orphaned
  evaluation keeps a GPU.

    python -m lm_eval_ext.runs.child KEYS CONFIG WEIGHTS
"""

import _thread
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from lm_eval.tasks._index import Entry

GRACE_S = 10
"""Seconds that an evaluation may take to end by itself."""

EVALUATION_FAILED = 3
"""The exit status where an evaluation failed after its model and its tasks were loaded, and not
because of a server: without the task that failed, the others may have results."""

Results: TypeAlias = dict[str, Any]
"""The content of a results file."""

Evaluate: TypeAlias = Callable[..., Results | None]
"""lm-eval's ``evaluate``, which returns None in ranks other than 0."""

BuildIndex: TypeAlias = "Callable[..., Mapping[str, Entry]]"
"""lm-eval's ``TaskIndex.build``: returns the tasks of folders by name."""


def main() -> None:
    """Run ``lm_eval run --config CONFIG``."""
    keys, config, weights = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from lm_eval_ext._autoload import install, watch
    from lm_eval_ext.runs import servers

    install()
    watch(servers.MODULE, servers.patch_requests, "servers are asked as lm-eval does it")
    sys.argv = ["lm_eval", "run", "--config", config]
    import lm_eval.evaluator
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.tasks._index import TaskIndex

    lm_eval.evaluator.evaluate = add_run_facts(lm_eval.evaluator.evaluate, keys, weights)
    TaskIndex.build = staticmethod(index_only_needed(TaskIndex.build, keys))
    cli_evaluate()


def _end_with_parent() -> None:
    """Wait for the end of stdin, a pipe that is closed when the parent process ends."""
    while os.read(0, 1024):
        pass
    interrupt_main_thread()
    time.sleep(GRACE_S)
    os._exit(130)


def interrupt_main_thread() -> None:
    """Let the main thread end as after Ctrl-C, at once even while it waits for a server.

    Python's own ``interrupt_main`` only takes effect when the system call under way returns, which
    may be minutes later. A signal ends the call.
    """
    main_thread = threading.main_thread().ident
    if main_thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        _thread.interrupt_main()


def index_only_needed(build: BuildIndex, names: Collection[str]) -> BuildIndex:
    """Return a function that indexes lm-eval's 14,000 tasks only if a name is among them.

    Indexing them takes seconds.

    Args:
        build: lm-eval's function.
        names: What lm-eval is asked for. A file of tasks is in no index.
    """
    from lm_eval_ext.task_folder import tasks_folder

    indexed_names = {name for name in names if not name.endswith(".yaml")}

    def build_needed(paths: Sequence[Path], **options: bool) -> Mapping[str, "Entry"]:
        # The first path is lm-eval's own folder.
        our_index = build([Path(tasks_folder()), *paths[1:]], **options)
        if indexed_names <= our_index.keys():
            return our_index
        return build(paths, **options)

    return build_needed


def add_run_facts(evaluate: Evaluate, keys: Mapping[str, str], weights: str = "") -> Evaluate:
    """Return lm-eval's ``evaluate``, whose results also have the keys, weights and tokens.

    If it fails, the process ends, with the status ``EVALUATION_FAILED`` unless a server failed.

    lm-eval counts no tokens. The model's own tokenizer counts them after the evaluation, and
    counts responses from the cache as well: the figure says what the task costs.
    """

    def evaluate_and_add(*args: object, **options: Any) -> Results | None:
        from lm_eval_ext.log import get_logger
        from lm_eval_ext.results.files import KEYS, TOKENS, WEIGHTS
        from lm_eval_ext.runs import servers

        try:
            results = evaluate(*args, **options)
        except Exception as error:
            if servers.is_server_failure(error):
                raise
            traceback.print_exc()
            sys.exit(EVALUATION_FAILED)
        if not results:  # of another rank
            return results
        results[KEYS] = keys
        if weights:
            results[WEIGHTS] = weights
        model = options["lm"]
        # A dummy model would load a tokenizer from the hub.
        if not hasattr(model, "tok_encode") or not model.tokenizer:
            return results
        try:
            tokens = {}
            for task, samples in results.get("samples", {}).items():
                tokens[task] = _count_tokens(samples, model.tok_encode)
            results[TOKENS] = tokens
        except Exception as error:  # noqa: BLE001 - a strange tokenizer must not cost the results
            get_logger(__name__).warning("tokens are not counted: %s", error)
        return results

    return evaluate_and_add


def _count_tokens(
    samples: Sequence[Mapping[str, Any]], encode: Callable[[str], list[int]]
) -> dict[str, int]:
    """Count the tokens of the requests and of the responses of a task.

    Each document counts once, whatever its filters. A context and its continuation are one
    request, which has one BOS where the tokenizer adds it; a response has none.

    Args:
        samples: As lm-eval logs them.
        encode: Returns the tokens of a text.
    """
    bos_tokens = len(encode(""))
    input_tokens = output_tokens = 0
    for sample in samples:
        if sample["filter"] != samples[0]["filter"]:
            continue
        for request in sample["arguments"]:
            input_tokens += len(encode("".join(_texts(request))))
        for responses in sample["resps"]:
            for text in _texts(responses):
                output_tokens += len(encode(text)) - bos_tokens
    return {"input": input_tokens, "output": output_tokens}


def _texts(values: Iterable[object]) -> list[str]:
    """Return the texts among the arguments of a request, or among responses."""
    return [value for value in values if isinstance(value, str)]


if __name__ == "__main__":
    main()
