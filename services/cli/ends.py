"""Which connections a client pattern stands for, while the ledger is followed.

A service tells user and address of a connection once in an hour; mgmt knows those that were told before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from services.common.patterns import fits
from services.rpc.ledger_pb2 import Connection

_MOST = 100_000  # connections that one pattern stands for

Known: TypeAlias = "Callable[[str, str], Awaitable[Iterable[str]]]"
"""The connections so far whose user or address fits: of a virtual host and a pattern."""


class Ends:
    """The connections that a pattern stands for: by what the client calls itself, its user, its address, or by name."""

    def __init__(self, virtual_host: str, pattern: str) -> None:
        """`pattern` may be empty: then every connection fits."""
        self._virtual_host = virtual_host
        self._pattern = pattern
        self._connections: OrderedDict[str, None] = OrderedDict()

    async def ask(self, known: Known) -> None:
        """Learns the connections that were told before; raises what `known` does."""
        if self._pattern:
            self._keep(await known(self._virtual_host, self._pattern))

    def hear(self, told: Connection) -> None:
        """User and address of a connection: told with its first row of an hour."""
        if self._pattern and told.virtual_host == self._virtual_host and self._is_of(told.user, told.peer):
            self._keep([told.connection])

    def fit(self, connection: str, *names: str) -> bool:
        """Whether the connection is one of them; `names` are other names of it."""
        pattern = self._pattern
        return (
            not pattern or connection in self._connections or any(fits(name, pattern) for name in (connection, *names))
        )

    def _is_of(self, user: str, peer: str) -> bool:
        return fits(user, self._pattern) or fits(peer, self._pattern) or fits(peer, f"{self._pattern}:*")

    def _keep(self, connections: Iterable[str]) -> None:
        self._connections.update(dict.fromkeys(connections))
        while len(self._connections) > _MOST:
            self._connections.popitem(last=False)
