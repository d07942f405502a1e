"""What a change leads to: records to keep or drop, what watchers must learn, and what has happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from services.common.topology.definitions import Exchange, Queue
from services.common.topology.records import Record, RecordKey

# So many single keys of one exchange are said as "all keys": cheaper to send and to carry out.
_KEYS_AT_MOST = 1000


class Bound(NamedTuple):
    """A binding with the names of its ends, which may be gone already."""

    virtual_host: str
    source: str
    destination: str
    to_exchange: bool
    routing_key: str
    arguments: bytes


class Happened(NamedTuple):
    """Something came into being, or is no more; a virtual host is told by its name."""

    created: bool
    what: Queue | Exchange | Bound | str


@dataclass(slots=True)
class News:
    """What watchers must learn, in a form in which later news add to earlier."""

    queues: dict[int, Queue] = field(default_factory=dict)
    deleted_queues: dict[int, None] = field(default_factory=dict)
    virtual_hosts: dict[str, bool] = field(default_factory=dict)  # → whether it exists
    forget: dict[tuple[str, str], set[str] | None] = field(default_factory=dict)  # exchange → keys, None for all
    records: dict[RecordKey, Record | None] = field(default_factory=dict)  # for routers, in place of all that

    def __bool__(self) -> bool:
        return bool(self.queues or self.deleted_queues or self.virtual_hosts or self.forget or self.records)

    @property
    def concerns_queues(self) -> bool:
        """Whether it is about queues or virtual hosts, and not only about ways to them."""
        return bool(self.queues or self.deleted_queues or self.virtual_hosts)

    def delete_queue(self, queue_id: int) -> None:
        """Nobody needs the definition any more; whoever has it must drop it."""
        self.queues.pop(queue_id, None)
        self.deleted_queues[queue_id] = None

    def forget_key(self, virtual_host: str, exchange: str, key: str | None) -> None:
        """Routes of `key` through the exchange may have changed; of every key, when None."""
        known = self.forget.setdefault((virtual_host, exchange), set())
        if known is None:
            return
        if key is None or len(known) >= _KEYS_AT_MOST:
            self.forget[virtual_host, exchange] = None
        else:
            known.add(key)

    def add(self, later: News) -> None:
        """Makes this the news of both, `later` having happened after it."""
        self.queues.update(later.queues)
        for queue_id in later.deleted_queues:
            self.delete_queue(queue_id)
        self.virtual_hosts.update(later.virtual_hosts)
        for (virtual_host, exchange), keys in later.forget.items():
            for key in keys if keys is not None else (None,):
                self.forget_key(virtual_host, exchange, key)
        self.records.update(later.records)


@dataclass(slots=True)
class Effects:
    """Of one change or of several in a row."""

    records: dict[RecordKey, Record | None] = field(default_factory=dict)  # None: to be dropped
    news: News = field(default_factory=News)
    happened: list[Happened] = field(default_factory=list)  # in this order
