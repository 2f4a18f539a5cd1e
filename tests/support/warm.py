"""Runs commands in separate processes that need not import everything again.

The seconds that a command spends on importing torch, transformers and lm-eval are spent once per
worker of the tests, by a process that then forks for each command (:mod:`support.warm_server`).
What a child shares with its siblings and a command started by hand does not: the order of
imports, and the seed of Python's hashes. Tests that are about either, about start-up, signals or
installation start their processes cold.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

SERVER = Path(__file__).with_name("warm_server.py")

PER_COMMAND = ("COLUMNS", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PYTEST_")
"""Variables that no import reads, or beginnings of their names."""

SET_BY_IMPORTS = ("HF_XET_HIGH_PERFORMANCE", "TORCHINDUCTOR_CACHE_DIR")
"""Variables that a library sets, here where the tests run as there."""

OURS = "LM_EVAL_EXT_"
SWITCH = "LM_EVAL_EXT_AUTOLOAD"


class Running:
    """A command that was started and not waited for."""

    def __init__(
        self, command: Sequence[str], status: socket.socket, out: IO[bytes], err: IO[bytes]
    ) -> None:
        self._command, self._status, self._out, self._err = command, status, out, err

    def wait(self, timeout: float) -> "subprocess.CompletedProcess[str]":
        """Waits for the end.

        Raises:
            subprocess.TimeoutExpired: It took longer, and was killed.
        """
        with self._status, self._out, self._err:
            self._status.settimeout(timeout)
            try:
                said = self._status.recv(16)
            except TimeoutError:
                raise subprocess.TimeoutExpired(
                    list(self._command), timeout, _read(self._out), _read(self._err)
                ) from None
            if not said:
                raise RuntimeError("the process that forks for commands has died")
            texts = (_read(file).decode().replace("\r\n", "\n") for file in (self._out, self._err))
            return subprocess.CompletedProcess(list(self._command), int(said), *texts)


class Warm:
    """The process that forks; started with the environment that imports are to see."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._imported_with = _of_imports(environment)
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno())],
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        if self._control.recv(5) != b"ready":
            raise RuntimeError("the process that forks for commands did not start")

    def can_have(self, environment: Mapping[str, str]) -> bool:
        """Whether the environment is, but for what no import reads, that of the imports."""
        return _of_imports(environment) == self._imported_with

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        stdin: int = subprocess.DEVNULL,
    ) -> Running:
        """Starts a Python script with its arguments, in an environment that it can have."""
        request = {
            "command": list(command), "environment": dict(environment), "folder": str(folder),
        }  # fmt: skip
        body = json.dumps(request).encode()
        ours, theirs = socket.socketpair()
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        with theirs, Path(os.devnull).open("rb") as nothing:
            given = nothing.fileno() if stdin == subprocess.DEVNULL else stdin
            descriptors = [given, out.fileno(), err.fileno(), theirs.fileno()]
            socket.send_fds(self._control, [b"%8d" % len(body)], descriptors)
        self._control.sendall(body)
        return Running(command, ours, out, err)

    def close(self) -> None:
        """Ends the process."""
        self._control.close()
        self._process.wait(timeout=60)


def _of_imports(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name == SWITCH or not name.startswith((OURS, *PER_COMMAND, *SET_BY_IMPORTS))
    }


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
