"""A private Slurm on this machine: a controller and a node, without accounting."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest

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
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
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
NodeName=a NodeHostname={host} NodeAddr=127.0.0.1 Port={node} CPUs=2 RealMemory=1000
PartitionName=main Nodes=a Default=YES State=UP
"""


class PrivateSlurm:
    """A cluster of one node whose files are in a folder.

    Commands find it by the environment variable ``SLURM_CONF``, which the caller sets to
    :attr:`config`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        text = CONFIG.format(
            host=socket.gethostname(), user=getpass.getuser(), folder=folder,
            controller=free_port(), node=free_port(),
        )  # fmt: skip
        self.config.write_text(text)

    def start(self) -> None:
        """Start all of it and wait until it answers; skip the test where it is not installed."""
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        if missing:
            pytest.skip(f"Slurm is not installed (no {missing[0]}; Debian: {PACKAGES})")
        for command in (("slurmctld",), ("slurmd", "-N", "a")):
            if self._run(*command).returncode:
                pytest.skip(f"{command[0]} does not start")
        end = time.monotonic() + _ANSWERS_S
        while self.ask("sinfo", "--noheader", "--format=%T") != "idle":
            if time.monotonic() > end:
                pytest.skip("the private Slurm does not answer")
            time.sleep(0.1)

    def stop(self) -> None:
        """Cancel all jobs and end all of it."""
        pids = [int(file.read_text()) for file in self.folder.glob("*.pid")]
        if pids:
            self.ask("scancel", "--user", getpass.getuser())
        # All at once: each would wait for others that are gone.
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _ENDS_S
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            while any(map(psutil.pid_exists, pids)) and time.monotonic() < end:
                time.sleep(0.05)

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands; return all that it prints, errors included."""
        completed = self._run(*command)
        return (completed.stdout + completed.stderr).strip()

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
