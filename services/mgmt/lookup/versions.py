"""Tells a file from what somebody puts in its place: the ledger's files never change, but a damaged one is restored."""

from __future__ import annotations

import os
from typing import Generic, NamedTuple, TypeVar

_T = TypeVar("_T")


class Version(NamedTuple):
    """Of a file. Whoever restores one in its place may give it the time of change that it had, and its size; not the
    time at which he does so (`put_ns`).
    """

    number: int
    changed_ns: int
    put_ns: int
    size: int


def version_of(path: str) -> Version | None:
    """None where it is gone."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for each file of a day, and a Path takes four times as long
    except OSError:
        return None
    return Version(found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


class Remembered(Generic[_T]):
    """What was read of files, `most` at a time; for several threads, of which each may learn what another has."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, tuple[Version, _T]] = {}

    def of(self, path: str, version: Version | None) -> _T | None:
        """What was learnt of this version. Also of a file that is gone: who lists files sees that."""
        known = self._known.get(path)
        return known[1] if known and version in {None, known[0]} else None

    def learn(self, path: str, version: Version | None, found: _T) -> _T:
        """Gives what it is told. `version` is that of before it was read: what came meanwhile is another."""
        if len(self._known) >= self._most:
            self._known.clear()
        if version is not None:
            self._known[path] = version, found
        return found
