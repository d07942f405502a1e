"""Who is at the other end of connections that are followed: it is told once in an hour, and mgmt knows of before."""

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
        """`pattern` may be empty: then everybody fits."""
        self._virtual_host = virtual_host
        self._pattern = pattern
        self._connections: OrderedDict[str, None] = OrderedDict()

    async def ask(self, known: Known) -> None:
        """Learns who was there before; raises what `known` does."""
        if self._pattern:
            self._keep(await known(self._virtual_host, self._pattern))

    def hear(self, told: Connection) -> None:
        """Somebody's first row of an hour."""
        if self._pattern and told.virtual_host == self._virtual_host and self._is_of(told.user, told.peer):
            self._keep([told.connection])

    def fit(self, connection: str, *names: str) -> bool:
        """Whether it is one of them; `names` are others that it goes by."""
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
