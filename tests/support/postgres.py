"""A PostgreSQL server of the tests' own, on a socket, as a user that is not root."""

import getpass
import os
import pwd
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MEMORY = 768 << 20
"""Bytes that a process of the server may allocate, beside what they share."""


class Missing(Exception):  # noqa: N818 (no error: a reason to skip)
    """There is no PostgreSQL here."""


def binaries() -> Path:
    """The folder with initdb and pg_ctl: Debian's is not on the path."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    raise Missing("no PostgreSQL here (apt-get install postgresql)")


class Server:
    """Started by the constructor; :meth:`stop` removes it. The superuser is ``admin``."""

    def __init__(self) -> None:
        self._bin = binaries()
        self._user: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="lmx-pg-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            account = next((one for one in ("postgres", "nobody") if _exists(one)), None)
            if account is None:
                raise Missing("PostgreSQL does not run as root, and there is no other user")
            shutil.chown(self.folder, account)
            self._user = {"user": account, "extra_groups": []}
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

    def stop(self) -> None:
        with suppress(Missing):  # it may not be running
            self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

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
            raise Missing(f"{program} fails as {self._user or getpass.getuser()}: {done.stderr}")


@contextmanager
def served(*statements: str, missing: Callable[[str], object] | None = None) -> Iterator[Server]:
    """A server for the block, after its superuser's statements.

    Args:
        statements: They run in the database ``postgres``.
        missing: Called with the reason if there is no PostgreSQL, such as ``pytest.skip``.
    """
    try:
        server = Server()
    except Missing as reason:
        if missing is not None:
            missing(str(reason))
        raise
    try:
        with server.admin("postgres") as admin:
            for statement in statements:
                admin.execute(statement)
        yield server
    finally:
        server.stop()


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _exists(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False
