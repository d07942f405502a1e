"""Limits of users and of virtual hosts, as RabbitMQ has them: set over its API, kept as records, followed. Pure.

mgmt writes them; gateways hold connections and channels to them, the router queues. A negative number is no limit.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple

from services.common.containment import for_each
from services.rpc.store_pb2 import Record, Records

CONNECTIONS: Final = "max-connections"
CHANNELS: Final = "max-channels"
QUEUES: Final = "max-queues"

USER: Final = "user_limits"
VIRTUAL_HOST: Final = "virtual_host_limits"
"""Kinds of records, one record for each user or virtual host with limits; its key is the name, as JSON."""
KNOWN: Final[Mapping[str, tuple[str, ...]]] = {USER: (CONNECTIONS, CHANNELS), VIRTUAL_HOST: (CONNECTIONS, QUEUES)}
"""The limits that each kind may have."""
MOST: Final = (1 << 31) - 1

_DO: Final = "set it again: hopline limits set"


class Subject(NamedTuple):
    """A user or a virtual host: a kind of records, and a name."""

    kind: str
    name: str

    @property
    def key(self) -> str:
        """Key of its record."""
        return json.dumps(self.name)


class Limited(NamedTuple):
    """A user or a virtual host that has limits."""

    subject: Subject
    values: dict[str, int]


def record_of(limited: Limited) -> Record:
    """The record to store."""
    subject, values = limited
    return Record(kind=subject.kind, key=subject.key, value=json.dumps(values, sort_keys=True).encode())


def read(record: Record) -> Limited:
    """The known limits of a record. Raises ValueError where it cannot be read."""
    values = json.loads(record.value)
    known = {name: int(values[name]) for name in KNOWN[record.kind] if name in values}
    return Limited(Subject(record.kind, json.loads(record.key)), known)


class Limits:
    """All limits that are set."""

    def __init__(self) -> None:
        self._values: dict[Subject, dict[str, int]] = {}
        self.listeners: list[Callable[[], None]] = []

    def of(self, subject: Subject, what: str) -> int | None:
        """The limit, or None where there is none."""
        values = self._values.get(subject)
        found = values.get(what, -1) if values else -1
        return None if found < 0 else found

    def limits_some(self, subject: Subject) -> bool:
        """Whether the user or virtual host has any limit."""
        return subject in self._values

    @property
    def some(self) -> bool:
        """Whether any limit is set."""
        return bool(self._values)

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of kinds in KNOWN; ends with it."""
        fresh = Limits()
        async for batch in records:
            into = fresh if batch.snapshot else self
            for_each("reading a limit", batch.records, into.apply, do=_DO)
            if batch.snapshot and batch.last:
                self._values, fresh = fresh._values, Limits()
            if batch.last or not batch.snapshot:
                for_each("applying limits", list(self.listeners), lambda listener: listener())

    def apply(self, record: Record) -> None:
        """Raises ValueError for a record that cannot be read; its former limits no longer count."""
        if record.kind in KNOWN:
            self._values.pop(Subject(record.kind, json.loads(record.key)), None)
            if not record.deleted:
                subject, values = read(record)
                self._values[subject] = values
