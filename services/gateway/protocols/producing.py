"""A link by which a peer publishes, as its engine knows it. Protocols without links have none."""

from __future__ import annotations

from typing import NamedTuple


class Producing(NamedTuple):
    """`number` is what its publishes say; `routing_key` None: each message has its own."""

    number: int
    name: str
    exchange: str
    routing_key: str | None
