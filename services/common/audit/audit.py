"""The audit log of one process: lines in files of its own, written soon after, and events on the bus.

What clients can cause without signing in (they are refused unseen) is counted, and is a line each ten seconds: none can
have the others rotated away by it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from services.common.audit.entry import MISSED, Entry
from services.common.bus.facts import Audited, Facts
from services.common.clock import epoch_ms
from services.common.config import Settings
from services.common.few_lines import FewLines
from services.common.rotating_files import RotatingFiles
from services.common.runtime import Tasks

log = structlog.get_logger()

_GATHER = 0.1  # seconds in which what happens together is written together
_MOST = 10_000  # lines that wait for the disk
_KINDS = 1000  # of what is counted
_SECONDS = 10.0
_FILE = 16 << 20  # bytes
_DO = (
    "make room on its disk, or check the folder's permissions; lines that cannot be written are counted in the next one"
)


class Audit:
    """`publish` takes events, where there is a bus."""

    def __init__(
        self, settings: Settings, service: str, instance: str, publish: Callable[[Facts], None] | None = None
    ) -> None:
        self._on = settings.audit
        self.happened: Counter[str] = Counter()
        """By event, whether it is put on record or not."""
        self._service, self._instance = service, instance
        self._publish = publish
        self._files = RotatingFiles(
            settings.audit_path,
            instance,
            largest=_FILE,
            keep_bytes=settings.audit_bytes,
            keep_days=settings.audit_days,
        )
        self._lines: list[bytes] = []
        self._missed = 0
        self._counts: dict[Entry, int] = {}
        self._kinds = Counter[str]()  # of these, by event
        self._wake = asyncio.Event()
        self._few = FewLines()
        self._tasks = Tasks()

    def start(self) -> None:
        """What is told is written from now on."""
        if self._on:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="audit")
            self._tasks.start(self._write_on(), name="write the audit log")

    async def stop(self) -> None:
        """Writes what is left."""
        if not self._on:
            return
        await self._tasks.stop()
        for entry in list(self._counts):
            self._say_count(entry)
        with contextlib.suppress(OSError):
            await self._write()
        # In the thread, behind a write that was under way when its task was cancelled: that one may open the file yet.
        await asyncio.get_running_loop().run_in_executor(self._thread, self._files.close)
        self._thread.shutdown(wait=False)
        self._on = False  # lines told from now on are not written, and a second stop has nothing to wait for

    def tell(self, entry: Entry) -> None:
        """It is a line of its own."""
        self.happened[entry.event] += 1
        self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        if not self._on:
            return
        if len(self._lines) < _MOST:
            self._lines.append(self._line(entry))
        else:
            self._missed += 1
        self._wake.set()
        if self._publish:
            self._publish(Audited(**_told(entry)))

    def count(self, entry: Entry) -> None:
        """It is one of many that are alike, or may be: the first is told at once, and then how many more there were."""
        self.happened[entry.event] += 1
        if not self._on:
            return
        if entry in self._counts:
            self._counts[entry] += 1
        elif self._kinds[entry.event] < _KINDS:  # a client that is denied a thousand things hides no sign-in by it
            self._counts[entry] = 0
            self._kinds[entry.event] += 1
            asyncio.get_running_loop().call_later(_SECONDS, self._say_count, entry)
            self._tell(entry)
        else:
            self._missed += 1

    def _say_count(self, entry: Entry) -> None:
        if (more := self._counts.pop(entry, None)) is None:
            return
        self._kinds[entry.event] -= 1
        if more:
            self._tell(replace(entry, count=more))

    def _line(self, entry: Entry) -> bytes:
        time = datetime.fromtimestamp(epoch_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        return entry.line(time, self._service, self._instance)

    # -------------------------------------------------------------- files

    async def _write_on(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER)
            self._wake.clear()
            try:
                await self._write()
            except OSError as error:
                self._few.say(log.error, "the audit log cannot be written", reason=str(error), do=_DO)

    async def _write(self) -> None:
        lines, missed = self._lines, self._missed
        self._lines, self._missed = [], 0
        if missed:
            lines.insert(0, self._line(Entry(MISSED, count=missed)))
        if not lines:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._files.append, b"".join(lines))
        except OSError:
            self._missed += missed + len(lines) - bool(missed)
            raise


def _told(entry: Entry) -> dict[str, str]:
    fields = ("event", "user", "provider", "mechanism", "peer", "reason", "by", "what", "name", "change")
    return {name: getattr(entry, name) for name in fields}
