"""What was read of files, as long as it is not too much in all."""

from __future__ import annotations

from random import Random
from threading import Lock
from typing import Generic, TypeVar

from services.mgmt.lookup.versions import Version, version_of

_T = TypeVar("_T")

_REFUSED = 1000  # times, after which it is looked which files are gone: each takes a microsecond or two


class Counted(Generic[_T]):
    """For several threads. What is replaced, or gone, counts no more."""

    def __init__(self, most: int, files: int) -> None:
        """`most` in all, of so many files."""
        self._most = most
        self._files = files
        self._known: dict[str, tuple[Version, _T, int]] = {}
        self._number = 0
        self._refused = 0
        self._lock = Lock()
        self._chance = Random(0)  # noqa: S311 - no secret

    def of(self, path: str, version: Version | None) -> _T | None:
        """What was learnt of this version. Also of a file that is gone: who lists files sees that."""
        known = self._known.get(path)
        return known[1] if known and version in {None, known[0]} else None

    def has_room(self, size: int) -> bool:
        """For that much more, of a file that is not known."""
        with self._lock:
            return self._finds_room(size)

    def learn(self, path: str, version: Version | None, found: _T, size: int) -> None:
        """Nothing where there is no room, and of a file that was gone before it was read."""
        with self._lock:
            self._drop(path)
            if version is not None and self._fits(size):
                self._known[path] = version, found, size
                self._number += size

    def learn_instead(self, path: str, version: Version, found: _T, size: int) -> None:
        """Where there is no room, any others are forgotten for it."""
        with self._lock:
            self._drop(path)
            self._finds_room(size)
            if size <= self._most and not self._fits(size):
                self._make_room(size)
        self.learn(path, version, found, size)

    def _finds_room(self, size: int) -> bool:
        if not self._fits(size):
            self._refused += 1
            if not self._refused % _REFUSED:
                self._forget_gone()
        return self._fits(size)

    def _make_room(self, size: int) -> None:
        """Any others go: those that are asked in turns would push out each other, were it the oldest."""
        paths = list(self._known)
        while paths and not self._fits(size):
            at = self._chance.randrange(len(paths))
            paths[at], paths[-1] = paths[-1], paths[at]
            self._drop(paths.pop())

    def _fits(self, size: int) -> bool:
        return self._number + size <= self._most and len(self._known) < self._files

    def _drop(self, path: str) -> None:
        if known := self._known.pop(path, None):
            self._number -= known[2]

    def _forget_gone(self) -> None:
        for path, (version, _, _) in list(self._known.items()):
            if version_of(path) != version:
                self._drop(path)
