"""Finds the Parquet files of a ledger table that a time range needs, without opening any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyarrow import fs

_DAY, _HOUR = "date=", "hour="


@dataclass(frozen=True, slots=True)
class LedgerFolder:
    """A folder, local or on anything that pyarrow has a file system for (s3, gs, hdfs)."""

    system: fs.FileSystem
    path: str
    prefix: str  # what Spark wants before paths

    def uri(self, path: str) -> str:
        """The file as Spark names it."""
        return self.prefix + path


def place(where: str) -> LedgerFolder:
    """The folder named by a path or a URI."""
    if "://" not in where:
        system, path = fs.FileSystem.from_uri(_absolute(where))
        return LedgerFolder(system, path, "file://")
    system, path = fs.FileSystem.from_uri(where)
    scheme, _, rest = where.partition("://")
    # A name node or the like stands before the path, and pyarrow's path does not repeat it.
    authority = "" if rest.startswith(path.strip("/")) else rest.partition("/")[0]
    return LedgerFolder(system, path, f"{scheme}://{authority}")


def _absolute(path: str) -> str:
    from pathlib import Path  # noqa: PLC0415 - only local folders need it

    return str(Path(path).absolute())


def files_of(folder: LedgerFolder, table: str, since: datetime | None, until: datetime | None) -> list[str]:
    """Paths of the table's files of all hours that touch [since, until), in order of path.

    Names that begin with `.` or `_` are being written: they are left out.
    """
    return sorted(info.path for info in _files(folder, table, since, until))


def size_of(folder: LedgerFolder, table: str, since: datetime | None, until: datetime | None) -> int:
    """Bytes of the same files."""
    return sum(info.size for info in _files(folder, table, since, until))


def _files(folder: LedgerFolder, table: str, since: datetime | None, until: datetime | None) -> Iterator[fs.FileInfo]:
    top = f"{folder.path.rstrip('/')}/{table}"
    return (
        info
        for day in _entries(folder, top, _DAY)
        if _touches(_time(day.base_name), timedelta(days=1), since, until)
        for hour in _entries(folder, day.path, _HOUR)
        if _touches(_time(day.base_name, hour.base_name), timedelta(hours=1), since, until)
        for info in _entries(folder, hour.path, "")
        if info.type == fs.FileType.File and info.extension == "parquet"
    )


def _entries(folder: LedgerFolder, path: str, prefix: str) -> Iterator[fs.FileInfo]:
    selector = fs.FileSelector(path, allow_not_found=True)
    for info in folder.system.get_file_info(selector):
        if info.base_name.startswith(prefix) and not info.base_name.startswith((".", "_")):
            yield info


def hour_of(path: str) -> datetime | None:
    """When the hour of a file begins; None where its folder is not named for one."""
    return _time(*path.split("/")[-3:-1])


def _time(day: str, hour: str = "hour=00") -> datetime | None:
    """None for a folder that is not named for a time: what it holds is read, for it may be anything."""
    try:
        return datetime.strptime(day + hour, f"{_DAY}%Y-%m-%d{_HOUR}%H").replace(tzinfo=UTC)
    except ValueError:
        return None


def _touches(start: datetime | None, length: timedelta, since: datetime | None, until: datetime | None) -> bool:
    if start is None:
        return True
    return (until is None or start < until) and (since is None or start + length > since)
