"""The router that writes: what there is from the moment when it got the lease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

from services.common.bus.events import Events
from services.common.clock import monotonic
from services.common.containment import for_each
from services.common.errors import BrokerError, Unavailable
from services.common.runtime import Tasks
from services.common.topology.records import Record, RecordKey
from services.common.watchers import RECORD_KIND as WATCHER_KIND
from services.common.watchers import SILENT_KIND
from services.router.changes import Changes
from services.router.evaluate import evaluate
from services.router.explaining import explained
from services.router.finding import found_binding
from services.router.lease import Lease
from services.router.record_store import RecordStore
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.topology import Topology
from services.router.watch import Watch
from services.router.watcher_presence import WatcherPresence
from services.router.watchers import Watchers, read_place
from services.router.wire import description, queue_message
from services.rpc import router_pb2

_FIRST_VIRTUAL_HOST = "/"
# Of versions: those of a later holder of the lease are greater than all of an earlier one.
_EPOCH_SHIFT = 40


class Writer:
    """A Role. Made when the lease is held; `on_failure` is told when it cannot go on."""

    def __init__(
        self,
        topology: Topology,
        store: RecordStore,
        lease: Lease,
        place_ttl_ms: int,
        events: Events,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._topology = topology
        self._store = store
        self._lease = lease
        self._tasks = Tasks(on_failure)
        ttl = place_ttl_ms / 1000
        self._watchers = Watchers(ttl, monotonic)
        self._changes = Changes(topology, store, self._watchers, lease, lease.epoch << _EPOCH_SHIFT, events)
        self._places = WatcherPresence(topology, self._changes, self._watchers, lease, ttl, events)
        self._watch = Watch(topology, self._changes, self._watchers, self._places, lease, place_ttl_ms)
        lease.on_store_restart = self._changes.restore_transient
        lease.on_regained = self._watchers.renew_all

    async def start(self, member: str, lost: Mapping[RecordKey, Record]) -> None:
        """Reads the topology; from then on everything can be asked. `member` is this router: it is no watcher now.

        `lost`: what a store that was restarted may not have any more.
        """
        await self._changes.restore(lost)
        places = await self._store.list([WATCHER_KIND])
        for_each("reading a watcher's place", places, lambda record: self._watchers.expect(read_place(record.value)))
        self._places.silent.expect(record.key for record in await self._store.list([SILENT_KIND]))
        # Only from here on can a watcher of the former router come back.
        self._watchers.renew_all()
        self._tasks.start(self._changes.run(), "changes")
        if not self._topology.virtual_hosts:
            await self._create_first()
        if former := self._watchers.find(member):
            await self._places.lose([former], "writes now")
        self._tasks.start(self._places.watch_over(), "places")
        self._tasks.start(self._places.close_orphans(), "orphans")

    async def stop(self) -> None:
        """Ends the streams, which find the next router."""
        await self._watch.stop()
        await self._tasks.stop()

    @property
    def topology(self) -> Topology:
        """As it is now; to be looked at only."""
        return self._topology

    # -------------------------------------------------------------- as Role says

    async def change(self, request: router_pb2.ChangeRequest, asker: str = "") -> router_pb2.ChangeReply:
        """Answers when the change, and all that it saw, is kept and every watcher but `asker` routes by it.

        Refuses likewise, but waits for `asker` too, which is told no version then.
        """

        def decide(effects: Effects) -> Outcome:
            return self._topology.change(request, effects)

        outcome, version = await self._changes.decided(decide, asker)
        if isinstance(outcome, BrokerError):
            await self._watchers.settled(version)
            raise outcome
        await self._watchers.settled(version, asker)
        reply = router_pb2.ChangeReply(created=outcome.created, version=version)
        if outcome.queue:
            reply.queue.CopyFrom(queue_message(outcome.queue))
        return reply

    async def route(self, request: router_pb2.RouteRequest) -> router_pb2.RouteReply:
        """Evaluates by the topology as it is, which may be ahead of the version that it tells."""
        self._check()
        version = self._changes.version
        return router_pb2.RouteReply(routed=await evaluate(self._topology, request.messages), version=version)

    def watch(self, frames: AsyncIterator[router_pb2.WatcherFrame]) -> AsyncIterator[router_pb2.TopologyFrame]:
        """See services/router/watch.py."""
        return self._watch.serve(frames)

    def describe(self, virtual_host: str) -> router_pb2.DescribeReply:
        """As it is now."""
        return description(self._topology.virtual_hosts, virtual_host)

    def explain(self, request: router_pb2.ExplainRequest) -> router_pb2.ExplainReply:
        """As it is now."""
        return explained(self._topology, request)

    def find_binding(self, request: router_pb2.FindBindingRequest) -> router_pb2.FindBindingReply:
        """By the topology as it is."""
        self._check()
        return found_binding(self._topology, request)

    def _check(self) -> None:
        if not self._lease.holds():
            raise Unavailable("another router may write by now")

    async def _create_first(self) -> None:
        virtual_host = router_pb2.CreateVirtualHost(name=_FIRST_VIRTUAL_HOST)
        request = router_pb2.ChangeRequest(create_virtual_host=virtual_host)

        def create(effects: Effects) -> Outcome:
            return self._topology.change(request, effects)

        await self._changes.submit(create)
