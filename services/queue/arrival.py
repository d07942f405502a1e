"""A run of messages on its way to queues of this process."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.journal_draft import ContentDraft
from services.queue.message import Message, Run


class Arrival:
    """Columns of one run: message i has `uids[i]`, `properties[i]` and `bodies[i]`.

    `first` is the index of message 0 within its content, `shared` is not None when all properties are that one value.
    `time_ms` is when they were received. Messages become objects when a queue has to keep them, and then once.
    """

    __slots__ = (
        "_messages",
        "bodies",
        "content",
        "first",
        "immediate",
        "properties",
        "run",
        "shared",
        "time_ms",
        "uids",
    )

    def __init__(
        self,
        run: Run,
        uids: Sequence[int],
        properties: Sequence[bytes],
        bodies: Sequence[bytes],
        time_ms: int,
        content: ContentDraft,
        first: int = 0,
        shared: bytes | None = None,
        immediate: bool = False,
    ) -> None:
        self.run = run
        self.uids = uids
        self.properties = properties
        self.bodies = bodies
        self.time_ms = time_ms
        self.content = content
        self.first = first
        self.shared = shared
        self.immediate = immediate
        self._messages: list[Message | None] | None = None

    def part(self, first: int, end: int) -> Arrival:
        """The messages `first` to `end - 1` as a run of their own."""
        return Arrival(
            self.run,
            self.uids[first:end],
            self.properties[first:end] if self.shared is None else self.properties,
            self.bodies[first:end],
            self.time_ms,
            self.content,
            self.first + first,
            self.shared,
            self.immediate,
        )

    def weight(self, first: int, end: int) -> int:
        """Bytes of properties and bodies of the messages from `first` to `end - 1`."""
        whole = end - first == len(self.bodies)
        size = sum(map(len, self.bodies if whole else self.bodies[first:end]))
        if self.shared is not None:
            return size + len(self.shared) * (end - first)
        return size + sum(map(len, self.properties if whole else self.properties[first:end]))

    def span(self, first: int, end: int, step: int = 1) -> Sequence[int]:
        """The uids of every `step`-th message from `first` to `end - 1`, as a range where they are consecutive."""
        uids = self.uids
        lowest, highest = uids[first], uids[end - 1]
        if highest - lowest == end - 1 - first:  # they ascend
            return range(lowest, highest + 1, step)
        return uids[first:end:step]

    def messages(self, first: int, end: int) -> list[Message]:
        """The messages `first` to `end - 1`; the same objects for every queue that asks."""
        run, shared = self.run, self.shared
        uids, bodies = self.uids[first:end], self.bodies[first:end]
        if self._messages is None:
            self._messages = [None] * len(self.bodies)
        known = self._messages[first:end]
        if shared is not None:
            made = [m or Message(u, shared, b, run) for m, u, b in zip(known, uids, bodies, strict=True)]
        else:
            own = self.properties[first:end]
            made = [m or Message(u, p, b, run) for m, u, p, b in zip(known, uids, own, bodies, strict=True)]
        self._messages[first:end] = made
        return made
