"""``lm-eval-ext run --executor ray``: a task on a running Ray cluster for each model."""

import io
import socket
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.runs.job import PART, SILENT, Reporter, put_in_place
from lm_eval_ext.runs.run import FailedError, Work, plan, run
from lm_eval_ext.text import one_line

_RETRIES = 3
"""Times that Ray starts a task again whose process or node is lost."""

_POLL_S = 5.0
_CONNECT_S = 10.0


def run_on(work: Work, address: str, reporter: Reporter) -> None:
    """Evaluates every model that lacks results on a Ray cluster, and waits for all.

    A node that sees the output folder writes there. Another one works in a folder of its own and
    sends the results back; then a model that is started again starts from nothing.

    Args:
        work: What is asked for.
        address: As Ray takes it: ``auto``, ``HOST:PORT``, ``ray://HOST:PORT``, or ``local`` for a
            cluster on this machine.
        reporter: Gets a line for each model.

    Raises:
        OptionError: If Ray is missing or cannot be reached, or has not what a model asks for.
        FailedError: If models failed.
    """
    lacking = [one for one in plan(work) if one["tasks"]]
    if not lacking:
        reporter.line("nothing to do")
        return
    output = work.output.resolve()
    with _connected(address) as ray, _probe(output) as probe:
        tasks = [_task(ray, one["model"], parameters(one["resources"])) for one in lacking]
        pending: dict[Any, str] = {}
        for one, task in zip(lacking, tasks, strict=True):
            file = Path(one["file"]).resolve()
            own = replace(work, models=[file], tasks=",".join(one["tasks"]), output=output)
            text = file.read_text(encoding="utf-8")
            pending[task.remote(own, text, str(probe))] = one["model"]
            reporter.line(f"{one['model']}: {', '.join(one['tasks'])}")
        failed: dict[str, str] = {}
        while pending:
            reporter.status(f"{len(pending)} of {len(lacking)} models on Ray")
            for done in ray.wait(list(pending), timeout=_POLL_S)[0]:
                model = pending.pop(done)
                problem = _finish(ray, done, output / model)
                reporter.line(f"{model}: {f'failed: {problem}' if problem else 'done'}")
                failed |= {model: problem} if problem else {}
    if failed:
        raise FailedError(failed, len(lacking))


def evaluate(work: Work, text: str, probe: str) -> tuple[str, bytes]:
    """Runs one model; Ray calls it on a node.

    Args:
        work: With one model's file.
        text: What is in this file.
        probe: A file in the output folder, which tells whether this node sees the folder.

    Returns:
        What went wrong, or ""; and an archive of the results, empty if they are in the folder.
    """
    if Path(probe).is_file():
        return _problem(work), b""
    with TemporaryDirectory() as folder:
        file = Path(folder) / Path(work.models[0]).name
        file.write_text(text, encoding="utf-8")
        own = replace(work, models=[file], output=Path(folder) / "out")
        problem = _problem(own)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted((own.output / file.stem).glob("*")):
                if path.is_file() and not path.name.startswith("."):
                    archive.add(path, path.name)
        return problem, packed.getvalue()


def parameters(resources: Mapping[str, Any]) -> dict[str, Any]:
    """A model's ``resources`` as a Ray task takes them; ``extra`` goes to Ray as it is."""
    return {
        "num_gpus": resources.get("gpus", 0),
        "num_cpus": resources.get("cpus", 1),
        "max_retries": _RETRIES,
        **(resources.get("extra") or {}),
    }


def _problem(work: Work) -> str:
    try:
        run(work, SILENT)
    except FailedError as error:
        return one_line("; ".join(error.reasons.values()))
    except LmEvalExtError as error:
        return one_line(str(error))
    return ""


def _finish(ray: Any, done: Any, folder: Path) -> str:
    """Unpacks what a node sent back; returns what went wrong, or ""."""
    try:
        problem, packed = ray.get(done)
        if packed:
            folder.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=folder, prefix=PART) as part:
                with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                    archive.extractall(part, filter="data")
                put_in_place(Path(part), folder)
    except ray.exceptions.RayError as error:
        return one_line(str(error), limit=300)
    except OSError as error:
        return f"cannot write {folder}: {error.strerror}"
    return str(problem)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        import ray
    except ImportError:
        raise OptionError("--executor ray needs Ray; pip install 'lm-eval-ext[ray]'") from None
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, AssertionError) as error:
        raise OptionError(
            f"no Ray cluster at {address!r}: {one_line(str(error), limit=200)}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()  # ends what still runs after Ctrl-C


def _check_reachable(address: str) -> None:
    """Refuses an address at which nothing answers; Ray would try for ten minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        if address in {"auto", "local"}:
            return
        raise OptionError(
            f"--address {address!r} must be HOST:PORT, ray://HOST:PORT, auto or local"
        )
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise OptionError(f"no Ray cluster at {address}: {error}") from None


@contextmanager
def _probe(output: Path) -> Iterator[Path]:
    probe = output / f".ray-{uuid.uuid4().hex}"
    try:
        output.mkdir(parents=True, exist_ok=True)
        probe.touch()
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror}") from None
    try:
        yield probe
    finally:
        probe.unlink(missing_ok=True)


def _task(ray: Any, model: str, options: Mapping[str, Any]) -> Any:
    """What Ray calls; refuses what no node has, since Ray would wait for such a node for ever."""
    try:
        task = ray.remote(evaluate).options(**options)
    except (ValueError, TypeError) as error:
        raise OptionError(f"{model}: resources: Ray refuses them: {one_line(str(error))}") from None
    for name, kind in (("num_gpus", "GPU"), ("num_cpus", "CPU")):
        alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        most = max((node.get(kind, 0) for node in alive), default=0)
        if options[name] > most:
            raise OptionError(
                f"{model}: resources ask for {options[name]} {kind}s, and no node of the Ray "
                f"cluster has more than {most:g}"
            )
    return task
