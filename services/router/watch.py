"""Watch: one stream of a watcher. What it is told goes out merged; what it says renews its place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from services.common.clients.routers import ROLE
from services.common.errors import SyntaxFault, Unavailable
from services.common.runtime import Tasks
from services.router.changes import Changes
from services.router.lease import Lease
from services.router.topology.effects import News
from services.router.topology.topology import Topology
from services.router.watcher_presence import WatcherPresence
from services.router.watchers import Attachment, ExpectedWatcher, Watchers
from services.router.wire import news_frame, record_frames, records_frame, snapshot_frames
from services.rpc import router_pb2

log = structlog.get_logger()


class Watch:
    """Serves all streams."""

    def __init__(
        self, topology: Topology, changes: Changes, watchers: Watchers, places: WatcherPresence, lease: Lease,
        place_ttl_ms: int,
    ) -> None:  # fmt: skip
        self._topology = topology
        self._changes = changes
        self._watchers = watchers
        self._places = places
        self._lease = lease
        self._place_ttl_ms = place_ttl_ms
        self._tasks = Tasks()

    async def serve(self, frames: AsyncIterator[router_pb2.WatcherFrame]) -> AsyncIterator[router_pb2.TopologyFrame]:
        """Until the watcher leaves, its stream breaks, or another stream or its silence ends this one."""
        first = await anext(frames, None)
        if first is None or not first.member:
            raise SyntaxFault("a watcher says first who it is")
        place = await self._places.take(first.member, first.role, first.connections)
        # From here to the snapshot nothing waits: what it does not show comes as news.
        attachment = self._watchers.attach(place, self._changes.version)
        attachment.evaluates = first.evaluates
        reader = self._tasks.start(self._read(frames, place, attachment), f"watcher {place.member}")
        try:
            for frame in self._beginning(first):
                yield frame
            self._watchers.hear(place, attachment, first.acknowledged, first.beat_ms)
            async for frame in self._news(place, attachment):
                yield frame
        finally:
            reader.cancel()
            self._watchers.detach(place, attachment)
        if self._watchers.find(place.member) is not place:
            raise Unavailable("the watcher has no place any more")

    async def stop(self) -> None:
        """Ends all streams."""
        self._watchers.close()
        await self._tasks.stop()

    def _beginning(self, first: router_pb2.WatcherFrame) -> list[router_pb2.TopologyFrame]:
        version = self._changes.version
        if first.acknowledged == version:
            return [router_pb2.TopologyFrame(version=version, place_ttl_ms=self._place_ttl_ms)]
        topology = self._topology
        if first.role == ROLE:
            return record_frames(version, topology.all_records(), self._place_ttl_ms)
        records = topology.all_records() if first.evaluates else None
        return snapshot_frames(version, topology.virtual_hosts, topology.queues.values(), self._place_ttl_ms, records)

    async def _news(self, place: ExpectedWatcher, attachment: Attachment) -> AsyncIterator[router_pb2.TopologyFrame]:
        while True:
            await attachment.wake.wait()
            attachment.wake.clear()
            if attachment.ended:
                return
            news, attachment.news = attachment.news, News()
            frame = self._frame(place, attachment, news)
            frame.nobody_waits = attachment.awaited <= place.acknowledged
            beat_ms, attachment.beat_ms = attachment.beat_ms, 0
            # Whose lease has run out must not make anybody believe in a place: the next router may count by then.
            frame.beat_ms = beat_ms if beat_ms and self._lease.holds() else 0
            yield frame

    @staticmethod
    def _frame(place: ExpectedWatcher, attachment: Attachment, news: News) -> router_pb2.TopologyFrame:
        if place.role == ROLE:
            return records_frame(attachment.version, news)
        return news_frame(attachment.version, news, evaluates=attachment.evaluates)

    async def _read(
        self, frames: AsyncIterator[router_pb2.WatcherFrame], place: ExpectedWatcher, attachment: Attachment
    ) -> None:
        async for frame in frames:
            if frame.leaving:
                # Not here: this task ends with the stream, and the stream with the place.
                self._tasks.start(self._places.lose([place], "left"), f"watcher {place.member} leaves")
                return
            self._watchers.hear(place, attachment, frame.acknowledged, frame.beat_ms)
        attachment.end()
