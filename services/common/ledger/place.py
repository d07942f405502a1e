"""Where something happened to messages: what many rows of the ledger have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(slots=True, eq=False)
class Peer:
    """The peer of a connection. All places of the connection refer to one object."""

    user: str
    address: str
    told_hour: int = -1
    """The hour since the Unix epoch in which the ledger last named it: rows do not repeat it."""


class LedgerPlace(NamedTuple):
    """As in proto/ledger.proto. A service keeps the places that it uses again: rows hold them by reference."""

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
    """Named beside the rows, once an hour; None where the place belongs to no connection."""


Keyed: TypeAlias = tuple[LedgerPlace, str]
"""A place whose routing key is "", and the routing key, in which places differ most."""
