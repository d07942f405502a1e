"""Reads the numbers that a store's file has given out without opening it as a store: it migrates and writes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from services.store.provider import Changes, LeaseRow, RecordRow

_LEASES = "SELECT name, epoch FROM lease"
_RECORDS = "SELECT kind, key, value, version FROM record"
_COUNTERS = "SELECT name, value FROM counter"


def given(path: Path) -> Changes:
    """Leases, counters and records of a file of any release: these tables have never changed. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{_how(path)}", uri=True)) as connection:
        counters = dict(connection.execute(_COUNTERS))
        return Changes(
            leases={name: LeaseRow(name, epoch) for name, epoch in connection.execute(_LEASES)},
            records={row[:2]: RecordRow(*row) for row in connection.execute(_RECORDS)},
            origin=counters["origin"],
            incarnation=counters["incarnation"],
        )


def _how(path: Path) -> str:
    # A log has to be read with the file, and SQLite makes its index for that; without a log the file is everything, and
    # no log must be made.
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
