"""A process that has imported what commands import, and forks for each command it is asked for.

Started by :mod:`support.warm`. A child gets its own arguments, environment, folder and output,
and then runs the console script itself, as ``__main__``, to its end: exit status, traceback and
exit handlers are Python's own. Only what Python takes apart after them is left to the system,
since that copies all pages that the children share: half a second for each. Before the fork there
are imports and torch's description of the machine only: no operation of torch, no thread, none of
our files read.
"""

import atexit
import functools
import gc
import importlib
import json
import multiprocessing.process
import os
import random
import runpy
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

IMPORTS = (
    "lm_eval.__main__",
    "lm_eval.evaluator",
    "lm_eval.models.huggingface",
    "lm_eval_ext.benchmarks.magnifico.task",
    "lm_eval_ext.cli.app",
    "lm_eval_ext.harness.preflight",
    "lm_eval_ext.harness.task",
    "lm_eval_ext.models.recorded",
    "pytablewriter",
    "rich.table",
    "rouge_score.rouge_scorer",
    "scipy.stats",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.onnx",
    "torch.utils.collect_env",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.llama.modeling_llama",
    "transformers.models.t5.modeling_t5",
    "transformers.quantizers.auto",
    "typer.rich_utils",
)


def serve(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Waits for requests and forks; returns in children only, with what they are to run."""
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        header, descriptors, _, _ = socket.recv_fds(control, 8, 4)
        if not header:
            os._exit(0)  # the tests are over
        body = b""
        while len(body) < int(header):
            body += control.recv(int(header) - len(body))
        if os.fork() == 0:
            control.close()
            if _keeps(socket.socket(fileno=descriptors.pop())):
                os._exit(0)
            return json.loads(body), descriptors
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(*_: object) -> None:
    """Takes note of keepers that have ended; ignored, they would leave no processor time."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keeps(asker: socket.socket) -> bool:
    """Forks once more, waits for the child and reports its status; False in the child.

    When nobody waits for the status any more, the child is killed.
    """
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for inherited in (asker, woken, wake):
            inherited.close()
        return False
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([asker, woken], [], [])
        if asker in ready:
            os.kill(child, signal.SIGKILL)
        else:
            woken.recv(64)
        ended, status = os.waitpid(child, 0 if asker in ready else os.WNOHANG)
        if ended:
            asker.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            return True


def become(request: dict[str, Any], standard_files: list[int]) -> None:
    """Makes this process look like one that was just started with the request's command."""
    for standard, descriptor in enumerate(standard_files):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["command"]
    sys.path[0] = os.path.dirname(sys.argv[0])  # noqa: PTH120 (what Python itself does)
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # type: ignore[attr-defined]
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def describe_machine_once() -> None:
    """Asks for torch's description of the machine now, for the results files of all children.

    It starts pip and a dozen other programs, a second for each ``lm_eval``.
    """
    module: Any = importlib.import_module("torch.utils.collect_env")
    description = module.get_pretty_env_info()
    module.get_pretty_env_info = lambda: description


def make_tables_quickly() -> None:
    """Lets the library that prints lm-eval's tables copy no list of all codecs for every cell.

    That is half of the time that a table takes, seconds for all tasks of MAGNIFICo.
    """
    module: Any = importlib.import_module("mbstrdecoder._mbstrdecoder")
    module.copy = SimpleNamespace(deepcopy=list)


def compile_templates_once() -> None:
    """Lets lm-eval compile a task's template once, not for every document.

    That is half of the time of a small evaluation of LIEDER.
    """
    module: Any = importlib.import_module("lm_eval.utils")
    module.env.from_string = functools.cache(module.env.from_string)


def run(script: str) -> None:
    """Runs a script as ``__main__`` and ends the process."""
    try:
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else bool(end.code)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
    except Exception:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        status = 1
    for wait in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        wait()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def main() -> None:
    """Returns in children only."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in IMPORTS:
        importlib.import_module(name)
    describe_machine_once()
    make_tables_quickly()
    compile_templates_once()
    if (threads := threading.active_count()) > 1:
        raise RuntimeError(f"an import has started a thread: {threads}")
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    control.sendall(b"ready")
    become(*serve(control))


if __name__ == "__main__":
    main()
    run(sys.argv[0])
