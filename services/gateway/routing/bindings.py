"""A gateway's copy of all exchanges and bindings, kept up with the router's records: frames in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import structlog

from services.common.containment import contained
from services.common.memory import available
from services.common.topology.source import Source
from services.gateway.routing.by_name import QueuesByName, by_name
from services.gateway.routing.replica import Replica
from services.rpc.router_pb2 import TopologyFrame

_MOST = 100_000  # bindings, or as many as fit into a thirty-second of the memory
_BINDING = 2 << 10  # bytes, about, of one with its place among those that messages are matched with
_DO = "nothing, unless routers are busy: then add some (HOPLINE_ROUTERS)"

log = structlog.get_logger()


class Bindings:
    """`whole`: it is all that the router has. Half of it is no help: then a router has to be asked."""

    def __init__(self) -> None:
        self.whole = False
        self._hosts: Collection[str] = ()
        self._queues: QueuesByName = {}
        self._replica = self._create()
        self._coming: Replica | None = None  # of a snapshot, until it cannot be used
        self._limit = min(_MOST, available() // 32 // _BINDING)

    def sources(self, virtual_host: str) -> Mapping[str, Source] | None:
        """The exchanges of a virtual host; None when it is not there."""
        return self._replica.sources(virtual_host) if virtual_host in self._hosts else None

    def has_exchange(self, virtual_host: str, name: str) -> bool:
        """Whether there may be one: only a copy of all of them tells."""
        return not self.whole or name in (self.sources(virtual_host) or ())

    # -------------------------------------------------------------- the topology says

    def beside(self, queues: QueuesByName, hosts: Collection[str]) -> None:
        """Whose names messages go by in the default exchange, and which virtual hosts there are; kept up by others."""
        self._queues, self._hosts = queues, hosts

    def begin(self) -> None:
        """A snapshot comes; until `end` what was there before holds."""
        self._coming = self._create()

    def add(self, frame: TopologyFrame) -> None:
        """A part of it. One of a router that knows no watchers which evaluate has no exchanges and bindings."""
        if coming := self._coming:
            used = frame.evaluated and self._use("reading all bindings", coming, lambda: coming.replay(frame.records))
            self._coming = coming if used else None

    def end(self) -> None:
        """It is whole."""
        self.whole = self._coming is not None
        self._replica, self._coming = self._coming or self._create(), None

    def update(self, frame: TopologyFrame) -> None:
        """Something has changed."""
        if self.whole and (frame.records or frame.deleted_virtual_hosts):
            self.whole = self._use("reading a change of bindings", self._replica, lambda: self._change(frame))
            if not self.whole:
                self._replica = self._create()

    def _change(self, frame: TopologyFrame) -> None:
        self._replica.replay(frame.records)
        for name in frame.deleted_virtual_hosts:
            self._replica.drop_host(name)

    def _use(self, what: str, replica: Replica, action: Callable[[], None]) -> bool:
        try:
            action()
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with a record, a router may know better
            contained(what, fault, do="messages are routed all the same, since a router is asked about each new key")
            return False
        if replica.count > self._limit:
            log.warning("too many bindings for a copy, routers are asked about each new key", most=self._limit, do=_DO)
            return False
        return True

    def _create(self) -> Replica:
        return Replica(lambda host: by_name(self._queues, host))
