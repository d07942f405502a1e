"""What is in a queue, looked at a part at a time while it goes on: what comes meanwhile is passed over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from services.queue.machine.entry import ACQUIRED, WAITING, Entry

if TYPE_CHECKING:
    from services.queue.machine.entries import Entries


class Walk:
    """First by what somebody holds, then by what waits, in the order of leaving, then by what waits for its time.

    Those that wait for it now: who stands there later was looked at, perhaps, and came back.
    """

    __slots__ = ("_aside", "_before", "_entries", "_held", "_ready", "_rest", "_steps", "over")

    def __init__(self, entries: Entries, held: list[Entry]) -> None:
        self._entries = entries
        self._before = entries.position
        self._held = iter(held)
        self._ready = entries.ready
        self._steps = self._ready.steps(None, self._before)
        self._aside = entries.aside.known() if entries.aside else {}
        self._rest: Iterator[Entry] | None = None
        self.over = False

    def some(self, most: int) -> list[Entry]:
        """The next ones, after `most` looks at most; none when all of these had left, and when it is `over`."""
        if held := list(islice(self._held, most)):
            return [entry for entry in held if entry.state == ACQUIRED and self._is_held(entry)]
        if self._rest is None:
            return self._some_ready(most)
        rest = list(islice(self._rest, most))
        self.over = len(rest) < most
        return [entry for entry in rest if entry.state in WAITING]

    def _is_held(self, entry: Entry) -> bool:
        return self._entries.unsettled.get(entry.message.uid) is entry

    def _some_ready(self, most: int) -> list[Entry]:
        if self._ready is not self._entries.ready:  # consumers that choose have come
            self._ready = self._entries.ready
            self._steps = self._ready.steps(self._steps.seen, self._before)
        found = self._steps.some(most)
        if self._aside:
            for entry in found:  # its time has come meanwhile
                self._aside.pop(entry, None)
        if self._steps.over:
            self._rest = iter(list(self._aside))
        return found
