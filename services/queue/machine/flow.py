"""Whether publishers are held back from a queue: from when more is in it than it wants until much of that is gone.

As Broker-J's PRODUCER_FLOW_CONTROL: what has come already is taken, however much it is.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Final

from services.queue.machine.entries import Entries
from services.queue.machine.options import QueueOptions

_RESUME: Final = Fraction(4, 5)  # of what it wants, where nothing else is said


class Flow:
    """Of one queue."""

    __slots__ = ("_bytes", "_entries", "_length", "_overfull")

    def __init__(self, entries: Entries) -> None:
        options, share = entries.options, _share(entries.options)
        self._entries = entries
        self._length = options.max_length, _part(options.max_length, share)
        self._bytes = options.max_bytes, _part(options.max_bytes, share)
        self._overfull = False

    def is_overfull(self) -> bool:
        """As things are now, and were the last time."""
        at = 1 if self._overfull else 0
        length, size = self._length[at], self._bytes[at]
        self._overfull = (length is not None and self._entries.count > length) or (
            size is not None and self._entries.size > size
        )
        return self._overfull


def _share(options: QueueOptions) -> Fraction:
    """Of what it wants, at which publishers go on: all of it, where a queue was declared with more once."""
    if options.resume_bytes is None or not options.max_bytes:
        return _RESUME
    return min(Fraction(options.resume_bytes, options.max_bytes), Fraction(1))


def _part(limit: int | None, share: Fraction) -> int | None:
    return None if limit is None else ceil(limit * share)
