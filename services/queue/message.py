"""A message as a queue process holds it: once, however many queues refer to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# Message, entry, unsettled record and their share of containers, beside body and properties.
OVERHEAD = 320


class Run(NamedTuple):
    """What consecutive messages have in common; equal ones are the same object, so that they are found by identity."""

    virtual_host: str
    exchange: str
    routing_key: str
    format: str
    persistent: bool
    priority: int
    ttl_ms: int | None


class Message:
    """Identity, opaque properties and body; `references` counts the entries that hold it."""

    __slots__ = ("body", "properties", "references", "run", "uid")

    def __init__(self, uid: int, properties: bytes, body: bytes, run: Run) -> None:
        self.uid = uid
        self.properties = properties
        self.body = body
        self.run = run
        self.references = 0

    @property
    def size(self) -> int:
        """What it costs in memory, counted once for all its entries."""
        return len(self.body) + len(self.properties) + OVERHEAD


@dataclass(slots=True)
class MemoryAccount:
    """Bytes of the messages that this process holds, all queues together."""

    used: int = 0

    def release(self, message: Message) -> None:
        """One entry less holds the message."""
        message.references -= 1
        if not message.references:
            self.used -= len(message.body) + len(message.properties) + OVERHEAD


class Interned:
    """Makes equal runs and equal properties one object. Bounded: forgets everything when it is full."""

    _AT_MOST = 4096

    def __init__(self) -> None:
        self._runs: dict[Run, Run] = {}
        self._properties: dict[bytes, bytes] = {}

    def run(self, run: Run) -> Run:
        """The one object for runs equal to `run`."""
        if len(self._runs) > self._AT_MOST:
            self._runs.clear()
        return self._runs.setdefault(run, run)

    def properties(self, properties: bytes) -> bytes:
        """The one object for properties equal to these."""
        if len(self._properties) > self._AT_MOST:
            self._properties.clear()
        return self._properties.setdefault(properties, properties)
