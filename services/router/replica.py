"""The topology of the router that writes, followed by one that does not. Pure: frames in."""

from __future__ import annotations

from collections.abc import Callable

from services.router.topology.topology import Topology
from services.router.unreadable import name_unreadable
from services.rpc.router_pb2 import TopologyFrame


class Replica:
    """`topology` is for evaluation only; it is another one after each snapshot."""

    def __init__(self, create: Callable[[], Topology]) -> None:
        self._create = create
        self.topology = create()
        self.version = 0
        self._snapshot: list[TopologyFrame] = []

    def begin(self) -> None:
        """Frames of another stream follow."""
        self._snapshot.clear()

    def take(self, frame: TopologyFrame) -> bool:
        """Carries a frame out; false while the rest of a snapshot is still to come."""
        if not frame.snapshot:
            name_unreadable(
                self.topology.replay(
                    (record.kind, record.key, None if record.deleted else record.value) for record in frame.records
                )
            )
            self.version = max(self.version, frame.version)
            return True
        self._snapshot.append(frame)
        if not frame.last:
            return False
        frames, self._snapshot = self._snapshot, []
        self.topology = self._create()
        name_unreadable(
            self.topology.restore((record.kind, record.key, record.value) for part in frames for record in part.records)
        )
        self.version = frame.version
        return True
