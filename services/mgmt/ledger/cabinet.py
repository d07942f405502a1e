"""The folder of files. What belongs together appears together: a crash leaves all of it, or nothing that is seen.

Files are written under hidden names and synced; then the state says, in one rename, which of them are to be seen and
which are to go. The next start after a crash carries that out, and removes files that the state does not name. Between
the removals and the renames of a change, which take a moment, a reader finds less than there is, never anything twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.common.clock import epoch_ns
from services.mgmt.ledger.pace import Rest, no_rest
from services.mgmt.ledger.tables import NAMES, PAYLOADS

if TYPE_CHECKING:
    import pyarrow as pa

# ruff: noqa: PLC0415 - Arrow takes memory and time: `parquet` is imported where there are rows

PART, HOUR = "part", "hour"  # how names of files begin: of a few seconds; merged
_STATE = "_state.json"
_HOURS = "date=[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/hour=[0-9][0-9]"
_HIDDEN = "."
_FRESH_MS = 60_000


@dataclass(slots=True)
class Change:
    """Files to be seen (by the names under which they were written) and files to go, relative to the folder."""

    add: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)


class Cabinet:
    """For one process and one thread at a time. Raises OSError when the disk does not do as it is told."""

    def __init__(self, folder: Path, rest: Rest = no_rest, clock_ns: Callable[[], int] = epoch_ns) -> None:
        """`rest` is called between pieces of what takes long: writing."""
        self._folder = folder
        self._rest = rest
        self._clock_ns = clock_ns
        self._last_name = 0
        self._instances: dict[str, Any] = {}
        self.told: dict[str, int] = {}
        """Of each instance, until when everything is on record, as it was committed with its state."""
        self._committed_ms = 0

    @property
    def is_stale(self) -> bool:
        """Whether the state has to be written again although nothing has changed: it says that the record is live."""
        return self._clock_ns() // 1_000_000 - self._committed_ms > _FRESH_MS

    @property
    def folder(self) -> Path:
        """It may be on a disk of its own."""
        return self._folder

    def open(self) -> dict[str, Any]:
        """Finishes what a crash interrupted; gives the recorded state of the instances.

        Raises ValueError, with what to do, where the disk has damaged that.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._instances, interrupted = self._state()
        self._carry_out(interrupted)
        for table in NAMES:
            for path in self._folder.glob(f"{table}/{_HOURS}/{_HIDDEN}*"):
                path.unlink()
        return self._instances

    def _state(self) -> tuple[dict[str, Any], Change]:
        path = self._folder / _STATE
        try:
            state = json.loads(path.read_bytes())
            found = dict(state["instances"]), Change(list(state["add"]), list(state["remove"]))
            self.told = dict(state.get("told", {}))  # older releases do not say
        except FileNotFoundError:
            return {}, Change()
        except (KeyError, TypeError, ValueError):
            advice = "restore it; or remove it, and rows that were told before count as missing"
            raise ValueError(f"{path} is damaged: {advice}") from None
        return found

    def prepare(self, tables: Mapping[str, pa.Table]) -> Change:
        """Writes rows into files that are not seen before the change is committed."""
        change = Change()
        if not tables:
            return change
        from services.mgmt.heap import give_back
        from services.mgmt.ledger.parquet import by_hour

        for name, table in tables.items():
            for hour, rows in by_hour(table):
                change.add.append(self.create(name, hour_folder(hour), PART, self._writing(rows, name)))
        if PAYLOADS in tables:
            give_back()
        return change

    def create(self, table: str, folder: str, kind: str, fill: Callable[[Path], None]) -> str:
        """Makes a file that is not seen yet, which `fill` writes; gives its name for a Change."""
        target = self._folder / table / folder
        if not target.exists():
            (self._folder / table).mkdir(mode=0o700 if table == PAYLOADS else 0o777, exist_ok=True)
            target.mkdir(parents=True)
            for parent in (self._folder / table, target.parent):
                _sync(parent)
        path = target / f"{_HIDDEN}{self._name(kind)}"
        try:
            fill(path)
        except (OSError, ValueError):
            path.unlink(missing_ok=True)
            raise
        _sync(path)
        _sync(target)
        return str(path.relative_to(self._folder))

    def _writing(self, rows: pa.Table, table: str) -> Callable[[Path], None]:
        from services.mgmt.ledger import parquet

        return lambda path: parquet.write(rows, table, path, self._rest)

    def commit(
        self, change: Change, instances: dict[str, Any] | None = None, told: dict[str, int] | None = None
    ) -> None:
        """Makes the change visible, with the state of the instances; None: the state stays as it was."""
        if instances is not None:
            self._instances, self.told = instances, told or {}
        self._committed_ms = self._clock_ns() // 1_000_000
        state = {
            "instances": self._instances,
            "told": self.told,
            "add": change.add,
            "remove": change.remove,
            "filed_ms": self._committed_ms,
        }
        written = self._folder / f"{_HIDDEN}{_STATE}"
        written.write_text(json.dumps(state))
        _sync(written)
        written.replace(self._folder / _STATE)
        _sync(self._folder)
        self._carry_out(change)

    def remove_empty(self, change: Change) -> None:
        """Folders of hours and dates that have no files after a change."""
        for folder in {(self._folder / name).parent for name in change.remove}:
            for each in (folder, folder.parent):
                if not any(each.iterdir()):
                    each.rmdir()

    def files(self, table: str) -> Iterator[Path]:
        """The files that are seen, oldest hour first."""
        return iter(sorted(self._folder.glob(f"{table}/{_HOURS}/[!._]*.parquet")))

    def relative(self, paths: Iterable[Path]) -> list[str]:
        """Names for a Change."""
        return [str(path.relative_to(self._folder)) for path in paths]

    def _carry_out(self, change: Change) -> None:
        touched = set()
        for name in change.remove:
            path = self._folder / name
            path.unlink(missing_ok=True)
            touched.add(path.parent)
        for name in change.add:
            hidden = self._folder / name
            if hidden.exists():
                hidden.rename(seen(hidden))
            touched.add(hidden.parent)
        for folder in touched:
            if folder.exists():
                _sync(folder)

    def _name(self, kind: str) -> str:
        """One that no other file ever had."""
        self._last_name = max(self._clock_ns() // 1000, self._last_name + 1)
        return f"{kind}-{self._last_name}.parquet"


def seen(hidden: Path) -> Path:
    """The name that a file has once it is seen."""
    return hidden.with_name(hidden.name.removeprefix(_HIDDEN))


def hour_folder(hour: int) -> str:
    """Of an hour since the Unix epoch."""
    return f"{datetime.fromtimestamp(hour * 3600, UTC):date=%Y-%m-%d/hour=%H}"


def hour_of(path: Path) -> int:
    """Of a file or folder below an hour's."""
    date, hour = path.parts[-3:-1]
    begins = datetime.strptime(f"{date}/{hour} +0000", "date=%Y-%m-%d/hour=%H %z")
    return int(begins.timestamp()) // 3600


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
