"""File: lines in a file of the machine that manages, which rolls."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from services.common.clock import epoch_ns
from services.mgmt.loggers.kind import EVER, Said, Sink, now_us
from services.mgmt.loggers.layout import DEFAULT, Layout
from services.mgmt.loggers.outbox import Outbox, Partly, in_place_of
from services.mgmt.loggers.positions import SUFFIX, Positions, beside
from services.mgmt.loggers.rolling import Rolling, RollingFile, lock_of, longest_beside
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

_MB: Final = 1 << 20
_LARGEST: Final = 1024
_HISTORY: Final = 1000
_FORMER: Final = re.compile(rf"\.(\d+|gz|part|{SUFFIX[1:]})$|^\..+\.lock$")
_STANDING_BY: Final = 2000
"""Lines that are kept while another process writes: when that ends, some may not be in the file."""


class FileSink(Outbox):
    """See Sink."""

    def __init__(self, name: str, rolling: Rolling, layout: Layout, since_us: int = EVER) -> None:
        super().__init__(name)
        self._layout = layout
        self._positions = Positions(rolling.path)
        self._file = RollingFile(rolling, opened=self._positions.read)
        self._stood_by: deque[Line] = deque(maxlen=_STANDING_BY)
        self._writing = threading.Lock()
        self._over = False
        self.since_us = since_us

    async def _deliver(self, lines: Sequence[Line]) -> None:
        await asyncio.to_thread(self._write, lines)

    def _write(self, lines: Sequence[Line]) -> None:
        try:
            with self._writing:
                self._write_new(lines)
        finally:
            if self._over:
                self._close()

    def _write_new(self, lines: Sequence[Line]) -> None:
        """What is not in the file yet, however late it comes; who wrote it before may have been another process."""
        due = [*self._stood_by, *lines]
        try:
            while due and self._file.hold():
                self._write_some(due)
        except OSError as error:
            raise Partly(_done(due, lines), error) from error
        self._stood_by = deque(due, maxlen=_STANDING_BY)

    def _write_some(self, due: list[Line]) -> None:
        """Until the file is full, or gone. Who takes the next knows by then what is in this one."""
        due[:] = self._positions.new(due)
        try:
            self._file.write(self._layout(line).encode(errors="replace") for line in due)
        finally:
            self._positions.written(due[: self._file.written])
            del due[: self._file.written]
        if due:
            self._file.roll()

    def _close(self) -> None:
        """Who is still writing, such as a large file into an archive, does it afterwards."""
        if self._writing.acquire(blocking=False):
            try:
                self._file.close()
                self._forget_written()
            finally:
                self._writing.release()

    def _forget_written(self) -> None:
        """By who wrote meanwhile: the rest is for the logger that takes this one's place, maybe with another file."""
        if self._stood_by:
            self._positions.read()
            self._stood_by = deque(self._positions.new(self._stood_by), maxlen=_STANDING_BY)

    def left(self) -> list[Line]:
        """With what is in the file of none yet, as far as is known."""
        return [*self._stood_by, *super().left()]

    async def _end(self) -> None:
        self._over = True
        await asyncio.to_thread(self._close)


def _done(due: Sequence[Line], lines: Sequence[Line]) -> int:
    """How many of the lines that have come are done with, where some are due yet."""
    left = {id(line) for line in due}
    return next((number for number, line in enumerate(lines) if id(line) in left), len(lines))


def path_of(said: Said, folder: Path) -> Path:
    """Of its file. Raises IllegalConfiguration for one that is elsewhere."""
    wanted: str = said["fileName"]
    try:
        path, inside = (folder / wanted).resolve(), folder.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise IllegalConfiguration(f"attribute 'fileName': {wanted!r} is no path: {error}") from None
    if path == inside or not path.is_relative_to(inside):
        raise IllegalConfiguration(
            f"attribute 'fileName': {wanted} is not below {inside}, the folder for logs (HOPLINE_LOG_FOLDER)"
        )
    if _FORMER.search(path.name):
        raise IllegalConfiguration(f"attribute 'fileName': {path.name} is called as a former file would be")
    return path


class File:
    """See LoggerKind."""

    defaults: ClassVar[Said] = {
        "fileName": "hopline.log",
        "rollDaily": False,
        "rollOnRestart": False,
        "compressOldFiles": False,
        "maxHistory": 1,
        "maxFileSize": 100,
        "layout": DEFAULT,
    }

    def check(self, said: Said, folder: Path) -> None:
        for name, most in (("maxFileSize", _LARGEST), ("maxHistory", _HISTORY)):
            if not 1 <= said[name] <= most:
                raise IllegalConfiguration(f"attribute '{name}': 1 to {most} is wanted, not {said[name]}")
        Layout(said["layout"])
        path = path_of(said, folder)
        _require_room_for_names(path, daily=said["rollDaily"], compress=said["compressOldFiles"])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.close(os.open(lock_of(path), os.O_WRONLY | os.O_CLOEXEC))
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640))
            # To roll is to rename in the folder.
            if not os.access(path.parent, os.W_OK):
                raise PermissionError(13, os.strerror(13))
        except OSError as error:
            raise IllegalConfiguration(f"attribute 'fileName': {path} cannot be written: {error.strerror}") from None

    async def open(self, said: Said, folder: Path, former: Sink | None) -> Sink:
        path, since_us = await asyncio.to_thread(_found, said, folder)
        rolling = Rolling(
            path,
            daily=said["rollDaily"],
            on_restart=said["rollOnRestart"],
            compress=said["compressOldFiles"],
            history=said["maxHistory"],
            largest=said["maxFileSize"] * _MB,
        )
        return in_place_of(former, FileSink(path.name, rolling, Layout(said["layout"]), since_us))


def _require_room_for_names(path: Path, *, daily: bool, compress: bool) -> None:
    """The longest that a former file will have, and what lies beside it for a while."""
    former, positions = longest_beside(path, daily=daily, compress=compress), Path(f"{beside(path)}.part")
    longest = max(former, positions, key=lambda each: len(each.name))
    try:
        longest.lstat()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return
        raise IllegalConfiguration(
            f"attribute 'fileName': {path.name} leaves no room for names as {longest.name}: {error.strerror}"
        ) from None


def _found(said: Said, folder: Path) -> tuple[Path, int]:
    """Its file, and when something was written into it last, where nothing says what that was."""
    path = path_of(said, folder)
    with suppress(OSError):
        its = path.stat()
        if its.st_size and not beside(path).exists():
            return path, now_us() - (epoch_ns() - its.st_mtime_ns) // 1000
    return path, EVER
