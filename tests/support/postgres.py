"""A PostgreSQL server of the tests' own, on a socket, as a user that is not root."""

import getpass
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from psycopg import Connection

MEMORY = 256 << 20
"""Bytes that a process of the server may allocate, beside what they share: as docs/sql.md says."""

OPTIONS_OF_INITDB = (
    "-U", "admin", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8",
)  # fmt: skip


def binaries() -> Path:
    """Return the folder with initdb and pg_ctl; Debian's is not on the path."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path:
        candidates.insert(0, Path(on_path))
    for candidate in candidates:
        folder = candidate.resolve().parent
        if (folder / "pg_ctl").exists():
            return folder
    pytest.skip("no PostgreSQL here (apt-get install postgresql)")


class Server:
    """Started by the constructor, which skips where it cannot; the superuser is ``admin``."""

    def __init__(self) -> None:
        self._binaries = binaries()
        self._user: str | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="lmx-pg-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            self._user = "nobody"
            shutil.chown(self.folder, self._user)
        data = self.folder / "data"
        self._run("initdb", "-D", data, *OPTIONS_OF_INITDB)
        rules = data / "pg_hba.conf"
        rules.write_text("local all secret scram-sha-256\nlocal all all trust\n")
        self.start()

    def start(self) -> None:
        settings = {
            "listen_addresses": "''", "unix_socket_directories": str(self.folder), "fsync": "off",
            "shared_buffers": "16MB", "max_connections": "20", "autovacuum": "off",
        }  # fmt: skip
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", log, "-w", "-o", options, "start")

    def halt(self) -> None:
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stop the server for the block."""
        self.halt()
        try:
            yield
        finally:
            self.start()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def url(self, database: str = "people", role: str = "reader") -> str:
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def admin(self, database: str = "people") -> "Connection":
        """Return a connection of the superuser."""
        import psycopg

        return psycopg.connect(self.url(database, "admin"), autocommit=True)

    def _run(self, program: str, *arguments: object) -> None:
        """Run a program of PostgreSQL, as another user where this one is root."""
        # A server that pg_ctl starts would keep a pipe open.
        errors = subprocess.PIPE if program == "initdb" else None
        completed = subprocess.run(
            [str(self._binaries / program), *map(str, arguments)],
            cwd=self.folder, text=True, check=False, preexec_fn=_limit_memory,
            stdout=subprocess.DEVNULL, stderr=errors,
            user=self._user, extra_groups=[] if self._user else None,
        )  # fmt: skip
        if completed.returncode:
            user = self._user or getpass.getuser()
            pytest.skip(f"{program} fails as {user}: {completed.stderr}")


@contextmanager
def served(*statements: str) -> Iterator[Server]:
    """Yield a server after its superuser's statements in the database ``postgres``."""
    server = Server()
    try:
        with server.admin("postgres") as admin:
            for statement in statements:
                admin.execute(statement)
        yield server
    finally:
        server.halt()
        shutil.rmtree(server.folder)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
