"""A watcher's mirror of the topology, kept up by the router's frames. Pure: takes frames, calls listeners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Protocol

from services.common.containment import for_each
from services.common.topology.slots import SlotId, SlotName, name_of, slot_of, slots_in
from services.rpc.router_pb2 import Forget, QueueDefinition, TopologyFrame


class TopologyListener(Protocol):
    """Hears of each change before this process acknowledges it to the router. Errors that it raises are contained."""

    def on_queue(self, definition: QueueDefinition) -> None:
        """A queue was declared."""

    def on_queue_changed(self, definition: QueueDefinition) -> None:
        """The policies of a queue say something else from now on."""

    def on_queue_deleted(self, definition: QueueDefinition) -> None:
        """A queue was deleted."""

    def on_forget(self, forget: Forget) -> None:
        """Routes through an exchange may have changed: those of one key, whatever the headers, or of all keys."""

    def on_reset(self) -> None:
        """All routes must be forgotten."""

    def on_virtual_host_deleted(self, name: str) -> None:
        """A virtual host was deleted, and its queues before it."""

    def on_place(self) -> None:
        """This process has a place again, and the router waits for it: nothing in the topology is unknown here."""


class Copy(Protocol):
    """Takes the records of exchanges and bindings. Raises nothing: it handles records itself that it cannot use."""

    def beside(self, queues: Mapping[SlotName, QueueDefinition], hosts: Collection[str]) -> None:
        """Hands over the mirror's slots by name and its virtual hosts; both keep up by themselves."""

    def begin(self) -> None:
        """A snapshot begins; until `end` the former state holds."""

    def add(self, frame: TopologyFrame) -> None:
        """A part of the snapshot."""

    def end(self) -> None:
        """The snapshot is complete."""

    def update(self, frame: TopologyFrame) -> None:
        """A frame of changes."""


class TopologyMirror:
    """Callers read its tables, and change nothing in them. A `copy` is kept at the same version."""

    def __init__(self, copy: Copy | None = None) -> None:
        self.queues: dict[SlotId, QueueDefinition] = {}
        self.by_name: dict[SlotName, QueueDefinition] = {}
        self.virtual_hosts: set[str] = set()
        self.version = 0
        self.listeners: list[TopologyListener] = []
        self._snapshot: list[TopologyFrame] = []
        self._copy = copy
        if copy:
            copy.beside(self.by_name, self.virtual_hosts)

    def begin(self) -> None:
        """Frames of a new stream follow: the rest of an unfinished snapshot will not come."""
        self._snapshot.clear()

    def take(self, frame: TopologyFrame) -> bool:
        """Takes a frame over; false while the rest of a snapshot is still to come."""
        if not frame.snapshot:
            self._update(frame)
            return True
        self._keep(frame)
        if not frame.last:
            return False
        frames, self._snapshot = self._snapshot, []
        self._replace(frames)
        return True

    def _keep(self, frame: TopologyFrame) -> None:
        """Keeps a snapshot's frame without its records, which go to the copy now: all at once would take long."""
        if self._copy:
            if not self._snapshot:
                self._copy.begin()
            self._copy.add(frame)
            frame.ClearField("records")
        self._snapshot.append(frame)

    def _update(self, frame: TopologyFrame) -> None:
        self.version = max(self.version, frame.version)
        if self._copy:
            self._copy.update(frame)
        self.virtual_hosts.update(frame.virtual_hosts)
        # Within one frame a name may pass from one queue to another: the old queue goes first.
        for queue_id in slots_in(frame.deleted_queues):
            self._drop(queue_id)
        for definition in frame.queues:
            self._add(definition)
        for forget in frame.forget:
            self._tell(partial(_forget, forget))
        self._drop_virtual_hosts(frame.deleted_virtual_hosts)

    def _replace(self, frames: list[TopologyFrame]) -> None:
        """Replaces all by a snapshot. A queue in both is the same queue: ids are never used again."""
        self.version = frames[-1].version
        if self._copy:
            self._copy.end()
        former = set(self.virtual_hosts)
        for frame in frames:
            self.virtual_hosts.update(frame.virtual_hosts)
        self._tell(lambda listener: listener.on_reset())
        there = {slot_of(definition): definition for frame in frames for definition in frame.queues}
        for queue_id in self.queues.keys() - there.keys():
            self._drop(queue_id)
        for definition in there.values():
            self._add(definition)
        self._drop_virtual_hosts(former - {name for frame in frames for name in frame.virtual_hosts})

    def _drop_virtual_hosts(self, names: Iterable[str]) -> None:
        for name in self.virtual_hosts.intersection(names):
            self.virtual_hosts.discard(name)
            self._tell(partial(_virtual_host_deleted, name))

    def _add(self, definition: QueueDefinition) -> None:
        queue_id = slot_of(definition)
        former = self.queues.get(queue_id)
        if former == definition:
            return
        self.queues[queue_id] = definition
        self.by_name[name_of(definition)] = definition
        self._tell(lambda each: (each.on_queue_changed if former else each.on_queue)(definition))

    def _drop(self, queue_id: SlotId) -> None:
        if (definition := self.queues.pop(queue_id, None)) is None:
            return
        del self.by_name[name_of(definition)]
        self._tell(lambda listener: listener.on_queue_deleted(definition))

    def _tell(self, tell: Callable[[TopologyListener], None]) -> None:
        for_each("hearing news of the topology", self.listeners, tell)


def _forget(forget: Forget, listener: TopologyListener) -> None:
    listener.on_forget(forget)


def _virtual_host_deleted(name: str, listener: TopologyListener) -> None:
    listener.on_virtual_host_deleted(name)
