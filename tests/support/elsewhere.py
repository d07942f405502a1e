"""What a store may be kept in besides a folder, as tests start, stop and use it: a database, or a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Protocol

from services.common import plugins
from tests.support.jetstream import Servers, alone
from tests.support.postgres import Cluster, cluster


class Place(Protocol):
    """One that runs, and that things happen to."""

    name: str  # of the provider

    @property
    def port(self) -> int:
        """Where it listens."""

    def url(self) -> str:
        """Of a store that does not exist yet."""

    def start(self) -> None:
        """Does nothing where it runs; returns when it serves."""

    def stop(self, *, hard: bool = True) -> None:
        """`hard`: as if it were killed."""

    def provider(self, url: str) -> Any:
        """Another one on the store there."""
        return plugins.load("store_providers", self.name)(Path(), url)

    async def cut(self, provider: Any) -> None:
        """Its connection ends."""

    async def silence(self, provider: Any) -> None:
        """As if its process were stopped, or cut off: it does nothing of its own accord."""
        for owner in (provider, provider._writer):
            if hasattr(owner, "_tasks"):
                await owner._tasks.stop()
        await self.cut(provider)


class _Database(Place):
    name = "postgres"

    def __init__(self, server: Cluster) -> None:
        self._server = server

    @property
    def port(self) -> int:
        return self._server.port

    def url(self) -> str:
        return self._server.new_database()

    def start(self) -> None:
        self._server.revive()

    def stop(self, *, hard: bool = True) -> None:
        self._server.stop("immediate" if hard else "fast")

    async def cut(self, provider: Any) -> None:
        provider._writer._connection.terminate()


class _Stream(Place):
    name = "jetstream"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    @property
    def port(self) -> int:
        return self._servers.each[0].port

    def url(self) -> str:
        return self._servers.url()

    def start(self) -> None:
        self._servers.start()

    def stop(self, *, hard: bool = True) -> None:
        for server in self._servers.each:
            server.kill(SIGKILL if hard else SIGTERM)

    async def cut(self, provider: Any) -> None:
        await provider._writer._drop()


@contextmanager
def running(name: str) -> Iterator[Place]:
    """Where the provider of that name keeps things, until it is not wanted any more."""
    if name == "postgres":
        with cluster() as server:
            yield _Database(server)
    else:
        with alone() as servers:
            yield _Stream(servers)
