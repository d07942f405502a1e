"""A PostgreSQL cluster of the tests' own, in a temporary folder; the machine's own service is left alone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.brokers import postgres
from benchmarks.failure import BenchmarkError

PASSWORD = "tell-nobody"
_CONFIGURATION = """
# Nothing here cuts off power: what is written survives a process that is killed.
fsync = off
full_page_writes = off
max_connections = 60
shared_buffers = 32MB
"""


@contextmanager
def cluster(of: Cluster | None = None) -> Iterator[Cluster]:
    """One that runs, until it is not wanted any more; a standby, if it is of another."""
    made = Standby(of) if of else Cluster()
    try:
        made.start()
        yield made
    finally:
        made.end()


class Cluster(postgres.Cluster):
    """One that things happen to. What needs it fails where PostgreSQL is not installed."""

    def __init__(self) -> None:
        # Not in pytest's folder, which only its own user may enter.
        super().__init__(configuration=_CONFIGURATION)
        self._spare: list[str] = []

    def give_back(self, url: str) -> None:
        """A database that is no longer used is the next new one, emptied: that takes less than to make one."""
        self.sql("DROP SCHEMA IF EXISTS hopline CASCADE", url.rpartition("/")[2].partition("?")[0])
        self._spare.append(url)

    def new_database(self) -> str:
        return self._spare.pop() if self._spare else super().new_database()

    def revive(self) -> None:
        """Runs again, where a test that has failed left it stopped."""
        if not self.runs:
            self.start()

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
            except BenchmarkError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def guard(self) -> Path:
        """Lets the user `guarded` in by its password, over TLS, alone; gives the certificate that proves the server."""
        key, certificate = self.data / "server.key", self.data / "server.crt"
        subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        names = ("-keyout", key, "-out", certificate)
        self.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *names)
        rules = self.data / "pg_hba.conf"
        only = "hostssl all guarded all scram-sha-256\nhost all guarded all reject\n"
        rules.write_text(only + rules.read_text())
        self.sql(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        self.sql("ALTER SYSTEM SET ssl = on")
        self.sql("SELECT pg_reload_conf()")
        shown = self.folder / "root.crt"
        shown.write_bytes(certificate.read_bytes())
        return shown


class Standby(Cluster):
    """One that follows a primary, until it is promoted."""

    def __init__(self, primary: Cluster) -> None:
        self._primary = primary
        super().__init__()

    def make(self, configuration: str) -> None:
        """With the configuration of the primary."""
        way = ("-h", "127.0.0.1", "-p", self._primary.port, "-U", postgres.ADMIN)
        self.run("pg_basebackup", *way, "-D", self.data, "-R", "-X", "stream", "-c", "fast", "--no-sync")

    def promote(self) -> None:
        """Returns when it takes writes."""
        self.run("pg_ctl", "promote", "--wait", "-D", self.data, "-s")
