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
from typing import Any

import pytest

MEMORY = 256 << 20
"""Bytes that a process of the server may allocate, beside what they share: as docs/sql.md says."""


def binaries() -> Path:
    """The folder with initdb and pg_ctl: Debian's is not on the path."""
    debians = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    for found in (shutil.which("initdb"), *debians):
        if found and (folder := Path(found).resolve().parent).joinpath("pg_ctl").exists():
            return folder
    pytest.skip("no PostgreSQL here (apt-get install postgresql)")


class Server:
    """Started by the constructor, which skips where it cannot; the superuser is ``admin``."""

    def __init__(self) -> None:
        self._bin = binaries()
        self._user: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="lmx-pg-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "nobody")
            self._user = {"user": "nobody", "extra_groups": []}
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-U", "admin", "-A", "trust", "--no-sync", "--no-locale",
                  "-E", "UTF8")  # fmt: skip
        rules = data / "pg_hba.conf"
        rules.write_text("local all secret scram-sha-256\nlocal all all trust\n")
        self.start()

    def start(self) -> None:
        settings = {
            "listen_addresses": "''", "unix_socket_directories": str(self.folder), "fsync": "off",
            "shared_buffers": "16MB", "max_connections": "20", "autovacuum": "off",
        }  # fmt: skip
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w",
                  "-o", options, "start")  # fmt: skip

    def halt(self) -> None:
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    @contextmanager
    def away(self) -> Iterator[None]:
        """The server is stopped within the block."""
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

    def admin(self, database: str = "people") -> Any:
        import psycopg

        return psycopg.connect(self.url(database, "admin"), autocommit=True)

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(self._bin / program), *map(str, arguments)],
            cwd=self.folder, text=True, check=False, preexec_fn=_limited,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if program == "initdb" else None,
            **self._user,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"{program} fails as {self._user or getpass.getuser()}: {done.stderr}")


@contextmanager
def served(*statements: str) -> Iterator[Server]:
    """A server for the block, after its superuser's statements in the database ``postgres``."""
    server = Server()
    try:
        with server.admin("postgres") as admin:
            for statement in statements:
                admin.execute(statement)
        yield server
    finally:
        server.halt()
        shutil.rmtree(server.folder)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
