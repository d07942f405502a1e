"""Consumers that look at everything and take nothing."""

from __future__ import annotations

from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery.sending import Sending
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry


class Browsing:
    """Shows a queue's browsers what waits, each from where it has come to."""

    __slots__ = ("_entries", "_sending")

    def __init__(self, entries: Entries, sending: Sending) -> None:
        self._entries = entries
        self._sending = sending

    def show(self, browser: Consumer) -> None:
        """What it has not seen, as far as its credit goes."""
        if not browser.ready:
            return
        if seen := self._next(browser):
            browser.seen = seen[-1].position
            self._sending.show(browser, seen)

    def _next(self, browser: Consumer) -> list[Entry]:
        found: list[Entry] = []
        size = browser.size
        for entry in self._entries.ready.view(browser.seen):
            if len(found) == browser.messages or size <= 0:
                break
            found.append(entry)
            size -= entry.message.weight
        return found
