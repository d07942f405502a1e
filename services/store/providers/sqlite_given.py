"""What the store in a file has given, read without opening it as a store: nothing is migrated, counted or written."""

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
    """Of any release: these tables are as they were in the first one. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{_how(path)}", uri=True)) as connection:
        counters = dict(connection.execute(_COUNTERS))
        return Changes(
            leases={name: LeaseRow(name, epoch) for name, epoch in connection.execute(_LEASES)},
            records={row[:2]: RecordRow(*row) for row in connection.execute(_RECORDS)},
            origin=counters["origin"],
            incarnation=counters["incarnation"],
        )


def _how(path: Path) -> str:
    # A log has to be read with the file, for which its index is made anew; without one, the file is all there is, and
    # none is to be made.
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
