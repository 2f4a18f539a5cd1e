"""A private Slurm on this machine: a controller and several nodes, without accounting."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "srun")
MISSING = "Slurm is not installed (Debian: slurmctld slurmd slurm-client slurm-wlm-basic-plugins)"

_ANSWERS_S = 30

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


class PrivateSlurm:
    """A cluster whose files are in a folder; its nodes are called a, b, and so on.

    Commands find it by the environment variable ``SLURM_CONF``, which the caller sets to
    :attr:`config`.
    """

    def __init__(self, folder: Path, nodes: int = 1) -> None:
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
        self.config.write_text(text)

    def start(self) -> None:
        """Starts all of it and waits until it answers.

        Raises:
            RuntimeError: If it cannot be started; says why.
        """
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        end = time.monotonic() + _ANSWERS_S
        while self.ask("sinfo", "--noheader", "--format=%T") != "idle":
            if time.monotonic() > end:
                raise RuntimeError("the private Slurm does not answer")
            time.sleep(0.1)

    def stop(self) -> None:
        """Cancels all jobs and ends all of it."""
        self.ask("scancel", "--user", getpass.getuser())
        for node in self.nodes:
            self.end(f"slurmd-{node}")
        self.end("slurmctld")

    def start_controller(self) -> None:
        """Starts the controller, with the state that the last one has saved."""
        self._daemon("slurmctld")

    def start_node(self, node: str) -> None:
        """Starts a node."""
        self._daemon("slurmd", "-N", node)

    def end(self, daemon: str, how: int = signal.SIGTERM) -> None:
        """Ends ``slurmctld`` or ``slurmd-NODE`` by a signal, and waits until it is gone."""
        try:
            pid = int((self.folder / f"{daemon}.pid").read_text())
            os.kill(pid, how)
            while Path(f"/proc/{pid}").exists():
                os.kill(pid, 0)
                time.sleep(0.05)
        except (OSError, ValueError):
            return

    def ask(self, *command: str) -> str:
        """Runs one of Slurm's commands; returns what it prints, errors included."""
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        return (done.stdout + done.stderr).strip()

    def _daemon(self, *command: str) -> None:
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"{command[0]} does not start: {done.stderr.strip()[:200]}")


def installed() -> bool:
    """Whether all programs are there."""
    return all(shutil.which(name) for name in PROGRAMS)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
