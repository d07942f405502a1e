"""A private PostgreSQL cluster, in a folder of its own; the machine's own service is left alone."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.brokers.processes import LOOPBACK, free_port
from benchmarks.failure import BenchmarkError

_USER = "postgres"  # a server does not run as root
ADMIN = "hopline"
_CONFIGURATION = f"listen_addresses = '{LOOPBACK}'\nunix_socket_directories = ''\nlog_min_messages = warning\n"
_SECONDS = 240.0  # initdb takes a second or two, and on a machine that does much else a minute


def binaries() -> Path | None:
    """Of the newest release: Debian keeps them off the PATH. None where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    named = shutil.which("initdb")
    return found[-1].parent if found else Path(named).parent if named else None


class Cluster:
    """`start` and `stop` as often as wanted, always on one port of loopback; `end` for good. Raises BenchmarkError."""

    def __init__(self, parent: Path | None = None, configuration: str = "") -> None:
        """Settings besides the server's own defaults; `parent` is a folder that every user may enter, if not /tmp."""
        present = binaries()
        if present is None:
            raise BenchmarkError("PostgreSQL is not installed (Debian: apt install postgresql)")
        self._binaries = present
        self.folder = Path(tempfile.mkdtemp(prefix="hopline-postgres-", dir=parent))
        self.data = self.folder / "data"
        self.port = free_port()
        self._numbers = itertools.count(1)
        if os.getuid() == 0:
            entry = pwd.getpwnam(_USER)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self.make(_CONFIGURATION + configuration)

    def make(self, configuration: str) -> None:
        """Puts data into its folder."""
        self.run("initdb", "--username", ADMIN, "--auth", "trust", "--no-sync", "--encoding", "UTF8", "-D", self.data)
        (self.data / "postgresql.auto.conf").write_text(configuration)

    def start(self) -> None:
        """Returns when it takes connections."""
        log = self.folder / "log"
        self.run("pg_ctl", "start", "--wait", "-D", self.data, "-l", log, "-o", f"-p {self.port}", "-s")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is as if it were killed: nothing is finished or told."""
        self.run("pg_ctl", "stop", "--wait", "-D", self.data, "-m", mode, "-s")

    @property
    def runs(self) -> bool:
        """Whether it was started, and not stopped."""
        return (self.data / "postmaster.pid").exists()

    def end(self) -> None:
        """It is gone, and its folder."""
        if self.runs:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """Of a database there."""
        return f"postgresql://{ADMIN}@{LOOPBACK}:{self.port}/{database}?sslmode=disable"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What a statement of an administrator gives."""
        options = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement)
        command = [str(self._binaries / "psql"), *options, self.url(database)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if done.returncode:
            raise BenchmarkError(done.stderr.strip())
        return done.stdout.strip()

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"hopline_{os.getpid()}_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def server(self) -> int:
        """The id of the server, whose children its other processes are."""
        return int((self.data / "postmaster.pid").read_text().split(maxsplit=1)[0])

    def run(self, name: str, *arguments: object) -> None:
        """A program of PostgreSQL's, or of the machine's, as the user that the server is."""
        program = self._binaries / name if (self._binaries / name).exists() else name
        line = [*(("runuser", "-u", _USER, "--") if os.getuid() == 0 else ()), *map(str, (program, *arguments))]
        # The server inherits no pipe: its reader would wait for the end as long as the server runs.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(line, cwd=self.folder, stdout=said, stderr=said, check=False, timeout=_SECONDS)
            said.seek(0)
            if done.returncode:
                raise BenchmarkError(f"{' '.join(line)}: {said.read()}")
