"""How long clients waited, and for what. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.support.chaos.account import Account, Disturbance, Message


@dataclass(slots=True)
class Pause:
    """The longest waits, in seconds. `reconnected` is of clients that had to connect again before they were served."""

    confirm: float = 0.0
    delivery: float = 0.0
    reconnected: float = 0.0

    def add(self, other: Pause) -> None:
        self.confirm = max(self.confirm, other.confirm)
        self.delivery = max(self.delivery, other.delivery)
        self.reconnected = max(self.reconnected, other.reconnected)


def pauses(account: Account) -> list[tuple[Disturbance | None, Pause]]:
    """The longest waits during each disturbance and until the next; first those before any."""
    disturbances = sorted(account.disturbances, key=lambda disturbance: disturbance.began)
    begins = [disturbance.began for disturbance in disturbances]
    found: dict[int, Pause] = defaultdict(Pause)
    for message in account.messages.values():
        end, pause = _waited(message, account)
        if end is not None:
            found[_slot(begins, message.waits_since, end)].add(pause)
    return [(disturbances[slot - 1] if slot else None, found[slot]) for slot in range(len(begins) + 1)]


def by_kind(account: Account) -> dict[str, Pause]:
    """The longest waits of each kind of disturbance."""
    found: dict[str, Pause] = defaultdict(Pause)
    for disturbance, pause in pauses(account):
        found[f"{disturbance.kind} {_service(disturbance)}" if disturbance else "(undisturbed)"].add(pause)
    return dict(sorted(found.items()))


def longest(account: Account) -> Pause:
    """The longest waits of the whole run."""
    whole = Pause()
    for _, pause in pauses(account):
        whole.add(pause)
    return whole


def _waited(message: Message, account: Account) -> tuple[float | None, Pause]:
    delivered = message.deliveries[0].at if message.deliveries else None
    ends = [end for end in (message.confirmed, delivered) if end is not None]
    if not ends:
        return None, Pause()
    end = max(ends)
    if message.waits_since < message.published or _is_moved(message, account, end):
        return end, Pause(reconnected=end - message.waits_since)
    confirm = message.confirmed - message.published if message.confirmed is not None else 0.0
    return end, Pause(confirm, delivered - message.published if delivered is not None else 0.0)


def _is_moved(message: Message, account: Account, end: float) -> bool:
    """Whether its consumer has come after it, or a connection of its way went before it was there."""
    names = [delivery.connection for delivery in message.deliveries[:1]]
    consumers = [account.connections[name] for name in names]
    producer = account.connections.get(message.id.producer)
    if any(consumer.opened > message.published for consumer in consumers):
        return True
    return producer is not None and producer.ended is not None and producer.ended < end


def _slot(begins: list[float], start: float, end: float) -> int:
    """The disturbance in whose time most of the wait falls, counted from 1; 0 is before the first."""
    first, last = bisect_right(begins, start), bisect_right(begins, end)
    edges = [start, *begins[first:last], end]
    return first + _longest_part(edges)


def _longest_part(edges: Iterable[float]) -> int:
    parts = [after - before for before, after in pairwise(edges)]
    return parts.index(max(parts))


def _service(disturbance: Disturbance) -> str:
    return disturbance.target.rpartition("-")[0] or disturbance.target
