"""Where a row of the ledger was written: what many rows have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(slots=True, eq=False)
class Peer:
    """Who is at the other end of a connection. All places of it refer to one and the same."""

    user: str
    address: str
    told_hour: int = -1
    """Hour since the Unix epoch in which it was told last: rows do not repeat it."""


class Place(NamedTuple):
    """As in proto/ledger.proto. Whoever records keeps the one it uses again and again: rows hold it by reference."""

    virtual_host: str = ""
    exchange: str = ""
    routing_key: str = ""
    queue: str = ""
    partition: int = -1
    epoch: int = 0
    protocol: str = ""
    connection: str = ""
    client: str = ""
    consumer: str = ""
    target: str = ""
    attempt: int = 0
    peer: Peer | None = None
    """Told beside the rows, once in an hour; None where the place is no connection's."""


Keyed: TypeAlias = tuple[Place, str]
"""A place whose routing key is "", and the routing key: that is what places differ in most."""
