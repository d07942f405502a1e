"""A PostgreSQL cluster of the tests' own, in a temporary folder; the machine's own service is left alone."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_USER = "postgres"  # a server does not run as root
_ADMIN = "hopline"
PASSWORD = "tell-nobody"
_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
# Nothing here cuts off power: what is written survives a process that is killed.
fsync = off
full_page_writes = off
max_connections = 60
shared_buffers = 32MB
autovacuum = on
log_min_messages = warning
max_prepared_transactions = 0
"""


def _binaries() -> Path:
    """The newest release's; Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    named = shutil.which("initdb")
    if not found and not named:
        raise RuntimeError("PostgreSQL is not installed (Debian: apt install postgresql)")
    return found[-1].parent if found else Path(str(named)).parent


@contextmanager
def cluster() -> Iterator[Cluster]:
    """One that runs, until it is not wanted any more."""
    made = Cluster()
    try:
        made.start()
        yield made
    finally:
        made.end()


class Cluster:
    """`start` and `stop` as often as wanted, always on one port of loopback; `end` for good."""

    def __init__(self) -> None:
        self._binaries = _binaries()
        # Not pytest's, which nobody but its user may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="hopline-postgres-"))
        self._data = self.folder / "data"
        self._numbers = itertools.count(1)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        if os.getuid() == 0:
            entry = pwd.getpwnam(_USER)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._run(
            "initdb", "--username", _ADMIN, "--auth", "trust", "--no-sync", "--encoding", "UTF8", "-D", self._data
        )
        (self._data / "postgresql.auto.conf").write_text(_CONFIGURATION)

    def _run(self, name: str, *arguments: object) -> None:
        self._run_as(self._binaries / name, *arguments)

    def _run_as(self, *command: object) -> None:
        """As the user that the server is."""
        line = [*(("runuser", "-u", _USER, "--") if os.getuid() == 0 else ()), *map(str, command)]
        # What is started inherits no pipe, or nobody would see its end.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(line, cwd=self.folder, stdout=said, stderr=said, check=False, timeout=60)
            said.seek(0)
            if done.returncode:
                raise RuntimeError(f"{' '.join(line)}: {said.read()}")

    def start(self) -> None:
        """Returns when it takes connections."""
        log = self.folder / "log"
        self._run("pg_ctl", "start", "--wait", "-D", self._data, "-l", log, "-o", f"-p {self.port}", "-s")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is as if it were killed: nothing is finished or told."""
        self._run("pg_ctl", "stop", "--wait", "-D", self._data, "-m", mode, "-s")

    def guard(self) -> Path:
        """Lets the user `guarded` in by its password, over TLS, alone; gives the certificate that proves the server."""
        key, certificate = self._data / "server.key", self._data / "server.crt"
        subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        names = ("-keyout", key, "-out", certificate)
        self._run_as("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *names)
        rules = self._data / "pg_hba.conf"
        only = "hostssl all guarded all scram-sha-256\nhost all guarded all reject\n"
        rules.write_text(only + rules.read_text())
        self.sql(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        self.sql("ALTER SYSTEM SET ssl = on")
        self.sql("SELECT pg_reload_conf()")
        shown = self.folder / "root.crt"
        shown.write_bytes(certificate.read_bytes())
        return shown

    @property
    def runs(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def revive(self) -> None:
        """Runs again, where a test that has failed left it stopped."""
        if not self.runs:
            self.start()

    def end(self) -> None:
        """It is gone, and its folder."""
        if self.runs:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, port: int = 0) -> str:
        """Of a database there, by another port where that leads to it."""
        return f"postgresql://{_ADMIN}@127.0.0.1:{port or self.port}/{database}?sslmode=disable"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What a statement of an administrator gives."""
        command = [str(self._binaries / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement]
        done = subprocess.run([*command, self.url(database)], capture_output=True, text=True, check=False, timeout=30)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def kill_sessions(self) -> None:
        """SIGKILL to those of the store: the server then ends all, and recovers."""
        for pid in self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'hopline store'").split():
            with suppress(ProcessLookupError):  # it ends all when it finds the first
                os.kill(int(pid), signal.SIGKILL)

    def wait(self) -> None:
        """Until it takes connections again."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.sql("SELECT 1")
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return
