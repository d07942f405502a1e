"""Where a row of the ledger was written: what many rows have in common."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


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


Keyed: TypeAlias = tuple[Place, str]
"""A place whose routing key is "", and the routing key: that is what places differ in most."""
