"""A private Slurm on this machine: a controller and several nodes, without accounting."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "srun")
PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins"

_ANSWERS_S = 60
_ENDS_S = 5

CONFIG = """
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
# A job that was put back into the queue waits as long as credentials are valid, 120 s by default.
AuthInfo=cred_expire=5
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=1
"""


class NotStartedError(Exception):
    """There is no private Slurm here; says why."""


class PrivateSlurm:
    """A cluster whose files are in a folder; its nodes are called a, b, and so on.

    Commands find it by the environment variable ``SLURM_CONF``, which the caller sets to
    :attr:`config`, to which ``more`` is added.
    """

    def __init__(self, folder: Path, nodes: int = 1, more: str = "") -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        self.nodes = [chr(ord("a") + number) for number in range(nodes)]
        (folder / "state").mkdir(parents=True)
        host = socket.gethostname()
        text = CONFIG.format(
            host=host, user=getpass.getuser(), folder=folder, controller=free_port()
        )
        for node in self.nodes:
            (folder / f"spool-{node}").mkdir()
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} "
                "CPUs=2 RealMemory=1000\n"
            )
        text += f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES State=UP\n"
        self.config.write_text(text + more)

    def start(self) -> None:
        """Starts all of it and waits until it answers.

        Raises:
            NotStartedError: If it is not installed, or does not start; says why.
        """
        if missing := [name for name in PROGRAMS if not shutil.which(name)]:
            raise NotStartedError(f"Slurm is not installed (no {missing[0]}; Debian: {PACKAGES})")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        end = time.monotonic() + _ANSWERS_S
        while self.ask("sinfo", "--noheader", "--format=%T") != "idle":
            if time.monotonic() > end:
                raise NotStartedError("the private Slurm does not answer")
            time.sleep(0.1)

    def stop(self) -> None:
        """Cancels all jobs and ends all of it."""
        if not self._pid("slurmctld"):
            return
        self.ask("scancel", "--user", getpass.getuser())
        daemons = ["slurmctld", *(f"slurmd-{node}" for node in self.nodes)]
        pids = [pid for daemon in daemons if (pid := self._pid(daemon))]
        # At once: each would wait for others that are gone.
        for how in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _ENDS_S
            for pid in pids:
                _signal(pid, how)
            while any(_runs(pid) for pid in pids) and time.monotonic() < end:
                time.sleep(0.05)

    def start_controller(self) -> None:
        """Starts the controller, with the state that the last one has saved."""
        self._daemon("slurmctld")

    def start_node(self, node: str) -> None:
        """Starts a node."""
        self._daemon("slurmd", "-N", node)

    def kill_controller(self) -> None:
        """Ends the controller as a crash does."""
        pid = self._pid("slurmctld")
        _signal(pid, signal.SIGKILL)
        while _runs(pid):
            time.sleep(0.05)

    def ask(self, *command: str) -> str:
        """Runs one of Slurm's commands; returns what it prints, errors included."""
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        return (done.stdout + done.stderr).strip()

    def _pid(self, daemon: str) -> int:
        """A daemon's process, 0 if it does not run."""
        try:
            return int((self.folder / f"{daemon}.pid").read_text())
        except (OSError, ValueError):
            return 0

    def _daemon(self, *command: str) -> None:
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise NotStartedError(f"{command[0]} does not start: {done.stderr.strip()[:200]}")


def _signal(pid: int, how: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
